"""Locks, events, semaphores, queues, variables, data sets, topics."""

import time

import distributed
from distributed import Event, Lock, MultiLock, Queue, Semaphore, Variable, wait
from kit import Skip, brief, failure, slow


def inc(x):
    return x + 1


@brief
def case_lock(client):
    def add(name):
        with Lock(name):
            total = Variable(f"{name}-total")
            total.set(total.get(timeout="20s") + 1)

    Variable("lock-total").set(0)
    client.gather(client.map(add, ["lock"] * 8, pure=False))
    return Variable("lock-total").get()


def case_lock_states(client):
    lock, other = Lock("states"), Lock("states")
    first = lock.acquire()
    return first, other.acquire(timeout=0.1), lock.locked(), lock.release(), lock.locked(), failure(other.release)[0]


def case_event(client):
    event = Event("go")
    f = client.submit(lambda: Event("go").wait(timeout="20s"), pure=False)
    before = event.is_set(), event.wait(timeout=0.05)
    event.set()
    after = f.result(), event.is_set()
    event.clear()
    return before, after, event.is_set()


def case_multi_lock(client):
    a = MultiLock(["x", "y"])
    b = MultiLock(["y", "z"])
    return a.acquire(), b.acquire(timeout=0.1), a.release(), b.acquire(timeout=5), b.release()


@brief
def case_semaphore(client):
    semaphore = Semaphore(max_leases=2, name="two")

    def guarded(semaphore, n):
        with semaphore:
            time.sleep(0.01)
            return n

    return (
        sum(client.gather(client.map(lambda n, s=semaphore: guarded(s, n), range(6), pure=False))),
        semaphore.acquire(),
        semaphore.acquire(),
        semaphore.acquire(timeout=0.1),
        semaphore.get_value(),
        semaphore.release(),
        semaphore.get_value(),
        semaphore.close(),
        failure(semaphore.acquire)[0],
    )


def case_queue(client):
    queue = Queue("items", maxsize=3)
    for item in (1, "two", {"three": 3.0}):
        queue.put(item)
    full = queue.qsize(), failure(queue.put, 4, timeout=0.1)[0]
    return full, queue.get(), queue.get(batch=True), failure(queue.get, timeout=0.1)[0]


@brief
def case_futures_through_a_queue(client):
    queue = Queue("futures")
    found = []
    for n in range(20):
        queue.put(client.submit(inc, n, pure=False))
        found.append(queue.get(timeout=20).result(timeout=20))
    return found


def case_futures_from_tasks_through_a_queue(client):
    def produce(n):
        inner = distributed.get_client()
        future = inner.submit(inc, n, pure=False)
        Queue("produced").put(future)

    client.gather(client.map(produce, range(10), pure=False))
    queue = Queue("produced")
    return sorted(queue.get(timeout=20).result(timeout=20) for _ in range(10))


@brief
def case_variable(client):
    variable = Variable("value")
    values = []
    for value in (1, "text", [1, {"a": None}], 2.0):
        variable.set(value)
        values.append(variable.get())
    variable.delete()
    client.submit(inc, 1, pure=False).result()  # The deletion goes by the stream, which a request can overtake.
    return values, failure(Variable("value").get, timeout=0.1)[0]


@brief
def case_futures_through_a_variable(client):
    variable = Variable("future")
    found = []
    for n in range(20):
        variable.set(client.submit(inc, n, pure=False))
        found.append(variable.get(timeout=20).result(timeout=20))
    variable.delete()
    return found


@brief
def case_data_sets(client):
    f = client.submit(inc, 41, pure=False)
    client.publish_dataset(answer=f, plain=[1, 2])
    listed = list(client.list_datasets())
    again = failure(client.publish_dataset, answer=f)[0]
    client.publish_dataset(answer=client.submit(inc, 1), override=True)
    del f
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        values = other.get_dataset("answer").result(), other.get_dataset("plain"), sorted(other.datasets)
        missing = failure(other.get_dataset, "nothing")[0], other.get_dataset("nothing", default=3)
    client.unpublish_dataset("answer")
    client.unpublish_dataset("plain")
    return listed, again, values, missing, list(client.list_datasets())


def case_collections_as_data_sets(client):
    import dask.array as da

    client.publish_dataset(array=da.arange(10, chunks=3).persist())
    value = client.get_dataset("array").sum().compute()
    client.unpublish_dataset("array")
    return value


def case_topics_between_workers(client):
    if not hasattr(distributed, "Pub"):
        raise Skip("there is no Pub in this release")

    def listen(n):
        sub = distributed.Sub("topic")
        Queue("ready").put(n)
        return [sub.get(timeout=20) for _ in range(2)]

    def speak():
        pub = distributed.Pub("topic")
        for _ in range(200):
            if len(pub.subscribers) >= 1:
                break
            time.sleep(0.02)
        for n in range(2):
            pub.put(n)

    listening = client.submit(listen, 1, pure=False, workers=["alice"])
    Queue("ready").get(timeout=20)
    client.submit(speak, pure=False, workers=["bob"]).result()
    return listening.result()


@brief
def case_events_of_topics(client):
    def note(n):
        distributed.get_worker().log_event("family", {"n": n})

    client.log_event("family", {"by": "client"})
    client.gather(client.map(note, range(3), pure=False))
    for _ in range(200):
        events = client.get_events("family")
        if len(events) == 4:
            break
        time.sleep(0.02)
    return sorted(str(event) for _, event in events), client.get_events("no such topic")


def case_subscriptions_to_topics(client):
    seen = []
    client.subscribe_topic("told", lambda event: seen.append(event[1]))
    client.log_event("told", "one")
    client.log_event("told", {"two": 2})
    for _ in range(300):
        if len(seen) >= 2:
            break
        time.sleep(0.02)
    client.unsubscribe_topic("told")
    return seen


@slow
def case_an_event_of_a_client_that_leaves(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        Event("left", client=other).set()
    return Event("left").is_set()


def case_wait_for_many_events(client):
    waiting = client.map(lambda n: Event(f"e{n}").wait(timeout="20s"), range(3), pure=False)
    for n in range(3):
        Event(f"e{n}").set()
    wait(waiting)
    return client.gather(waiting)
