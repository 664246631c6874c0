"""Times what a client of Dask sees, with whatever scheduler listens at an address.

    dask_client.py ADDRESS [--scenarios latency,map,...] [--tasks 10000] [--scheduler PID]

The last line is JSON: of each scenario the seconds, the number of its tasks, and with `--scheduler`
what the scheduler's process used (Linux).
"""

import argparse
import json
import os
import statistics
import sys
import time

import distributed
from distributed import Client, wait

WORKERS = 2
#: As many tasks in a warm-up stand for small values, too.
SMALL = 1000


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


def rounds(client, tasks):
    """A thousand tasks that do nothing, their results gathered, again and again."""
    for start in range(0, tasks, 1000):
        values = range(start, min(start + 1000, tasks))
        assert client.gather(client.map(noop, values, pure=False)) == list(values)
    return tasks


def graph(client, tasks):
    """One graph: leaves that do nothing, and sums of four of them."""
    name = f"{time.time_ns()}"
    count = tasks // 5
    graph = {f"leaf-{name}-{index}": (noop, index) for index in range(4 * count)}
    keys = [f"sum-{name}-{index}" for index in range(count)]
    for index, key in enumerate(keys):
        graph[key] = (sum, [f"leaf-{name}-{leaf}" for leaf in range(4 * index, 4 * index + 4)])
    assert sum(client.get(graph, keys)) == sum(range(4 * count))
    return len(graph)


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


def customers(part):
    import numpy as np
    import pandas as pd

    random = np.random.RandomState(part)
    keys = np.arange(part, 16_000, 16)
    return pd.DataFrame({"customer": keys, "segment": random.randint(0, 5, len(keys))})


def orders(part):
    import numpy as np
    import pandas as pd

    random = np.random.RandomState(part)
    keys = np.arange(part, 160_000, 16)
    columns = {"customer": 16_000, "day": 2_400, "priority": 5}
    return pd.DataFrame(
        {"order": keys, **{name: random.randint(0, end, len(keys)) for name, end in columns.items()}}
    )


def items(part):
    import numpy as np
    import pandas as pd

    random = np.random.RandomState(part)
    columns = {"order": 160_000, "shipped": 2_500, "price": 100_000, "discount": 11}
    return pd.DataFrame({name: random.randint(0, end, 40_000) for name, end in columns.items()})


def query(client, tasks):
    """The open orders of a market segment with the highest revenue: filters, two joins, a group-by."""
    return sum(best_orders() for _ in range(max(1, tasks // 2000)))


def best_orders():
    import dask.dataframe as dd

    customer, order, item = (dd.from_map(make, range(16)) for make in (customers, orders, items))
    customer = customer[customer.segment == 1]
    order = order[order.day < 1_200]
    item = item[item.shipped > 1_200]
    joined = customer.merge(order, on="customer").merge(item, on="order")
    joined["revenue"] = joined.price * (100 - joined.discount)
    revenue = joined.groupby(["order", "day", "priority"]).revenue.sum()
    best = revenue.nlargest(10).optimize()
    assert len(best.compute()) == 10
    return len(best.__dask_graph__())


def array(client, tasks):
    """A matrix product of many blocks, and its sum."""
    import dask.array as da

    x = da.random.random((1000, 1000), chunks=(50, 50))
    (x + x.T).sum().compute()
    y = da.ones((600, 600), chunks=(50, 50))
    total = (y @ y).sum().compute()
    assert total == 600**3, total
    return len((x + x.T).sum().__dask_graph__()) + len((y @ y).sum().__dask_graph__())


def block(nbytes):
    """Bytes that cannot be compressed."""
    import numpy as np

    return np.random.default_rng().integers(0, 255, nbytes, dtype=np.uint8)


def gather(client, tasks):
    """40 results of 8 MB come through the scheduler; with few tasks (a warm-up), smaller ones."""
    nbytes = 80_000 if tasks <= SMALL else 8_000_000
    futures = client.map(block, [nbytes] * 40, pure=False)
    wait(futures)
    assert sum(each.nbytes for each in client.gather(futures, direct=False)) == 40 * nbytes
    return 40


def scatter(client, tasks):
    """Four values of 200 MB go through the scheduler; with few tasks (a warm-up), smaller ones."""
    nbytes = 200_000 if tasks <= SMALL else 200_000_000
    values = [block(nbytes) for _ in range(4)]
    wait(client.scatter(values, direct=False, timeout=60))
    return 4


def timed(function):
    def run(client, tasks):
        start = time.perf_counter()
        count = function(client, tasks)
        return time.perf_counter() - start, count

    return run


SCENARIOS = {
    "latency": latency,
    "map": timed(mapped),
    "rounds": timed(rounds),
    "graph": timed(graph),
    "tree": timed(tree),
    "shuffle": timed(shuffle),
    "query": timed(query),
    "array": timed(array),
    "gather": timed(gather),
    "scatter": timed(scatter),
}


class Processes:
    """CPU time and memory of the scheduler's process, and of the processes that it has started."""

    def __init__(self, pid):
        self.pid = pid

    def cpu(self):
        """Seconds of the scheduler, and of its children together."""
        return cpu_of(self.pid), sum(map(cpu_of, self.children()))

    def memory(self):
        """Megabytes of the scheduler, and of its largest child."""
        return memory_of(self.pid), max(map(memory_of, self.children()), default=0)

    def children(self):
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(stat_of(name)[1]) == self.pid:
                    found.append(int(name))
            except OSError:
                pass  # It has just ended.
        return found


def stat_of(pid):
    """Fields of `/proc/PID/stat` from the state on."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def cpu_of(pid):
    fields = stat_of(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid):
    fields = stat_of(pid)
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(scenario, client, tasks, processes):
    """One scenario, and what the scheduler used for it. Memory is taken when all is released."""
    if processes is None:
        seconds, count = scenario(client, tasks)
        return {"seconds": round(seconds, 6), "tasks": count}
    before = processes.cpu()
    seconds, count = scenario(client, tasks)
    after = processes.cpu()
    time.sleep(2)  # The release reaches the scheduler and the workers.
    own_cpu, helper_cpu = (later - earlier for later, earlier in zip(after, before))
    memory, helper_memory = processes.memory()
    return {
        "seconds": round(seconds, 6),
        "tasks": count,
        "cpu": round(own_cpu + helper_cpu, 2),
        "helperCpu": round(helper_cpu, 2),
        "memoryMB": round(memory),
        "helperMemoryMB": round(helper_memory),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--scheduler", type=int)
    options = parser.parse_args()
    processes = Processes(options.scheduler) if options.scheduler else None
    results = {"distributed": distributed.__version__}
    with Client(options.address, timeout="30s", set_as_default=True) as client:
        client.wait_for_workers(WORKERS, timeout=30)
        for name in options.scenarios.split(","):
            scenario = SCENARIOS[name]
            if options.warm_up > 0:
                scenario(client, options.warm_up)  # Imports, connections, durations, the compiler.
            results[name] = measure(scenario, client, options.tasks, processes)
            print(name, results[name], file=sys.stderr)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
