"""Futures: submission, movement, waiting, and what tasks may ask for."""

import inspect
import operator
import os
import time

import dask
import distributed
from distributed import as_completed, fire_and_forget, get_client, get_worker, rejoin, secede, wait, worker_client
from kit import Skip, address_of, brief, failure, names, slow, stock_fails


def inc(x):
    return x + 1


def place(*_):
    return get_worker().name


def boom(x):
    raise KeyError(f"no {x}")


def late(x, s=0.05):
    time.sleep(s)
    return x


class Counter:
    n = 0

    def __init__(self, start=0):
        self.n = start

    def add(self, m):
        self.n += m
        return self.n

    def bad(self):
        raise IndexError("actor")


@brief
def case_submit_and_map(client):
    futures = client.map(operator.add, range(8), range(8))
    return client.submit(inc, 1).result(), client.gather(futures), client.submit(sum, futures).result()


def case_map_in_batches_and_chains(client):
    first = client.map(inc, range(30), batch_size=7)
    return client.gather(client.map(inc, first)), client.gather(client.map(late, range(3), s=0.01, key="given"))


def case_futures_nested_in_arguments(client):
    a = client.submit(inc, 1)
    return client.submit(lambda tree: (tree["x"][0] + 1, tree["y"]), {"x": [a], "y": 2}).result()


def case_keys(client):
    a = client.submit(inc, 1, key="some key")
    b = client.map(inc, [1, 2], key=["k1", "k2"])
    return a.result(), a.key, [f.key for f in b], client.gather(b), a.status, repr(a.type)


@brief
def case_errors(client):
    f = client.submit(boom, 1)
    g = client.submit(inc, f)
    wait([f, g])
    lines = distributed.client.futures_of([f])[0].traceback()
    return failure(f.result), failure(g.result), f.status, type(g.exception()).__name__, lines is not None


@brief
def case_gather_skips_errors(client):
    futures = [client.submit(inc, 1), client.submit(boom, 2), client.submit(inc, 3)]
    return client.gather(futures, errors="skip"), failure(client.gather, futures)


def case_gather_of_structures(client):
    tree = {"a": client.submit(inc, 1), "b": [client.submit(inc, 2)]}
    return client.gather(tree), client.gather(client.submit(inc, 5), direct=True)


def case_scatter_forms(client):
    x = client.scatter(5)
    y = client.scatter([1, 2])
    z = client.scatter({"named": 3})
    return x.result(), client.gather(y), list(z), z["named"].key, client.submit(inc, z["named"]).result()


@brief
def case_scatter_to_workers(client):
    bob = address_of(client, "bob")
    f = client.scatter([10, 11], workers=[bob])
    everywhere = client.scatter("everywhere", broadcast=True)
    holders = client.who_has([everywhere])[everywhere.key]
    known = names(client)
    placed = [[known[a] for a in who] for who in client.who_has(f).values()]
    return placed, len(holders), client.scatter(7, direct=True).result()


def case_scatter_without_hash(client):
    a, b = client.scatter(1, hash=False), client.scatter(1, hash=False)
    return a.key == b.key, client.scatter(1).key == client.scatter(1).key


@brief
def case_retry(client):
    f = client.submit(boom, 1, pure=False)
    wait(f)
    f.retry()
    wait(f, timeout=20)
    done = client.submit(inc, 4, pure=False)
    done.result()
    done.retry()
    return f.status, failure(f.result), done.result(timeout=20)


def case_retries(client):
    counter = client.submit(Counter, actor=True, pure=False).result()

    def flaky(counter):
        if counter.add(1).result() < 3:
            raise ValueError("not yet")
        return "done"

    return client.submit(flaky, counter, retries=4, pure=False).result(), failure(
        client.submit(flaky, client.submit(Counter, -9, actor=True).result(), retries=1, pure=False).result
    )


@brief
def case_cancel(client):
    f = client.submit(late, 1, 0.3, pure=False)
    g = client.submit(inc, f)
    client.cancel(f)
    return f.status, f.cancelled(), failure(f.result)[0], failure(g.result, timeout=20)[0], client.submit(inc, 8).result()


def case_release_and_forget(client):
    f = client.submit(inc, 1, pure=False)
    f.result()
    key = f.key
    f.release()
    for _ in range(400):
        if not client.run_on_scheduler(lambda dask_scheduler=None, key=key: key in dask_scheduler.tasks):
            return "forgotten", f.status
        time.sleep(0.02)


def case_priorities(client):
    block = [client.submit(late, n, 0.4, pure=False, workers=["bob"]) for n in range(2)]
    time.sleep(0.1)
    done = []
    futures = [
        client.submit(late, n, 0.05, priority=n, pure=False, workers=["bob"], key=f"p{n}") for n in (0, 10, 5, 20)
    ]
    for future in as_completed(futures):
        done.append(future.key)
    return sorted(done), done.index("p20") < done.index("p0"), client.gather(block)


@brief
def case_resources(client):
    futures = client.map(place, range(6), resources={"GPU": 1}, pure=False)
    f = client.submit(inc, 1, resources={"NONE": 1}, pure=False)
    time.sleep(0.2)
    return client.gather(futures), f.status


def case_restrictions(client):
    bob = address_of(client, "bob")
    return (
        client.gather(client.map(place, range(4), workers=["alice"], pure=False)),
        client.submit(place, workers=bob, pure=False).result(),
        client.submit(place, workers=["nowhere"], allow_other_workers=True, pure=False).result() in ("alice", "bob"),
    )


def case_annotated_submissions(client):
    with dask.annotate(workers=["alice"], priority=5):
        f = client.submit(place, pure=False)
        futures = client.map(place, range(3), pure=False)
    return f.result(), client.gather(futures)


@brief
def case_as_completed(client):
    futures = client.map(late, range(6), s=0.02, pure=False)
    batches = as_completed(client.map(inc, range(6)), with_results=True).batches()
    some = as_completed([client.submit(inc, 1, pure=False)])
    some.add(client.submit(inc, 2, pure=False))
    return (
        sorted(f.result() for f in as_completed(futures)),
        sorted(value for batch in batches for _, value in batch),
        sorted(f.result() for f in some),
        failure(list, as_completed([client.submit(boom, 3)], with_results=True)),
    )


def case_as_completed_within_a_time(client):
    if "timeout" not in inspect.signature(as_completed).parameters:
        raise Skip("not in this release")
    return failure(list, as_completed([client.submit(late, 1, 3, pure=False)], timeout=0.2))[0]


def case_wait(client):
    futures = [client.submit(late, n, s, pure=False) for n, s in ((0, 0.01), (1, 1.5))]
    first = wait(futures, return_when="FIRST_COMPLETED")
    slow_one = client.submit(late, 1, 3, pure=False)
    late_errors = failure(wait, slow_one, timeout=0.1)[0], failure(slow_one.result, timeout=0.1)[0]
    return len(first.done), len(first.not_done), late_errors


def case_callbacks(client):
    seen = []
    f = client.submit(inc, 4)
    f.add_done_callback(lambda future: seen.append(future.status))
    f.result()
    for _ in range(100):
        if seen:
            break
        time.sleep(0.02)
    return seen, f.done(), f.cancelled()


def case_fire_and_forget(client):
    variable = distributed.Variable("fired")

    def note():
        distributed.Variable("fired").set(5)

    fire_and_forget(client.submit(note, pure=False))
    value = variable.get(timeout="20s")
    variable.delete()
    return value


@brief
def case_actors(client):
    counter = client.submit(Counter, 5, actor=True, pure=False).result()
    values = [counter.add(2).result() for _ in range(4)]
    twin = client.submit(lambda c: c.add(10).result(), counter, pure=False).result()
    return values, twin, counter.n, failure(counter.bad().result), failure(lambda: counter.nothing)[0]


def case_actors_by_map(client):
    actors = client.gather(client.map(Counter, range(3), actors=True, pure=False))
    return sorted(actor.add(1).result() for actor in actors), type(actors[0]).__name__


@brief
def case_tasks_submit_tasks(client):
    def fibonacci(n):
        if n < 2:
            return n
        with worker_client() as inner:
            return sum(inner.gather(inner.map(fibonacci, [n - 1, n - 2])))

    return client.submit(fibonacci, 6).result()


@brief
def case_secede_and_rejoin(client):
    def parent():
        inner = get_client()
        futures = inner.map(inc, range(10), pure=False)
        secede()
        total = sum(inner.gather(futures))
        rejoin()
        return total

    return client.gather(client.map(lambda _, f=parent: f(), range(5), pure=False))


@stock_fails("there a scatter from within a task can wait for ever", before=(2023, 6))
def case_delayed_inside_tasks(client):
    def parent():
        return dask.delayed(sum)([dask.delayed(inc)(n) for n in range(4)]).compute()

    def other():
        with worker_client() as inner:
            return inner.get({"a": (inc, 1), "b": (inc, "a")}, "b"), inner.scatter(4).result()

    return client.submit(parent).result(), client.submit(other).result()


def case_worker_of_a_task(client):
    def about():
        worker = get_worker()
        return worker.name, worker.state.nthreads, worker.get_current_task(), type(worker.local_directory).__name__

    return client.submit(about, key="about", workers=["bob"]).result()


@brief
def case_reschedule(client):
    def once():
        worker = get_worker()
        if not hasattr(worker, "moved"):
            worker.moved = True
            raise distributed.Reschedule()
        return "moved"

    return client.submit(once, workers=["alice"], pure=False).result(timeout=30)


def case_many_small(client):
    return sum(client.gather(client.map(inc, range(500), pure=False)))


@slow
def case_thousands(client):
    futures = client.map(inc, range(1200), pure=False)
    return client.submit(sum, futures).result()


def case_large_results(client):
    f = client.submit(lambda n: b"x" * n, 5_000_000, workers=["alice"], pure=False)
    return client.submit(len, f, workers=["bob"], pure=False).result(), len(f.result())


@brief
def case_second_client(client):
    f = client.submit(inc, 41, key="shared")
    f.result()
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        mine = other.submit(inc, 0, key="shared")
        value = mine.result()
        looked_up = distributed.Future("shared", other).result()
    return value, looked_up, f.result()


def case_executor(client):
    with client.get_executor() as executor:
        futures = [executor.submit(inc, n) for n in range(4)]
        return [f.result() for f in futures], list(executor.map(inc, range(4))), failure(executor.submit(boom, 1).result)


def case_async_client(client):
    import asyncio

    async def main():
        async with distributed.Client(client.scheduler.address, asynchronous=True, set_as_default=False) as other:
            f = other.submit(inc, 1)
            return await f, await other.gather(other.map(inc, range(3)))

    return asyncio.run(main())


def case_coroutines_as_tasks(client):
    async def later(x):
        import asyncio

        await asyncio.sleep(0.01)
        return x * 2

    return client.gather(client.map(later, range(4), pure=False))


def case_environment_of_workers(client):
    if os.name == "nt":
        raise Skip("signals")
    return sorted(set(client.run(lambda: os.environ.get("OMP_NUM_THREADS")).values()))


def case_a_worker_that_dies_of_a_task(client):
    def die(path):
        if not os.path.exists(path):
            open(path, "w").close()
            os._exit(1)
        return "alive"

    path = os.path.join(dask.config.get("temporary-directory"), f"died-{os.getpid()}")
    value = client.submit(die, path, pure=False).result(timeout=50)
    client.wait_for_workers(2, timeout=40)
    return value
