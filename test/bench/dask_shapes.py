"""The graph shapes of the benchmarks, as Dask has them: each gives a graph and the wanted keys."""


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


SHAPES = {
    "merge": merge,
    "map": map_,
    "tree": tree,
    "chain": lambda n: chains(n, 1),
    "chains": chains,
    "shuffle": shuffle,
    "overlap": overlap,
}
