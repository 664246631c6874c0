"""Makespans of SAGA's HEFT (PyPI: anrg-saga) for instances of against-saga.ts.

usage: PYTHONHASHSEED=0 saga_makespans.py < instances > makespans
A line is an instance: [key, seconds, bytes, needs] of each task, speeds of the workers, and bytes per second. The answer
is a line with two makespans: of SAGA as it is, and of SAGA with the rules of our planner, in which

- a task fetches its inputs when all of them exist, as workers do, and not each as soon as it exists;
- a worker keeps what it has fetched;
- ranks take tasks at the mean speed, and count a transfer unless both tasks happen to be on one worker.
"""
import json
import logging
import sys
from itertools import combinations

import saga
from saga.schedulers import heft

logging.disable()  # It warns of graphs with several sources or ends, to which it adds tasks that take no time.


class OurSchedule(saga.Schedule):
    """A schedule in which inputs are fetched as our planner has it."""

    _copies: dict = {}

    def arrivals(self, task, node):
        """When each input is on the node."""
        edges = list(self.task_graph.in_edges(task))
        parents = {edge.source: self._task_map[edge.source] for edge in edges}
        asked = max((parent.end for parent in parents.values()), default=0.0)
        for edge in edges:
            parent = parents[edge.source]
            if parent.node == node:
                yield edge.source, parent.end
                continue
            seconds = edge.size / self.network.get_edge(parent.node, node).speed
            yield edge.source, self._copies.get((edge.source, node), asked + seconds)

    def get_earliest_start_time(self, task, node, append_only=False):
        node = self.network.get_node(node)
        seconds = self.task_graph.get_task(task).cost / node.speed
        start = max((arrival for _, arrival in self.arrivals(task, node.name)), default=0.0)
        for placed in self.mapping[node.name]:
            if start + seconds <= placed.start:
                break
            start = max(start, placed.end)
        return start

    def add_task(self, task):
        for need, arrival in list(self.arrivals(task.name, task.node)):
            self._copies[need, task.node] = arrival
        super().add_task(task)


def our_ranks(network, graph):
    speed = sum(node.speed for node in network.nodes) / len(network.nodes)
    link = next(edge.speed for edge in network.edges if edge.source != edge.target)
    share = 1 - 1 / len(network.nodes)
    ranks = {}
    for task in reversed(graph.topological_sort()):
        rest = (
            ranks[edge.target] + edge.size * share / link for edge in graph.out_edges(task.name)
        )
        ranks[task.name] = task.cost / speed + max(rest, default=0)
    return ranks


RULES = ((saga.Schedule, heft.upward_rank), (OurSchedule, our_ranks))

for line in sys.stdin:
    tasks, speeds, bandwidth = json.loads(line)
    nbytes = {key: size for key, _, size, _ in tasks}
    graph = saga.TaskGraph.create(
        [(key, seconds) for key, seconds, _, _ in tasks],
        [(need, key, nbytes[need]) for key, _, _, needs in tasks for need in needs],
    )
    nodes = [(f"w{number}", speed) for number, speed in enumerate(speeds)]
    names = [name for name, _ in nodes]
    network = saga.Network.create(nodes, [(*pair, bandwidth) for pair in combinations(names, 2)])
    makespans = []
    for heft.Schedule, heft.upward_rank in RULES:
        makespans.append(heft.HeftScheduler().schedule(network, graph).makespan)
    print(json.dumps(makespans), flush=True)
