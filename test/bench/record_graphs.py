"""Records the graphs that Dask makes of the computations of the literature, for adapters/workloads.

usage: record_graphs.py FOLDER [NAME...]
Needs dask, numpy, pandas, xarray and scipy (Debian 12: python3-dask, python3-pandas, python3-xarray,
python3-scipy). Writes FOLDER/NAME.json: dependencies, groups, and per prefix the mean CPU time and the
mean size of a result, measured on a smaller computation with partitions of the same size.

Graphs are optimised as a client of Dask does when there is a cluster, with low-level fusion on, which is
what Dask did when the literature measured. Tasks are sorted by depth, group and key, so that every task
comes after what it needs. A column is base64 of deflated little-endian 32-bit integers; `group` and
`needCount` have one number per task, `needStep` has for each needed task, in the order of the tasks that
need them, how far its number is from the one before.
"""
import array
import base64
import collections
import datetime
import json
import os
import platform
import random
import re
import sys
import tempfile
import time
import zlib

import dask
import dask.array
import dask.bag
import dask.core
import dask.datasets
import numpy
import pandas
import xarray
from dask.base import collections_to_dsk
from dask.sizeof import sizeof
from dask.utils import key_split

dask.config.set({"optimization.fuse.active": True, "shuffle": "tasks"})


def matrix(size, blocks):
    """A random matrix plus its transpose; the sum of the means of rows of a part of it."""
    x = dask.array.random.random((size, size), chunks=(size // blocks, size // blocks))
    return (x + x.T)[::2, size // 2 :].mean(axis=1).sum()


def make_people(seed, count):
    """Stands for people of a library that is not needed otherwise."""
    chance = random.Random(seed)
    names = ["Ada", "Barbara", "Grace", "Katherine", "Mary", "Radia"]
    return [
        {"age": chance.randint(16, 70), "name": (chance.choice(names), chance.choice(names))}
        for _ in range(count)
    ]


def people(records, partitions):
    """Pairs of people, the first of whom is older: the length of the names of the second, summed."""
    make = {("make-people", i): (make_people, i, records // partitions) for i in range(partitions)}
    adults = dask.bag.Bag(make, "make-people", partitions).filter(lambda one: one["age"] > 30)
    pairs = adults.product(adults).filter(lambda pair: pair[0]["age"] > pair[1]["age"])
    return pairs.pluck(1).map(lambda one: len(one["name"])).sum()


def series(days, freq, partition, **options):
    start = datetime.datetime(2020, 1, 1)
    end = start + datetime.timedelta(days=days)
    return dask.datasets.timeseries(
        start=start, end=end, seed=0, freq=freq, partition_freq=partition, **options
    )


def groupby(days, freq, partition):
    """A mean by name, and a mean by two seconds of selected rows; both summed."""
    table = series(days, freq, partition)
    by_name = table.groupby("name")["x"].mean().sum()
    chosen = table[(table["x"] > 0) | (table["y"] < 0)]
    return by_name + chosen["x"].resample("2s").mean().sum()


def join(days, freq, partition):
    """A table joined with itself by a column with about eighty values."""
    dtypes = {"value": float, "name": str, "id": int}
    table = series(days, freq, partition, dtypes=dtypes, id_lam=100)
    both = table.merge(table, on="id", how="inner")
    return (both["value_x"] + both["value_y"]).sum()


def climate(chunk):
    """Air temperatures minus their weekly means, on the grid of xarray's tutorial (2920 by 25 by 53)."""
    times = pandas.date_range("2013-01-01", periods=2920, freq="6H")
    air = xarray.DataArray(
        numpy.full((2920, 25, 53), 280, "float32"),
        dims=["time", "lat", "lon"],
        coords={"time": times, "lat": numpy.arange(25.0), "lon": numpy.arange(53.0)},
    )
    path = os.path.join(tempfile.mkdtemp(), "air.nc")
    xarray.Dataset({"air": air}).to_netcdf(path, engine="scipy")
    chunks = {"lat": chunk, "lon": chunk, "time": -1}
    air = xarray.open_dataset(path, engine="scipy", chunks=chunks)["air"]
    return (air - air.groupby("time.week").mean("time")).sum().data


# Name: what is recorded, what is measured.
GRAPHS = {
    "numpy-50K-50": (lambda: matrix(50_000, 50), lambda: matrix(10_000, 10)),
    "numpy-50K-100": (lambda: matrix(50_000, 100), lambda: matrix(5_000, 10)),
    "numpy-50K-200": (lambda: matrix(50_000, 200), lambda: matrix(2_500, 10)),
    "bag-25K-10": (lambda: people(25_000, 10), lambda: people(5_000, 2)),
    "bag-25K-50": (lambda: people(25_000, 50), lambda: people(2_500, 5)),
    "bag-25K-100": (lambda: people(25_000, 100), lambda: people(2_500, 10)),
    "bag-25K-200": (lambda: people(25_000, 200), lambda: people(1_250, 10)),
    "groupby-90-1S-1H": (lambda: groupby(90, "1s", "1H"), lambda: groupby(3, "1s", "1H")),
    "groupby-90-1S-8H": (lambda: groupby(90, "1s", "8H"), lambda: groupby(24, "1s", "8H")),
    "groupby-360-1S-1H": (lambda: groupby(360, "1s", "1H"), lambda: groupby(3, "1s", "1H")),
    "groupby-2880-1S-16H": (lambda: groupby(2880, "1s", "16H"), lambda: groupby(24, "1s", "16H")),
    "join-1-1S-1H": (lambda: join(1, "1s", "1H"), lambda: join(1, "1s", "1H")),
    "join-1-1S-1T": (lambda: join(1, "1s", "1T"), lambda: join(0.05, "1s", "1T")),
    "xarray-5": (lambda: climate(5), lambda: climate(5)),
    "xarray-25": (lambda: climate(25), lambda: climate(25)),
}


class Graph:
    """An optimised graph, its tasks sorted by depth, group and key."""

    def __init__(self, collection):
        self.tasks = dict(collections_to_dsk([collection], optimize_graph=True))
        self.wanted = list(dask.core.flatten(collection.__dask_keys__()))
        self.needs = {key: dask.core.get_dependencies(self.tasks, key) for key in self.tasks}
        self.depth = {}
        for key in dask.core.toposort(self.tasks, dependencies=self.needs):
            self.depth[key] = max((self.depth[need] + 1 for need in self.needs[key]), default=0)
        groups = sorted((min(members), group) for group, members in self._groups().items())
        self.groups = [group for _, group in groups]
        place = {group: at for at, group in enumerate(self.groups)}
        self.keys = sorted(
            self.tasks, key=lambda key: (self.depth[key], place[group_of(key)], indices_of(key))
        )

    def _groups(self):
        """By group, its members by what does not depend on Dask's random tokens."""
        groups = collections.defaultdict(list)
        for key in self.tasks:
            groups[group_of(key)].append((self.depth[key], key_split(key), indices_of(key)))
        return groups


def group_of(key):
    return key[0] if isinstance(key, tuple) else key


def indices_of(key):
    """The indices of a key as pairs that can be compared: numbers come before words."""
    rest = key[1:] if isinstance(key, tuple) else ()
    return tuple((isinstance(index, str), index) for index in flat(rest))


def flat(indices):
    for index in indices:
        if isinstance(index, tuple):
            yield from flat(index)
        else:
            yield index if isinstance(index, str) else int(index)


def measure(graph):
    """Runs the graph, one task at a time. By prefix: mean CPU microseconds, mean bytes."""
    users = collections.Counter(need for needs in graph.needs.values() for need in needs)
    results, seen = {}, collections.defaultdict(list)
    for key in dask.core.toposort(graph.tasks, dependencies=graph.needs):
        before = time.thread_time()
        results[key] = dask.core._execute_task(graph.tasks[key], results)
        seconds = time.thread_time() - before
        seen[key_split(key)].append((seconds, sizeof(results[key])))
        for need in graph.needs[key]:
            users[need] -= 1
            if users[need] == 0:
                del results[need]
    return {
        prefix: [round(sum(column) / len(runs) * unit) for column, unit in zip(zip(*runs), (1e6, 1))]
        for prefix, runs in seen.items()
    }


def column(numbers):
    numbers = array.array("i", numbers)
    assert numbers.itemsize == 4 and sys.byteorder == "little"
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def record(name, computation, graph, costs):
    place = {key: at for at, key in enumerate(graph.keys)}
    group_at = {group: at for at, group in enumerate(graph.groups)}
    needs = [sorted(place[need] for need in graph.needs[key]) for key in graph.keys]
    assert all(need < at for at, some in enumerate(needs) for need in some)
    needed = [need for some in needs for need in some]
    prefixes = [key_split(group) for group in graph.groups]
    return {
        "name": name,
        "computation": computation,
        "recordedWith": {
            "dask": dask.__version__,
            "numpy": numpy.__version__,
            "pandas": pandas.__version__,
            "xarray": "2023.01.0" if xarray.__version__ == "999" else xarray.__version__,
            "python": platform.python_version(),
        },
        "tasks": len(needs),
        "dependencies": sum(map(len, needs)),
        "longestPath": max(graph.depth.values()),
        "wanted": sorted(place[key] for key in graph.wanted),
        "groups": [
            {"prefix": prefix, "durationUs": costs[prefix][0], "resultBytes": costs[prefix][1]}
            for prefix in prefixes
        ],
        "columns": {
            "group": column(group_at[group_of(key)] for key in graph.keys),
            "needCount": column(map(len, needs)),
            "needStep": column(need - before for before, need in zip([0, *needed], needed)),
        },
    }


def main(folder, names):
    for name in names or GRAPHS:
        make, smaller = GRAPHS[name]
        computation = re.sub(r"\s+", " ", COMPUTATIONS[name.split("-")[0]].__doc__)
        costs = measure(Graph(smaller()))
        recorded = record(name, computation, Graph(make()), costs)
        path = os.path.join(folder, f"{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recorded, file, indent=1)
            file.write("\n")
        print(name, recorded["tasks"], recorded["dependencies"], os.path.getsize(path), costs, flush=True)


COMPUTATIONS = {"numpy": matrix, "bag": people, "groupby": groupby, "join": join, "xarray": climate}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
