"""Dask's order of the graphs of the benchmark. Prints one JSON line.

usage: dask_order.py SHAPE TASKS
Dependencies are found before the clock starts, as its scheduler does.
"""
import json
import os
import sys
import time

import dask
import dask.core
import dask.order
from dask_shapes import SHAPES

shape, count = sys.argv[1], int(sys.argv[2])
runs = []
for _ in range(3):
    graph, _keys = SHAPES[shape](count)
    dependencies = {key: dask.core.get_dependencies(graph, key) for key in graph}
    start = time.process_time()
    dask.order.order(graph, dependencies=dependencies)
    runs.append((time.process_time() - start) / len(graph) * 1e6)
print(
    json.dumps(
        {
            "bench": "dask-order",
            "shape": shape,
            "tasks": len(graph),
            "usPerTask": round(sorted(runs)[1], 2),
            "dask": dask.__version__,
            "load": round(os.getloadavg()[0], 2),
        }
    )
)
