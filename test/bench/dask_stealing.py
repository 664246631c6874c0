"""Rounds of Dask's work stealing, in process, without network. Prints one JSON line.

usage: dask_stealing.py TASKS WORKERS THREADS
Half of the workers have all tasks, then the other half joins. Nobody answers a request.
Needs the package distributed (2022.12 or near it).
"""
import asyncio
import json
import logging
import os
import sys
import time

import dask

tasks, workers, threads = (int(argument) for argument in sys.argv[1:4])
dask.config.set({"distributed.scheduler.worker-saturation": "inf"})

from distributed.scheduler import ClientState, Scheduler  # noqa: E402
from dask_workers import add_worker  # noqa: E402

logging.getLogger("distributed").setLevel(logging.ERROR)
ROUNDS = 5


class Sink:
    """Stands for the connection to a worker or a client: counts."""

    def __init__(self):
        self.sent = 0

    def send(self, *messages):
        self.sent += len(messages)


async def main():
    scheduler = Scheduler(dashboard_address=None, dashboard=False)
    scheduler.clients["bench"] = ClientState("bench")
    scheduler.client_comms["bench"] = Sink()
    for number in range(workers // 2):
        add_worker(scheduler, number, threads, lambda _: Sink())
    keys = [f"x-{number}" for number in range(tasks)]
    scheduler.update_graph(
        client="bench", tasks={key: b"x" * 50 for key in keys}, keys=keys, dependencies={},
        priority={key: rank for rank, key in enumerate(keys)}, stimulus_id="g",
    )
    scheduler.task_prefixes["x"].add_duration("compute", 0, 0.1)
    for number in range(workers // 2, workers):
        add_worker(scheduler, number, threads, lambda _: Sink())
    for state in scheduler.workers.values():
        scheduler.check_idle_saturated(state)
    stealing = scheduler.extensions["stealing"]
    times, requests = [], []
    for _ in range(ROUNDS):
        sent = sum(sink.sent for sink in scheduler.stream_comms.values())
        before = time.process_time()
        stealing.balance()
        times.append(round((time.process_time() - before) * 1e3, 3))
        requests.append(sum(sink.sent for sink in scheduler.stream_comms.values()) - sent)
    print(json.dumps({
        "bench": "dask-steal", "tasks": tasks, "workers": workers, "threads": threads,
        "firstMs": times[0], "laterMs": times[1:], "requests": requests,
        "usPerRequest": round(times[0] / max(1, requests[0]) * 1e3, 2),
    }))
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main())
