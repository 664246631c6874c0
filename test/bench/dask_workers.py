"""Workers for benchmarks of Dask's scheduler in process: they are registered and have no network."""
from distributed.core import Status
from distributed.scheduler import WorkerState


def add_worker(scheduler, number, threads, connection):
    """Registers a worker as the scheduler would. `connection(address)` stands for its stream."""
    address = f"tcp://10.0.{number // 250}.{number % 250 + 1}:4000"
    state = WorkerState(
        address=address, status=Status.running, pid=1, nthreads=threads, memory_limit=2**33,
        name=address, local_directory="", services={}, versions={}, nanny="", extra={},
        server_id=address, scheduler=scheduler,
    )
    scheduler.workers[address] = state
    scheduler.running.add(state)
    scheduler.total_nthreads += threads
    scheduler.aliases[address] = address
    scheduler.check_idle_saturated(state)
    scheduler.stream_comms[address] = connection(address)
    for plugin in list(scheduler.plugins.values()):
        plugin.add_worker(scheduler=scheduler, worker=address)
