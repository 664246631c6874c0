"""Times what a client of Dask sees, with whatever scheduler listens at an address.

    dask_client.py ADDRESS [--scenarios latency,map,...] [--tasks 10000]

The last line is JSON: seconds of each scenario, and the number of its tasks.
"""

import argparse
import json
import statistics
import sys
import time

import distributed
from distributed import Client, wait

WORKERS = 2


def noop(x):
    return x


def add(x, y):
    return x + y


def latency(client, tasks):
    """Each task is submitted when the result of the one before is there."""
    times = []
    for index in range(min(tasks, 300)):
        start = time.perf_counter()
        client.submit(noop, index, pure=False).result()
        times.append(time.perf_counter() - start)
    return statistics.median(times), 1


def mapped(client, tasks):
    """Tasks that do nothing, all at once."""
    wait(client.map(noop, range(tasks), pure=False))
    return tasks


def tree(client, tasks):
    """Sums of pairs, sums of pairs of these, and so on."""
    leaves = 1 << ((tasks // 2).bit_length() - 1)
    layer = client.map(noop, range(leaves), pure=False)
    count = leaves
    while len(layer) > 1:
        layer = client.map(add, layer[::2], layer[1::2], pure=False)
        count += len(layer)
    assert layer[0].result() == sum(range(leaves))
    return count


def shuffle(client, tasks):
    """All partitions exchange their rows."""
    import numpy as np
    import pandas as pd

    import dask.dataframe as dd

    rows = 100_000
    random = np.random.RandomState(time.time_ns() % 2**32)
    data = pd.DataFrame({"key": random.randint(0, 1000, rows), "value": np.arange(rows)})
    shuffled = dd.from_pandas(data, npartitions=24).shuffle("key")
    total = shuffled.value.sum().compute()
    assert total == data.value.sum(), total
    return 24


def array(client, tasks):
    """A matrix product of many blocks, and its sum."""
    import dask.array as da

    x = da.random.random((1000, 1000), chunks=(50, 50))
    (x + x.T).sum().compute()
    y = da.ones((600, 600), chunks=(50, 50))
    total = (y @ y).sum().compute()
    assert total == 600**3, total
    return len((x + x.T).sum().__dask_graph__()) + len((y @ y).sum().__dask_graph__())


def timed(function):
    def run(client, tasks):
        start = time.perf_counter()
        count = function(client, tasks)
        return time.perf_counter() - start, count

    return run


SCENARIOS = {
    "latency": latency,
    "map": timed(mapped),
    "tree": timed(tree),
    "shuffle": timed(shuffle),
    "array": timed(array),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--tasks", type=int, default=10_000)
    options = parser.parse_args()
    results = {"distributed": distributed.__version__}
    with Client(options.address, timeout="30s", set_as_default=True) as client:
        client.wait_for_workers(WORKERS, timeout=30)
        for name in options.scenarios.split(","):
            scenario = SCENARIOS[name]
            scenario(client, 200)  # Imports, connections, durations.
            seconds, count = scenario(client, options.tasks)
            results[name] = {"seconds": round(seconds, 6), "tasks": count}
            print(name, results[name], file=sys.stderr)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
