"""The graphs of the benchmarks, as Dask has them: each gives a graph and the wanted keys.

The same as those of shapes.ts: patterns of about n tasks, and the graphs of the literature, which ignore
n. The recorded ones are read from the files that Yardmaster ships.
"""
import array
import base64
import json
import os
import zlib

RECORDED = os.path.join(os.path.dirname(__file__), "..", "..", "adapters", "workloads", "recorded")


def task(*arguments):
    return 0


def merge(n):
    graph = {f"leaf-{i}": (task, i) for i in range(n)}
    graph["merge-0"] = (task, list(graph))
    return graph, ["merge-0"]


def map_(n):
    graph = {f"inc-{i}": (task, i) for i in range(n)}
    return graph, list(graph)


def tree(n):
    leaves = 1
    while leaves * 2 <= n // 2 + 1:
        leaves *= 2
    level = [f"leaf-{i}" for i in range(leaves)]
    graph = {key: (task, i) for i, key in enumerate(level)}
    depth = 0
    while len(level) > 1:
        above = []
        for i in range(0, len(level), 2):
            key = f"add{depth}-{i // 2}"
            graph[key] = (task, level[i], level[i + 1])
            above.append(key)
        level, depth = above, depth + 1
    return graph, level


def chains(n, width=100):
    graph, last = {}, []
    length = n // width
    for w in range(width):
        graph[f"c{w}-0"] = (task, 0)
        for i in range(1, length):
            graph[f"c{w}-{i}"] = (task, f"c{w}-{i - 1}")
        last.append(f"c{w}-{length - 1}")
    return graph, last


def shuffle(n):
    m = int(n**0.5)
    graph = {f"in-{i}": (task, i) for i in range(m)}
    graph.update({f"split-{i}_{j}": (task, f"in-{i}", j) for i in range(m) for j in range(m)})
    graph.update({f"out-{j}": (task, [f"split-{i}_{j}" for i in range(m)]) for j in range(m)})
    return graph, [f"out-{j}" for j in range(m)]


def overlap(n, width=100):
    steps = n // width
    graph = {f"s0-{i}": (task, i) for i in range(width)}
    for s in range(1, steps):
        for i in range(width):
            near = [f"s{s - 1}-{j}" for j in (i - 1, i, i + 1) if 0 <= j < width]
            graph[f"s{s}-{i}"] = (task, near)
    return graph, [f"s{steps - 1}-{i}" for i in range(width)]


def vectorizer(n):
    graph = {f"vectorize-{i}": (task, i) for i in range(n)}
    return graph, list(graph)


def wordbag(batches):
    graph, wanted = {}, []
    for i in range(batches):
        graph[f"normalize-{i}"] = (task, i)
        graph[f"count-{i}"] = (task, f"normalize-{i}")
        graph[f"correct-{i}"] = (task, f"normalize-{i}")
        graph[f"recount-{i}"] = (task, f"correct-{i}")
        graph[f"bag-{i}"] = (task, f"correct-{i}")
        wanted += [f"count-{i}", f"recount-{i}", f"bag-{i}"]
    return graph, wanted


def mapreduce(mappers):
    graph = {"split-0": (task, 0)}
    graph.update({f"map-{i}": (task, "split-0") for i in range(mappers)})
    mapped = [f"map-{i}" for i in range(mappers)]
    wanted = [f"reduce-{i}" for i in range(mappers)]
    graph.update({key: (task, mapped) for key in wanted})
    return graph, wanted


def crossv(candidates):
    graph = {"generate-0": (task, 0)}
    graph.update({f"merge-{fold}": (task, "generate-0") for fold in range(5)})
    for i in range(candidates):
        for fold in range(5):
            graph[f"train-{i}_{fold}"] = (task, f"merge-{fold}")
            graph[f"evaluate-{i}_{fold}"] = (task, "generate-0", f"train-{i}_{fold}")
        graph[f"rate-{i}"] = (task, [f"evaluate-{i}_{fold}" for fold in range(5)])
    return graph, [f"rate-{i}" for i in range(candidates)]


def recorded(name):
    with open(os.path.join(RECORDED, f"{name}.json"), encoding="utf-8") as file:
        recording = json.load(file)
    columns = {name: unpack(column) for name, column in recording["columns"].items()}
    prefixes = [group["prefix"] for group in recording["groups"]]
    sizes, keys, graph = [0] * len(prefixes), [], {}
    steps, number = iter(columns["needStep"]), 0
    for group, count in zip(columns["group"], columns["needCount"]):
        needs = []
        for _ in range(count):
            number += next(steps)
            needs.append(keys[number])
        keys.append(f"('{prefixes[group]}-{group}', {sizes[group]})")
        sizes[group] += 1
        graph[keys[-1]] = (task, needs)
    return graph, [keys[number] for number in recording["wanted"]]


def unpack(column):
    numbers = array.array("i")
    numbers.frombytes(zlib.decompress(base64.b64decode(column)))
    return numbers


SHAPES = {
    "merge": merge,
    "map": map_,
    "tree": tree,
    "chain": lambda n: chains(n, 1),
    "chains": chains,
    "shuffle": shuffle,
    "overlap": overlap,
    "vectorizer": vectorizer,
    "wordbag": lambda n: wordbag(n // 5),
    "crossv": lambda n: crossv(n // 11),
    "merge_slow-5K": lambda n: merge(5000),
    "merge_slow-20K": lambda n: merge(20_000),
    "tree-15": lambda n: tree(2**15 - 1),
    "vectorizer-1M-300": lambda n: vectorizer(301),
    "wordbag-100K-50": lambda n: wordbag(50),
    "mapreduce-160": lambda n: mapreduce(160),
    "crossv-8": lambda n: crossv(8),
}
for thousands in (10, 15, 20, 25, 30, 50, 100):
    SHAPES[f"merge-{thousands}K"] = lambda n, leaves=thousands * 1000: merge(leaves)
for file_name in sorted(os.listdir(RECORDED)):
    if file_name.endswith(".json"):
        SHAPES[file_name[:-5]] = lambda n, name=file_name[:-5]: recorded(name)
