"""Writes the graph of a computation of Dask, with its costs, as an instance of WfCommons for the simulator.

    from dask_graph import Record

    with Record("mean.json"):
        (x + x.T).mean().compute()

The computation runs in this process, one task after the other. The instance has each task of the optimised graph, the
seconds that it took, and the size of its result as Dask estimates it. Data that the graph holds takes no time.
"""
import json
import time

import dask.config
from dask.callbacks import Callback
from dask.sizeof import sizeof
from dask.utils import key_split


class Record(Callback):
    """Records the computations of a `with` block into a file."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.needs = {}
        self.begun = {}
        self.seconds = {}
        self.sizes = {}

    def __enter__(self):
        self.one_thread = dask.config.set(scheduler="sync")
        return super().__enter__()

    def __exit__(self, error, *rest):
        super().__exit__(error, *rest)
        self.one_thread.__exit__(error, *rest)
        if error is None:
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(self.instance(), file)

    def _start_state(self, dsk, state):
        self.needs.update(state["dependencies"])
        self.sizes.update((key, sizeof(value)) for key, value in state["cache"].items())

    def _pretask(self, key, dsk, state):
        self.begun[key] = time.perf_counter()

    def _posttask(self, key, value, dsk, state, worker):
        self.seconds[key] = time.perf_counter() - self.begun[key]
        self.sizes[key] = sizeof(value)

    def instance(self):
        """The instance in WfFormat 1.5."""
        ids = {key: str(key) for key in self.needs}
        tasks = [
            {
                "id": ids[key],
                "name": key_split(key),
                "parents": sorted(ids[need] for need in needs),
                "children": [],
                "outputFiles": [ids[key]],
            }
            for key, needs in self.needs.items()
        ]
        files = [{"id": ids[key], "sizeInBytes": self.sizes.get(key, 0)} for key in ids]
        runs = [{"id": ids[key], "runtimeInSeconds": self.seconds.get(key, 0)} for key in ids]
        specification = {"tasks": tasks, "files": files}
        workflow = {"specification": specification, "execution": {"tasks": runs}}
        return {"name": self.path, "schemaVersion": "1.5", "workflow": workflow}
