"""What concerns the cluster as a whole: workers that come and go, copies, restarts, settings."""

import distributed
from distributed import wait
from kit import Joined, address_of, brief, failure, names, slow, until


def inc(x):
    return x + 1


@slow
def case_retired_workers_hand_on_their_results(client):
    with Joined(client) as carol:
        futures = client.map(inc, range(5), workers=[carol.address], pure=False)
        wait(futures)
        retired = client.retire_workers([carol.address], close_workers=True, remove=True)
        known = names(client)
        return len(retired), until(lambda: "carol" not in known.values()), client.gather(futures), len(client.nthreads())


@slow
def case_results_of_a_dead_worker_are_computed_again(client):
    with Joined(client) as carol:
        futures = client.map(inc, range(5), workers=[carol.address], allow_other_workers=True, pure=False)
        wait(futures)
    return client.gather(futures)


def case_retire_nothing(client):
    return client.retire_workers([])


@brief
def case_replicate(client):
    f = client.submit(inc, 1, pure=False)
    wait(f)
    client.replicate([f], n=2)
    twice = until(lambda: len(client.who_has([f])[f.key]) == 2)
    client.replicate([f], n=1)
    return twice, f.result()


@brief
def case_rebalance(client):
    alice = address_of(client, "alice")
    futures = client.scatter([bytes(2000) + bytes([n]) for n in range(10)], workers=[alice])
    client.rebalance()
    return [len(value) for value in client.gather(futures)]


@brief
def case_amm(client):
    before = client.amm.running()
    client.amm.stop()
    stopped = client.amm.running()
    client.amm.start()
    started = client.amm.running()
    client.amm.run_once()
    if not before:
        client.amm.stop()
    return before, stopped, started, client.amm.running()


def case_copies_are_reduced(client):
    f = client.submit(inc, 1, pure=False, workers=["alice"])
    others = client.map(lambda x, n: x + n, [f] * 4, range(4), workers=["bob"], pure=False)
    wait(others)
    running = client.amm.running()
    client.amm.start()
    client.amm.run_once()
    reduced = until(lambda: len(client.who_has([f])[f.key]) == 1)
    if not running:
        client.amm.stop()
    return reduced, client.gather(others)


def case_wait_for_workers(client):
    return client.wait_for_workers(2), failure(client.wait_for_workers, 9, timeout=0.2)[0]


@slow
def case_restart(client):
    f = client.submit(inc, 1, pure=False)
    f.result()
    before = client.run(lambda dask_worker: dask_worker.id)
    client.restart()
    client.wait_for_workers(2, timeout=40)
    after = client.run(lambda dask_worker: dask_worker.id)
    return f.status, failure(f.result)[0], len(set(before.values()) & set(after.values())), client.submit(inc, 2).result()


@slow
def case_restart_of_one_worker(client):
    bob = address_of(client, "bob")
    result = client.restart_workers([bob], timeout=40)
    client.wait_for_workers(2, timeout=40)
    return list((result or {}).values()), sorted(names(client).values()), client.submit(inc, 3).result()


def case_settings_of_the_client(client):
    with distributed.Client(client.scheduler.address, set_as_default=False, name="special") as other:
        return other.id.startswith("Client-special"), other.submit(inc, 1).result(), other.status


@brief
def case_many_clients(client):
    values = []
    for n in range(5):
        with distributed.Client(client.scheduler.address, set_as_default=False) as other:
            values.append(other.submit(inc, n, pure=False).result())
    return values


def case_cluster_of_scheduler_address(client):
    return client.cluster, client.asynchronous, len(client.scheduler_info()["workers"])
