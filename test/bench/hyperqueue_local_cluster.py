"""What a task that does nothing costs on HyperQueue's LocalCluster. Prints one JSON line.

usage: hyperqueue_local_cluster.py TASKS WORKERS ROUNDS
Server, workers (one core each) and client are threads of this process. A task of HyperQueue is a
program, and the one that does nothing is "true". cpuUsPerTask is the CPU time of this process,
programUsPerTask that of the programs. A round with a tenth of the tasks runs first, unmeasured; of the
rounds the one with the median CPU time counts. Needs the package hyperqueue (0.27 or near it), which listens
on all addresses: run it where only the loopback device exists (unshare --net).
"""
import json
import os
import resource
import shutil
import sys
import tempfile
import time

os.environ["TQDM_DISABLE"] = "1"

import hyperqueue
from hyperqueue.cluster import WorkerConfig

POLL_SECONDS = 0.01


class Unfinished(Exception):
    """Ends a call of wait_for_jobs, which would look again only after a second."""


def cpu_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def check(jobs):
    for job in jobs.values():
        if job["failed"]:
            raise SystemExit(f"{job['failed']} tasks have failed")
        if not job["completed"]:
            raise Unfinished


def map_all(client, tasks):
    job = hyperqueue.Job()
    for _ in range(tasks):
        job.program(["true"], stdout=None, stderr=None)
    submitted = client.submit(job)
    while True:
        try:
            client.connection.wait_for_jobs((submitted.id,), check)
            return client.forget(submitted)
        except Unfinished:
            time.sleep(POLL_SECONDS)


def measure(client, tasks):
    own, programs = (cpu_seconds(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    start = time.perf_counter()
    map_all(client, tasks)
    seconds = time.perf_counter() - start
    return {
        "tasksPerS": tasks / seconds,
        "cpuUsPerTask": (cpu_seconds(resource.RUSAGE_SELF) - own) / tasks * 1e6,
        "programUsPerTask": (cpu_seconds(resource.RUSAGE_CHILDREN) - programs) / tasks * 1e6,
    }


def main():
    tasks, workers, rounds = (int(given) for given in sys.argv[1:4])
    folder = tempfile.mkdtemp()
    os.environ["TMPDIR"] = folder  # Workers leave files there.
    os.chdir(folder)
    cluster = hyperqueue.LocalCluster(folder)
    try:
        for _ in range(workers):
            cluster.start_worker(WorkerConfig(cores=1))
        client = cluster.client()
        map_all(client, max(1, tasks // 10))
        measured = [measure(client, tasks) for _ in range(rounds)]
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
    middle = sorted(measured, key=lambda each: each["cpuUsPerTask"])[rounds // 2]
    line = {name: round(value, 1) for name, value in middle.items()}
    line |= {"hyperqueue": hyperqueue.get_version(), "load": os.getloadavg()[0]}
    print(json.dumps(line))


if __name__ == "__main__":
    main()
