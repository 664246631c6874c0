"""A computation with dask.array and one with dask.dataframe, checked against NumPy and pandas.

    demo.py ADDRESS

ADDRESS is that of a scheduler with at least two workers. Exit code 1 when a result is wrong.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd

import dask.array as da
import dask.dataframe as dd
import distributed
from distributed import Client, get_worker

WORKERS = 2
ROWS = 60_000


def main():
    address = sys.argv[1]
    with Client(address, timeout="30s") as client:
        client.wait_for_workers(WORKERS, timeout=30)
        info = client.scheduler_info()
        print(f"Client     distributed {distributed.__version__}, scheduler {address}")
        for worker, facts in info["workers"].items():
            print(f"Worker     {worker}, {facts['nthreads']} thread(s)")
        results = [futures(client), arrays(), frames()]
    if all(results):
        print("Result     all results are right")
        return 0
    print("Result     WRONG")
    return 1


def futures(client):
    """Functions, and who called them."""
    start = time.perf_counter()
    where = client.gather(client.map(whereabouts, range(1000), pure=False))
    seconds = time.perf_counter() - start
    counts = {address: where.count(address) for address in sorted(set(where))}
    shares = ", ".join(f"{count} on {address}" for address, count in counts.items())
    return report("Futures", f"1000 calls: {shares}", seconds, len(counts) == WORKERS)


def whereabouts(_):
    return get_worker().address


def arrays():
    """A product of matrices, a decomposition by columns and a standard deviation."""
    start = time.perf_counter()
    numbers = np.arange(1_000_000, dtype="f8").reshape(1000, 1000) % 97
    blocks = da.from_array(numbers, chunks=(200, 200))
    product = (blocks @ blocks.T).mean(axis=0)
    spread = (blocks - blocks.mean(axis=0)).std(axis=1)
    largest = da.map_overlap(lambda x: x + 1, blocks, depth=1, boundary="reflect").max()
    got = da.compute(product, spread, largest)
    seconds = time.perf_counter() - start
    expected = (
        (numbers @ numbers.T).mean(axis=0),
        (numbers - numbers.mean(axis=0)).std(axis=1),
        numbers.max() + 1,
    )
    right = all(np.allclose(mine, theirs) for mine, theirs in zip(got, expected))
    text = "matrix product, standard deviation, neighbourhoods of 1 000 000 numbers, as NumPy has them"
    return report("Array", text, seconds, right)


def frames():
    """Groups, a join and a sort, which exchange rows between all partitions."""
    start = time.perf_counter()
    random = np.random.RandomState(7)
    table = pd.DataFrame(
        {
            "id": random.permutation(ROWS),
            "group": random.randint(0, 300, ROWS),
            "value": random.randint(0, 1000, ROWS),
        }
    )
    names = pd.DataFrame({"group": range(300), "name": [f"group-{i}" for i in range(300)]})
    parts = dd.from_pandas(table, npartitions=8)
    groups = parts.groupby("group").value.agg(["sum", "max"]).compute().sort_index()
    joined = parts.merge(dd.from_pandas(names, npartitions=3), on="group")
    by_name = joined.groupby("name").value.mean().compute().sort_index()
    ordered = parts.set_index("id").value.compute()
    shuffled = parts.shuffle("group").compute()
    seconds = time.perf_counter() - start
    checks = [
        (groups, table.groupby("group").value.agg(["sum", "max"])),
        (by_name, table.merge(names, on="group").groupby("name").value.mean()),
        (ordered, table.set_index("id").value.sort_index()),
        (shuffled.sort_values("id"), table.sort_values("id")),
    ]
    right = all(same(mine.reset_index(), theirs.reset_index()) for mine, theirs in checks[:3])
    mine, theirs = (each.reset_index(drop=True) for each in checks[3])
    right = right and same(mine, theirs)
    text = f"groups, join, sort and shuffle of {ROWS} rows, as pandas has them"
    return report("DataFrame", text, seconds, right)


def same(mine, theirs):
    try:
        # Dask may choose another type for texts than pandas does.
        mine, theirs = (
            each.astype({name: object for name in each if name == "name"})
            for each in (mine, theirs)
        )
        pd.testing.assert_frame_equal(mine, theirs, check_names=False)
    except AssertionError as error:
        print(error)
        return False
    return True


def report(what, text, seconds, right):
    print(f"{what:<10} {text} ({seconds:.2f} s): {'right' if right else 'WRONG'}")
    return right


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
