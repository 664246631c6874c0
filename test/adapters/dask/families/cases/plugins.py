"""Plugins of workers, nannies and the scheduler, files for workers."""

import importlib
import os
import tempfile
import time

from distributed import NannyPlugin, SchedulerPlugin, WorkerPlugin, get_worker
from kit import brief, failure, slow


def inc(x):
    return x + 1


def register(client, plugin, kind="worker", name=None):
    """`register_plugin` of new releases has a method for each kind in old ones."""
    if hasattr(client, "register_plugin"):
        client.register_plugin(plugin, name=name)
    elif kind == "scheduler":
        client.register_scheduler_plugin(plugin, name=name)
    else:
        client.register_worker_plugin(plugin, name=name, nanny=kind == "nanny")


def remove(client, name, kind="worker"):
    if kind == "worker":
        return client.unregister_worker_plugin(name)
    if kind == "scheduler":
        return client.unregister_scheduler_plugin(name)
    return client.unregister_worker_plugin(name, nanny=True)


class Noting(WorkerPlugin):
    name = "noting"

    def __init__(self, mark):
        self.mark = mark

    def setup(self, worker):
        worker.mark = self.mark
        worker.steps = []

    def teardown(self, worker):
        worker.mark = None

    def transition(self, key, start, finish, **kwargs):
        self.last = (start, finish)


@brief
def case_worker_plugin(client):
    register(client, Noting("first"), name="noting")
    first = client.submit(lambda: get_worker().mark, pure=False).result()
    steps = sorted(set(client.run(lambda dask_worker: list(dask_worker.plugins)[-1]).values()))
    remove(client, "noting")
    after = sorted(map(str, client.run(lambda dask_worker: dask_worker.mark).values()))
    return first, steps, after, failure(remove, client, "noting")


class Failing(WorkerPlugin):
    name = "failing"

    def setup(self, worker):
        raise RuntimeError("no setup")


def case_worker_plugin_that_fails(client):
    error = failure(register, client, Failing(), name="failing")
    try:
        remove(client, "failing")
    except Exception:
        pass
    return error


class Variables(NannyPlugin):
    name = "variables"
    restart = False

    def setup(self, nanny):
        nanny.marked = "nanny"

    def teardown(self, nanny):
        nanny.marked = None


def case_nanny_plugin(client):
    register(client, Variables(), kind="nanny", name="variables")
    found = sorted(client.run(lambda dask_worker: dask_worker.marked, nanny=True).values())
    remove(client, "variables", kind="nanny")
    return found, sorted(map(str, client.run(lambda dask_worker: dask_worker.marked, nanny=True).values()))


class Watching(SchedulerPlugin):
    name = "watching"

    def __init__(self):
        self.steps = []

    async def start(self, scheduler):
        self.scheduler = scheduler

    def transition(self, key, start, finish, *args, **kwargs):
        if key == "watched":
            self.steps.append((start, finish))


@brief
def case_scheduler_plugin(client):
    register(client, Watching(), kind="scheduler", name="watching")
    f = client.submit(inc, 1, key="watched")
    f.result()

    def steps(dask_scheduler):
        return list(dask_scheduler.plugins["watching"].steps)

    for _ in range(100):
        found = client.run_on_scheduler(steps)
        if len(found) >= 3:
            break
        time.sleep(0.02)
    if hasattr(client, "unregister_scheduler_plugin"):
        remove(client, "watching", kind="scheduler")
    return found


class Starting(SchedulerPlugin):
    name = "starting"

    def start(self, scheduler):
        raise RuntimeError("no start")


def case_scheduler_plugin_that_fails(client):
    return failure(register, client, Starting(), kind="scheduler", name="starting")


@brief
def case_upload_file(client):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "families_uploaded.py")
        with open(path, "w") as out:
            out.write("def answer():\n    return 42\n")
        client.upload_file(path)

    def use():
        return importlib.import_module("families_uploaded").answer()

    return client.gather(client.map(lambda _, f=use: f(), range(4), pure=False)), sorted(client.run(use).values())


@slow
def case_upload_directory(client):
    from distributed.diagnostics.plugin import UploadDirectory

    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "families_package")
        os.mkdir(package)
        with open(os.path.join(package, "__init__.py"), "w") as out:
            out.write("ANSWER = 7\n")
        register(client, UploadDirectory(package, restart=False, update_path=True), kind="nanny")
    client.restart()
    client.wait_for_workers(2, timeout=40)
    return sorted(client.run(lambda: importlib.import_module("families_package").ANSWER).values())


@slow
def case_environment_plugin(client):
    from distributed.diagnostics.plugin import Environ

    register(client, Environ({"FAMILIES_VARIABLE": "5"}), kind="nanny")
    client.restart()
    client.wait_for_workers(2, timeout=40)
    return sorted(client.run(lambda: os.environ.get("FAMILIES_VARIABLE")).values())


def case_setup_by_callback(client):
    if not hasattr(client, "register_worker_callbacks"):
        return None

    def setup(dask_worker):
        dask_worker.called_back = "yes"

    client.register_worker_callbacks(setup)
    return sorted(client.run(lambda dask_worker: dask_worker.called_back).values())
