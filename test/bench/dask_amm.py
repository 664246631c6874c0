"""CPU time of one round of Dask's Active Memory Manager on a scheduler without a network.

Usage: dask_amm.py reduce|retire TASKS WORKERS. Prints one line of JSON.
"""

import asyncio
import json
import logging
import os
import sys
import time

import dask

dask.config.set({"distributed.scheduler.worker-saturation": "inf"})

from distributed.active_memory_manager import (  # noqa: E402
    ActiveMemoryManagerExtension,
    ReduceReplicas,
    RetireWorker,
)
from distributed.core import Status  # noqa: E402
from distributed.scheduler import ClientState, Scheduler, WorkerState  # noqa: E402

KIND, TASKS, WORKERS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
logging.getLogger("distributed").setLevel(logging.ERROR)


class Counter:
    """Stands for a connection; counts what is sent."""

    def __init__(self):
        self.count = 0

    def send(self, *messages):
        self.count += len(messages)


def add_worker(scheduler, index):
    address = f"tcp://10.0.{index // 250}.{index % 250 + 1}:4000"
    worker = WorkerState(
        address=address,
        status=Status.running,
        pid=1,
        nthreads=2,
        memory_limit=2**33,
        name=address,
        local_directory="/tmp",
        services={},
        versions={},
        nanny="",
        extra={},
        server_id=address,
        scheduler=scheduler,
    )
    worker.metrics = {
        "memory": 10**9,
        "managed_bytes": 0,
        "spilled_bytes": {"memory": 0, "disk": 0},
    }
    worker.last_seen = time.time()
    scheduler.workers[address] = worker
    scheduler.running.add(worker)
    scheduler.total_nthreads += worker.nthreads
    scheduler.stream_comms[address] = Counter()
    return worker


def cpu_of_round(manager):
    before = time.process_time()
    manager.run_once()
    return time.process_time() - before


async def main():
    scheduler = Scheduler(dashboard_address=None, dashboard=False)
    scheduler.clients["c"] = ClientState("c")
    scheduler.client_comms["c"] = Counter()
    workers = [add_worker(scheduler, index) for index in range(WORKERS)]
    for index in range(TASKS):
        task = scheduler.new_task(f"x-{index}", None, "released")
        task.nbytes = 1000
        task.state = "memory"
        for copy in range(2 if KIND == "reduce" else 1):
            scheduler.add_replica(task, workers[(index + copy * 7) % WORKERS])
    first = rest = 0.0
    units = 0
    rounds = 1 if KIND == "reduce" else min(100, WORKERS)
    for leaving in workers[:rounds]:
        if KIND == "reduce":
            policy = ReduceReplicas()
            units += TASKS
        else:
            leaving.status = Status.closing_gracefully
            scheduler.running.discard(leaving)
            policy = RetireWorker(leaving.address)
            units += len(leaving.has_what)
        manager = ActiveMemoryManagerExtension(scheduler, {policy}, register=False, start=False)
        first += cpu_of_round(manager)
        # Dask forgets what it has asked for, and asks again.
        rest += cpu_of_round(manager)
        leaving.status = Status.running
        scheduler.running.add(leaving)
    line = {
        "bench": f"dask-amm-{KIND}",
        "tasks": TASKS,
        "workers": WORKERS,
        "rounds": rounds,
        "units": units / rounds,
        "ms": round(first / rounds * 1e3, 3),
        "usPerUnit": round(first / units * 1e6, 3),
        "msNothingToDo": round(rest / rounds * 1e3, 3),
    }
    print(json.dumps(line))
    sys.stdout.flush()
    os._exit(0)


asyncio.run(main())
