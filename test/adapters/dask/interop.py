"""What people do with Dask, done with the scheduler that listens at an address.

    interop.py ADDRESS

Prints one line of JSON for each fact: {"fact", "seconds", "error"}. Needs two workers with one thread
each, the first of which is named `alice` and has the resource `GPU`.
"""

import gc
import json
import operator
import os
import sys
import time
import traceback
import warnings

import numpy as np

import dask
import dask.array as da
import distributed
from distributed import (
    Client,
    Event,
    Lock,
    Queue,
    Semaphore,
    Variable,
    as_completed,
    get_client,
    get_worker,
    secede,
    wait,
    worker_client,
)

VERSION = tuple(int(part) for part in distributed.__version__.split("+")[0].split(".")[:2])
FACTS = {}


def fact(text):
    def keep(function):
        FACTS[text] = function
        return function

    return keep


def inc(x):
    return x + 1


def where(*_):
    return get_worker().address


def slow(x, delay=0.05):
    time.sleep(delay)
    return x


def boom(x):
    raise KeyError(f"no {x}")


class Counter:
    n = 0

    def __init__(self):
        self.n = 0

    def add(self, m):
        self.n += m
        return self.n


class Unreadable:
    """Fails where it is unpickled."""

    def __reduce__(self):
        return int, ("unreadable",)


def raises(kind, function, *args):
    try:
        function(*args)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


@fact("functions are called, and results come back")
def _(client):
    assert client.submit(inc, 1).result() == 2
    assert client.gather(client.map(inc, range(100))) == list(range(1, 101))
    assert client.submit(lambda x: x * 2, 21).result() == 42


@fact("a future can be the argument of a function")
def _(client):
    x = client.submit(inc, 1, pure=False)
    assert client.submit(sum, [client.submit(inc, x), x, 10]).result() == 15


@fact("an exception arrives as what it was, with its traceback")
def _(client):
    future = client.submit(boom, 7)
    error = raises(KeyError, future.result)
    assert "no 7" in str(error)
    lines = "".join(traceback.format_tb(future.traceback()))
    assert "boom" in lines, lines
    dependent = client.submit(inc, future)
    raises(KeyError, dependent.result)


@fact("delayed graphs are computed")
def _(client):
    layer = [dask.delayed(inc)(i) for i in range(64)]
    while len(layer) > 1:
        layer = [dask.delayed(operator.add)(a, b) for a, b in zip(layer[::2], layer[1::2])]
    assert layer[0].compute() == sum(range(1, 65))


@fact("arrays are as NumPy has them")
def _(client):
    numbers = np.arange(10_000.0).reshape(100, 100)
    x = da.from_array(numbers, chunks=(25, 30))
    assert np.allclose((x @ x.T + 1).mean(axis=0).compute(), (numbers @ numbers.T + 1).mean(axis=0))
    assert np.allclose(x.rechunk((50, 20)).std(axis=1).compute(), numbers.std(axis=1))
    persisted = (x + 1).persist()
    assert np.allclose(persisted.sum().compute(), (numbers + 1).sum())


@fact("data frames are as pandas has them")
def _(client):
    import pandas as pd

    import dask.dataframe as dd

    table = pd.DataFrame({"a": np.arange(1000) % 7, "b": np.arange(1000)})
    parts = dd.from_pandas(table, npartitions=5)
    got = parts.groupby("a").b.sum().compute().sort_index()
    assert (got == table.groupby("a").b.sum()).all()


@fact("rows are exchanged between partitions")
def _(client):
    import pandas as pd

    import dask.dataframe as dd

    table = pd.DataFrame({"a": np.arange(1000) * 37 % 1000, "b": np.arange(1000)})
    parts = dd.from_pandas(table, npartitions=6)
    assert parts.shuffle("a").b.sum().compute() == table.b.sum()
    ordered = parts.set_index("a").b.compute()
    assert (ordered == table.set_index("a").sort_index().b).all()
    joined = parts.merge(dd.from_pandas(table, npartitions=4), on="a").compute()
    assert len(joined) == 1000 and (joined.b_x == joined.b_y).all()


@fact("data is scattered, also to all workers")
def _(client):
    data = np.arange(1000)
    future = client.scatter(data)
    assert (future.result() == data).all()
    assert client.submit(np.sum, future).result() == data.sum()
    everywhere = client.scatter({"x": 1.0}, broadcast=True)["x"]
    assert all(len(holders) == 2 for holders in client.who_has([everywhere]).values())
    assert type(everywhere.result()) is float


@fact("two hundred megabytes pass through")
def _(client):
    data = np.ones(25_000_000)
    future = client.scatter(data, direct=False)
    assert client.submit(np.sum, future, pure=False).result() == 25_000_000
    assert future.result().nbytes == 200_000_000


@fact("tasks run where they have to")
def _(client):
    workers = client.scheduler_info()["workers"]
    alice = next(address for address, facts in workers.items() if facts["name"] == "alice")
    for place in ("alice", alice, [alice]):
        addresses = client.gather(client.map(where, range(6), workers=place, pure=False))
        assert set(addresses) == {alice}, addresses
    with dask.annotate(resources={"GPU": 1}):
        assert dask.delayed(where)(1).compute() == alice
    assert client.submit(where, pure=False, resources={"GPU": 1}).result() == alice
    nowhere = client.submit(inc, 1, workers="127.0.0.9", allow_other_workers=True, pure=False)
    assert nowhere.result() == 2


@fact("a task that fails is tried again, as often as it was said")
def _(client):
    counter = client.submit(Counter, actor=True).result()

    def flaky(counter):
        if counter.add(1).result() < 3:
            raise ValueError("not yet")
        return "done"

    assert client.submit(flaky, counter, retries=5, pure=False).result() == "done"
    failing = client.submit(boom, 1, pure=False)
    wait(failing)
    failing.retry()
    raises(KeyError, failing.result)


@fact("actors keep their state")
def _(client):
    counter = client.submit(Counter, actor=True).result()
    for index in range(10):
        counter.add(1).result()
    assert counter.add(5).result() == 15
    assert counter.n == 15


@fact("futures are cancelled")
def _(client):
    future = client.submit(slow, 1, 2, pure=False)
    client.cancel(future)
    raises(distributed.client.CancelledError, future.result)
    assert future.cancelled()


@fact("results come in the order in which they are there")
def _(client):
    futures = client.map(slow, range(8), pure=False)
    assert sorted(result for _, result in as_completed(futures, with_results=True)) == list(range(8))


@fact("locks, events, variables, queues and semaphores are shared")
def _(client):
    def add_safely(name):
        with Lock(name):
            variable = Variable(f"{name}-sum")
            variable.set(variable.get(timeout="5s") + 1)

    Variable("together-sum").set(0)
    client.gather(client.map(add_safely, ["together"] * 8, pure=False))
    assert Variable("together-sum").get() == 8

    waiting = client.submit(lambda: Event("go").wait(timeout="10s"), pure=False)
    Event("go").set()
    assert waiting.result()

    queue = Queue("results", maxsize=100)
    client.gather(client.map(lambda x: Queue("results").put(x * 1.0), range(5), pure=False))
    got = sorted(queue.get(timeout="5s") for _ in range(5))
    assert got == [0.0, 1.0, 2.0, 3.0, 4.0] and type(got[0]) is float

    semaphore = Semaphore(max_leases=1, name="one")

    def guarded(semaphore):
        with semaphore:
            return 1

    assert sum(client.gather(client.map(guarded, [semaphore] * 4, pure=False))) == 4


@fact("data sets are published")
def _(client):
    future = client.submit(inc, 41, pure=False)
    client.publish_dataset(answer=future)
    assert "answer" in client.list_datasets()
    with Client(client.scheduler.address, set_as_default=False) as other:
        assert other.get_dataset("answer").result() == 42
    client.unpublish_dataset("answer")


@fact("tasks submit tasks")
def _(client):
    def fibonacci(n):
        if n < 2:
            return n
        with worker_client() as inner:
            futures = inner.map(fibonacci, [n - 1, n - 2])
            return sum(inner.gather(futures))

    assert client.submit(fibonacci, 5).result() == 5

    def seceding():
        inner = get_client()
        futures = inner.map(inc, range(4), pure=False)
        secede()
        return sum(inner.gather(futures))

    assert client.submit(seceding, pure=False).result() == 10


@fact("functions run on all workers")
def _(client):
    processes = client.run(os.getpid)
    assert len(set(processes.values())) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions = client.get_versions(check=True)
    assert len(versions["workers"]) == 2


@fact("a function runs beside the scheduler")
def _(client):
    assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.workers)) == 2


@fact("a graph that cannot be read fails, and the client goes on")
def _(client):
    if VERSION < (2023, 4):
        return  # Its graphs are not read by anybody but the workers.
    raises(Exception, client.submit(inc, Unreadable(), pure=False).result)
    assert client.submit(inc, 1, pure=False).result() == 2


@fact("keys are texts and tuples, and prefixes count together")
def _(client):
    future = client.submit(inc, 1, key="a-key")
    assert future.result() == 2
    assert list(client.who_has([future])) == ["a-key"]
    if VERSION >= (2023, 9):
        future = client.submit(inc, 2, key=("tuple", 0, 1))
        assert future.result() == 3
        assert list(client.who_has([future])) == [("tuple", 0, 1)]


@fact("work that was given to one worker is stolen by the other")
def _(client):
    workers = list(client.nthreads())
    # The inputs are on one worker, and small: the tasks that need them begin there.
    data = client.scatter(np.ones(10), workers=[workers[0]])
    client.gather(client.map(slow, range(4), delay=0.05, pure=False))
    futures = client.map(lambda i, x: (time.sleep(0.05), where())[1], range(40), [data] * 40)
    addresses = client.gather(futures)
    assert len(set(addresses)) == 2, addresses


@fact("copies that nobody needs are dropped")
def _(client):
    here, there = client.nthreads()
    # It runs every two seconds otherwise, and may drop the copy before it is counted.
    client.amm.stop()
    future = client.submit(np.ones, 100, workers=[here], pure=False)
    wait(client.submit(np.sum, future, workers=[there], pure=False))
    assert len(list(client.who_has([future]).values())[0]) == 2
    client.amm.start()
    assert client.amm.running()
    client.amm.run_once()
    deadline = time.time() + 20
    while len(list(client.who_has([future]).values())[0]) > 1:
        assert time.time() < deadline, "there are still two copies"
        time.sleep(0.05)
    client.amm.stop()
    assert future.result().sum() == 100


@fact("a large graph is computed")
def _(client):
    width = int(os.environ.get("INTEROP_TASKS", "10000")) // 20
    graph = {}
    for part in range(10):
        for index in range(width):
            graph[f"leaf-{part}-{index}"] = (inc, index)
            graph[f"next-{part}-{index}"] = (inc, f"leaf-{part}-{index}")
        graph[f"part-{part}"] = (sum, [f"next-{part}-{index}" for index in range(width)])
    graph["total"] = (sum, [f"part-{part}" for part in range(10)])
    assert client.get(graph, "total") == 10 * (sum(range(width)) + 2 * width)


@fact("a worker that is retired hands its results over")
def _(client):
    # Actors cannot leave, so that a worker with one would stay.
    actors = client.run(lambda dask_worker: len(dask_worker.state.actors))
    leaving = min(actors, key=actors.get)
    futures = client.map(inc, range(20), workers=[leaving], pure=False)
    wait(futures)
    client.retire_workers([leaving])
    assert leaving not in client.nthreads(), client.has_what()
    assert client.gather(futures) == list(range(1, 21))


def main():
    wanted = sys.argv[2:]
    with Client(sys.argv[1], timeout="30s") as client:
        client.wait_for_workers(2, timeout=60)
        for text, check in FACTS.items():
            if wanted and not any(word in text for word in wanted):
                continue
            gc.collect()  # What a failure held alive may hold actors.
            start = time.perf_counter()
            error = None
            try:
                check(client)
            except Exception:
                error = traceback.format_exc()
            seconds = round(time.perf_counter() - start, 3)
            print(json.dumps({"fact": text, "seconds": seconds, "error": error}), flush=True)


if __name__ == "__main__":
    main()
