"""What a task that does nothing costs on Dask's LocalCluster. Prints one JSON line.

usage: dask_local_cluster.py map|latency TASKS WORKERS THREADS ROUNDS PROCESSES
PROCESSES is 1 for workers in processes of their own, 0 for threads of this one. Two hundred tasks
run first, unmeasured. Of the rounds the one with the median CPU time counts.
Needs the packages distributed (2022.12 or near it) and psutil.
"""
import json
import logging
import os
import sys
import time

import distributed
import psutil

logging.getLogger("distributed").setLevel(logging.ERROR)
WARM_UP_TASKS = 200


def increment(value):
    return value + 1


def cpu_seconds():
    """Of this process and of those that it has started, user and system."""
    here = psutil.Process()
    family = [here, *here.children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in family)


def map_all(client, values):
    futures = client.map(increment, values)
    results = client.gather(futures)
    assert results == [value + 1 for value in values]
    return []


def one_by_one(client, values):
    latencies = []
    for value in values:
        start = time.perf_counter()
        client.submit(increment, value).result()
        latencies.append((time.perf_counter() - start) * 1000)
    return latencies


def measure(run, client, values):
    cpu, start = cpu_seconds(), time.perf_counter()
    latencies = run(client, values)
    seconds = time.perf_counter() - start
    return {
        "tasksPerS": len(values) / seconds,
        "cpuUsPerTask": (cpu_seconds() - cpu) / len(values) * 1e6,
        "latencies": sorted(latencies),
    }


def main():
    what = sys.argv[1]
    tasks, workers, threads, rounds, processes = (int(given) for given in sys.argv[2:7])
    run = {"map": map_all, "latency": one_by_one}[what]
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=bool(processes),
        dashboard_address=None,
        memory_limit=0,
    )
    with cluster, distributed.Client(cluster) as client:
        map_all(client, list(range(-WARM_UP_TASKS, 0)))
        measured = [
            measure(run, client, list(range(turn * tasks, (turn + 1) * tasks)))
            for turn in range(rounds)
        ]
    middle = sorted(measured, key=lambda each: each["cpuUsPerTask"])[rounds // 2]
    line = {
        "bench": "dask-end-to-end",
        "what": what,
        "tasks": tasks,
        "mode": "processes" if processes else "threads",
        "workers": workers,
        "threads": threads,
        "tasksPerS": round(middle["tasksPerS"], 1),
        "cpuUsPerTask": round(middle["cpuUsPerTask"], 1),
        "dask": distributed.__version__,
        "load": os.getloadavg()[0],
    }
    latencies = middle["latencies"]
    if latencies:
        line["p50Ms"] = round(latencies[len(latencies) // 2], 3)
        line["p99Ms"] = round(latencies[int(len(latencies) * 0.99)], 3)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
