"""Workers that are killed in the middle of a shuffle, that spill, and that run out of memory."""

import time

import numpy as np
import pandas as pd

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Event, wait
from kit import Joined, brief, failure, needs, since, slow, until

PARTS = 8


def rows(part):
    """Some rows; from the sixth on a part tells that the work is well on its way, and takes its time."""
    if part >= 5:
        Event("on its way").set()
        time.sleep(0.3)
    numbers = np.arange(part, 8000, PARTS)
    return pd.DataFrame({"a": numbers * 37 % 101, "b": numbers})


def table():
    return dd.from_map(rows, range(PARTS), meta={"a": "i8", "b": "i8"})


def p2p():
    names = ("dataframe.shuffle.method", "dataframe.shuffle.algorithm", "array.rechunk.method")
    return dask.config.set(dict.fromkeys(names, "p2p"))


def while_a_worker_is_killed(client, collection):
    """The result; a worker is killed when a task of the collection has said that it is on its way."""
    event = Event("on its way")
    event.clear()
    with Joined(client) as carol:
        future = client.compute(collection)
        assert event.wait(timeout="30s")
        carol.kill()
        return future.result(timeout=50)


def as_expected(found, expected):
    return bool((found == expected).all()), found.sum()


@brief
@since(2023, 3)
def case_shuffle_whose_worker_is_killed_while_rows_are_sent(client):
    needs("pyarrow")
    with p2p():
        found = while_a_worker_is_killed(client, table().shuffle("a").groupby("a").b.sum())
    expected = pd.concat([rows(part) for part in range(PARTS)]).groupby("a").b.sum()
    return as_expected(found.sort_index(), expected)


@slow
@since(2023, 3)
def case_shuffle_whose_worker_is_killed_while_rows_are_read(client):
    needs("pyarrow")
    numbers = np.arange(8000)
    frame = pd.DataFrame({"a": numbers * 37 % 101, "b": numbers})

    def read(part):
        Event("on its way").set()
        time.sleep(0.3)
        return part

    with p2p():
        shuffled = dd.from_pandas(frame, npartitions=PARTS).shuffle("a").map_partitions(read, meta=frame.iloc[:0])
        found = while_a_worker_is_killed(client, shuffled.groupby("a").b.sum())
    return as_expected(found.sort_index(), frame.groupby("a").b.sum())


@slow
@since(2023, 3)
def case_merge_whose_worker_is_killed(client):
    needs("pyarrow")
    whole = pd.concat([rows(part) for part in range(PARTS)])
    right = pd.DataFrame({"b": np.arange(0, 8000, 3), "c": np.arange(0, 8000, 3) % 11})
    with p2p():
        merged = table().merge(dd.from_pandas(right, npartitions=5), on="b")
        found = while_a_worker_is_killed(client, merged.groupby("c").b.sum())
    return as_expected(found.sort_index(), whole.merge(right, on="b").groupby("c").b.sum())


@slow
@since(2023, 3)
def case_rechunk_whose_worker_is_killed(client):
    def block(x, block_info=None):
        rows(block_info[0]["chunk-location"][0])
        return x

    numbers = np.arange(6400.0).reshape(80, 80)
    with p2p():
        blocks = da.from_array(numbers, chunks=(10, 80)).map_blocks(block, dtype=float)
        found = while_a_worker_is_killed(client, (blocks.rechunk((80, 10)) + 1).sum(axis=0))
    return as_expected(found, (numbers + 1).sum(axis=0))


def megabytes(n):
    """Ten of them that cannot be compressed."""
    return np.random.default_rng(n).integers(0, 255, 10_000_000, dtype=np.uint8)


def last_and_sum(block):
    return int(block[-1]), int(block.sum())


@slow
def case_more_results_than_memory(client):
    """1.5 GB on two workers of 700 MB."""
    with Joined(client, "carol", memory="700MB") as carol, Joined(client, "dave", memory="700MB") as dave:
        places = [carol.address, dave.address]
        blocks = client.map(megabytes, range(150), workers=places, pure=False)
        wait(blocks)
        metrics = client.scheduler_info()["workers"]
        has_spilled = any(metrics[place]["metrics"]["spilled_bytes"]["disk"] > 10**8 for place in places)
        found = client.gather(client.map(last_and_sum, blocks, workers=places, pure=False))
        return has_spilled, found[::29], sum(total for _, total in found)


def hoard():
    """Takes memory until it is killed."""
    taken = []
    for _ in range(200):
        taken.append(np.ones(2_500_000))
        time.sleep(0.02)
    return len(taken)


@slow
def case_out_of_memory(client):
    """The nanny ends the worker and starts another one, until the task has had its chances."""
    with Joined(client, memory="400MB", flags=("--nanny", "--resources", "HOARD=1")) as carol:
        error = failure(client.submit(hoard, resources={"HOARD": 1}, pure=False).result, timeout=50)
        returned = until(carol.is_there)
        answer = client.submit(len, "abc", resources={"HOARD": 1}, pure=False).result(timeout=30)
        return error[0], "on 4 different workers" in error[1], returned, answer
