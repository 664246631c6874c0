"""A plugin of pytest: plays Dask's own tests against a scheduler in another process.

OWN_TESTS_COMMAND  starts the scheduler, as a JSON list; it prints a line with tcp://HOST:PORT when it listens.
                   Without it the tests run as they are, with Dask's scheduler in the process of the test.
OWN_TESTS_REPORT   file that gets one line of JSON for each test: {"test", "outcome", "seconds", "why"}.
OWN_TESTS_LOG      file that gets what the schedulers write to stderr.
OWN_TESTS_ONLY     file with the names of the tests to run, one on each line; default: all that can run so.
OWN_TESTS_KINDS    kinds of tests, separated by commas (default: tasks,processes; see selection.py).
OWN_TESTS_REUSE    1: a scheduler that a test has left without workers serves the next test as well.
"""

from distributed.utils_test import *  # noqa: F401,F403  The fixtures of the tests.

import asyncio
import atexit
import collections
import copy
import ctypes
import json
import os
import re
import signal
import subprocess
import tempfile

import dask
import distributed.utils_test as utils_test
import yaml
from distributed import rpc

from selection import runs_outside

COMMAND = json.loads(os.environ.get("OWN_TESTS_COMMAND", "[]"))
REPORT = os.environ.get("OWN_TESTS_REPORT", os.devnull)
LOG = os.environ.get("OWN_TESTS_LOG", os.devnull)
ONLY = os.environ.get("OWN_TESTS_ONLY")
KINDS = os.environ.get("OWN_TESTS_KINDS", "tasks,processes").split(",")
REUSE = os.environ.get("OWN_TESTS_REUSE") == "1"
PATIENCE = 4  # Time limits of the tests are multiplied with this: the machine may be busy.
VARIANTS = 2  # So many sets of parameters of each test are played.
MARKERS = "slow avoid_ci ipython gpu leaking workerstate ci1 flaky extra_packages oncall no_shuffle filterwarnings".split()

idle = []


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start_process(env=None):
    """Starts the scheduler. Returns the process and its address, or None when it printed no address."""
    with open(LOG, "ab") as log:
        process = subprocess.Popen(
            COMMAND, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **(env or {})}, preexec_fn=die_with_parent
        )
    for line in process.stdout:
        if found := re.search(rb"tcp://[0-9.]+:\d+", line):
            return process, found.group().decode()
    return process, None


def run_scheduler(queue, nputs, config, port=0, **kwargs):
    """In the place of the function of `cluster()` that runs Dask's scheduler in a process."""
    process, address = start_process(config_file({"distributed": {}}, config))
    for _ in range(nputs):
        queue.put(address or RuntimeError("the scheduler did not start"))
    while process.stdout.readline():
        pass
    process.wait()


def scheduler_config():
    """What Dask's configuration says about schedulers now."""
    sections = {name: copy.deepcopy(dask.config.get(f"distributed.{name}")) for name in ("scheduler", "admin")}
    for name in ("log-length", "system-monitor", "tick"):
        sections["admin"].pop(name, None)
    rebalance = dask.config.get("distributed.worker.memory.rebalance", {})
    return {**sections, "worker": {"memory": {"rebalance": copy.deepcopy(rebalance)}}}


with utils_test.config_for_cluster_tests():
    ORDINARY_CONFIG = scheduler_config()


def changes(before, after):
    """The entries of a nested configuration that are new or other than before."""
    found = {}
    for key, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            if inner := changes(before[key], value):
                found[key] = inner
        elif key not in before or before[key] != value:
            found[key] = value
    return found


def config_file(nested, flat=None):
    """The environment of a process that reads this configuration from a file."""
    folder = tempfile.mkdtemp(prefix="own-tests-config-")
    with dask.config.set(flat or {}), open(os.path.join(folder, "config.yaml"), "w") as file:
        for key in flat or {}:
            at = nested
            *path, last = key.split(".")
            for name in path:
                at = at.setdefault(name, {})
            at[last] = flat[key]
        yaml.safe_dump(nested, file)
    return {"DASK_CONFIG": folder}


class Scheduler:
    """The scheduler that a test gets: it has an address and no state to look at."""

    def __init__(self):
        different = changes(ORDINARY_CONFIG, scheduler_config())
        self.ordinary = not different
        if self.ordinary and idle:
            self.process, self.address = idle.pop()
        else:
            env = None if self.ordinary else config_file({"distributed": different})
            self.process, self.address = start_process(env)
        self.ip, port = self.address[len("tcp://"):].rsplit(":", 1)
        self.port = int(port)

    async def close(self, *args, **kwargs):
        self.kill()

    def kill(self):
        self.process.kill()
        self.process.wait()

    async def workers(self):
        async with rpc(self.address) as scheduler:
            # Releases since 2025.4 name five workers unless they are asked for all.
            return (await scheduler.identity(n_workers=-1))["workers"].values()


async def start_cluster(
    nthreads, scheduler_addr, security=None, Worker=utils_test.Worker, scheduler_kwargs=None, worker_kwargs=None, timeout=10
):
    """In the place of the function that starts a cluster in the process of the test: the workers stay there."""
    scheduler = Scheduler()
    workers = [
        Worker(
            scheduler.address,
            nthreads=threads,
            name=name,
            security=security,
            host=host,
            **{**(worker_kwargs or {}), **(more[0] if more else {})},
        )
        for name, (host, threads, *more) in enumerate(nthreads)
    ]
    try:
        await asyncio.gather(*workers)
        for _ in range(1000):
            known = await scheduler.workers()
            if len(known) >= len(nthreads) and all(worker["status"] == "running" for worker in known):
                return scheduler, workers
            await asyncio.sleep(0.01)
        raise TimeoutError("the workers of the test did not start")
    except BaseException:
        scheduler.kill()
        raise


async def end_cluster(scheduler, workers):
    async def end(worker):
        try:
            await asyncio.wait_for(worker.close(), 5)
        except Exception:
            pass

    await asyncio.gather(*map(end, workers))
    if REUSE and scheduler.ordinary and await is_empty(scheduler):
        idle.append((scheduler.process, scheduler.address))
    else:
        scheduler.kill()


async def is_empty(scheduler):
    try:
        for _ in range(100):
            if not await asyncio.wait_for(scheduler.workers(), 5):
                return True
            await asyncio.sleep(0.02)
    except Exception:
        pass
    return False


def end_idle():
    while idle:
        process, _ = idle.pop()
        process.kill()
        process.wait()


atexit.register(end_idle)
utils_test.gen_cluster.__defaults__ = tuple(
    limit * PATIENCE if limit == 30 else limit for limit in utils_test.gen_cluster.__defaults__
)
if COMMAND:
    utils_test.run_scheduler = run_scheduler
    utils_test.start_cluster = start_cluster
    utils_test.end_cluster = end_cluster


def pytest_configure(config):
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(config, items):
    selected = [item for item in items if runs_outside(item, KINDS)]
    if ONLY:
        with open(ONLY) as file:
            names = {line.strip() for line in file}
        selected = [item for item in selected if item.nodeid in names]
    else:
        variants = collections.defaultdict(list)
        for item in selected:
            variants[item.fspath, item.originalname].append(item)
        selected = [item for found in variants.values() for item in found[:VARIANTS]]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(selected)])
    items[:] = selected


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    text = ""
    if report.failed:
        end_idle()  # Whatever the test has left there must not reach the next one.
        lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E  ")]
        text = " | ".join(lines[:2])[:400] or str(report.longrepr)[-300:]
    about = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 1), "why": text}
    with open(REPORT, "a") as file:
        file.write(json.dumps(about) + "\n")
