"""Dask's scheduler on the graphs of the benchmark, in process, without network. Prints one JSON line.

usage: dask_scheduler.py SHAPE TASKS WORKERS SATURATION THREADS
Needs the package distributed (2022.12 or near it). Workers answer at once, so only the scheduler counts.
"""
import asyncio
import collections
import gc
import json
import logging
import os
import sys
import time

import dask
import dask.core
import dask.order

shape, count, workers, saturation, threads = sys.argv[1:6]
count, workers, threads = int(count), int(workers), int(threads)
dask.config.set(
    {"distributed.scheduler.worker-saturation": saturation if saturation == "inf" else float(saturation)}
)

from distributed.scheduler import ClientState, Scheduler  # noqa: E402
from dask_shapes import SHAPES  # noqa: E402
from dask_workers import add_worker  # noqa: E402

logging.getLogger("distributed").setLevel(logging.ERROR)


class Sink:
    """Stands for the connection to a worker or a client: counts, and keeps what is to compute."""

    def __init__(self, address, queue):
        self.address, self.queue, self.sent = address, queue, 0

    def send(self, *messages):
        self.sent += len(messages)
        for message in messages:
            if message.get("op") == "compute-task":
                self.queue.append((self.address, message["key"]))


async def main():
    scheduler = Scheduler(dashboard_address=None, dashboard=False)
    queue = collections.deque()
    scheduler.clients["bench"] = ClientState("bench")
    scheduler.client_comms["bench"] = Sink("bench", collections.deque())
    for number in range(workers):
        add_worker(scheduler, number, threads, lambda address: Sink(address, queue))
    graph, keys = SHAPES[shape](count)
    total = len(graph)
    dependencies = {key: dask.core.get_dependencies(graph, key) for key in graph}
    before = time.process_time()
    priority = dask.order.order(graph, dependencies=dependencies)
    order = time.process_time() - before
    specs = {key: b"x" * 50 for key in graph}
    del graph
    gc.collect()
    before = time.process_time()
    scheduler.update_graph(
        client="bench", tasks=specs, keys=keys, dependencies=dependencies, priority=priority, stimulus_id="g"
    )
    update = time.process_time() - before
    before, done, now = time.process_time(), 0, time.time()
    while queue:
        address, key = queue.popleft()
        scheduler.handle_task_finished(
            key=key, worker=address, stimulus_id=f"task-finished-{done}", nbytes=1000, type=b"int",
            typename="int", metadata={}, thread=1,
            startstops=[{"action": "compute", "start": now, "stop": now + 0.01}],
        )
        done += 1
    run = time.process_time() - before
    before = time.process_time()
    scheduler.client_releases_keys(keys=keys, client="bench", stimulus_id="r")
    release = time.process_time() - before
    assert not scheduler.tasks, len(scheduler.tasks)

    def per_task(seconds):
        return round(seconds / total * 1e6, 2)

    print(json.dumps({
        "bench": "dask-scheduler", "shape": shape, "workers": workers, "saturation": saturation,
        "threads": threads, "tasks": total, "executed": done,
        "usPerTask": per_task(update + run + release), "usOrder": per_task(order),
        "usGraph": per_task(update), "usRun": per_task(run), "usRelease": per_task(release),
    }))
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main())
