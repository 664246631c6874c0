"""Writes messages of a client of the installed Dask to standard output, one for each graph below.

Each message is what `Client` sends for this graph, in the form of this version of distributed.
"""

import struct
import sys

import dask
import dask.array as da
import distributed
from distributed.protocol.core import dumps

VERSION = tuple(int(part) for part in distributed.__version__.split("+")[0].split(".")[:2])


def inc(x):
    return x + 1


def plain(dsk):
    if VERSION >= (2025, 4):
        from dask._expr import LLGExpr

        return LLGExpr(dsk)
    from dask.highlevelgraph import HighLevelGraph

    return HighLevelGraph.from_collections("plain", dsk, ())


def chained():
    one = dask.delayed(inc)(1, dask_key_name="one")
    two = dask.delayed(inc)(one, dask_key_name=("two", 0) if VERSION >= (2023, 9) else "two")
    return two, None


def array():
    return (da.ones((40, 40), chunks=(10, 10)) @ da.ones((40, 40), chunks=(10, 10))).sum(), None


def annotated():
    with dask.annotate(priority=3, retries=lambda key: 2):
        made = da.ones(4, chunks=2) + 1
    return made.sum(), None


def graph_of(collection):
    if VERSION >= (2025, 4):
        from dask.base import collections_to_expr

        expr = collections_to_expr([collection], optimize_graph=False).optimize()
        return expr, set(flat(expr.__dask_keys__()))
    # Without optimisation, which fuses layers and loses their annotations.
    return collection.__dask_graph__(), set(flat(collection.__dask_keys__()))


def flat(keys):
    for key in keys:
        if isinstance(key, list):
            yield from flat(key)
        else:
            yield key


def message_of(graph, keys, annotations):
    from distributed.protocol.serialize import Serialized, ToPickle, serialize, to_serialize

    if VERSION < (2023, 4):
        from dask.utils import stringify

        return {
            "op": "update-graph-hlg",
            "hlg": graph.__dask_distributed_pack__(None, keys, annotations),
            "keys": [stringify(key) for key in keys],
            "priority": None,
        }
    message = {"op": "update-graph", "keys": keys, "annotations": ToPickle(annotations)}
    if VERSION < (2025, 4):
        header, frames = serialize(ToPickle(graph), on_error="raise")
        return {**message, "graph_header": header, "graph_frames": frames}
    return {**message, "expr_ser": Serialized(*serialize(to_serialize(graph), on_error="raise"))}


class Poison:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        import os

        return os._exit, (3,)


class PoisonOnce:
    """Ends the first process that unpickles it."""

    def __reduce__(self):
        import tempfile

        name = tempfile.mktemp()
        code = f"import os\nif not os.path.exists({name!r}):\n open({name!r}, 'w').close()\n os._exit(3)"
        return exec, (code,)


class Hungry:
    """Takes 800 MiB, for longer than any test."""

    def __reduce__(self):
        return exec, ("import time\ntaken = bytearray(b'1') * (800 * 2**20)\ntime.sleep(600)",)


class Slow:
    def __reduce__(self):
        import time

        return time.sleep, (600,)


class Broken:
    def __reduce__(self):
        return int, ("no number",)


def opaque(value):
    """A graph that does not get further than this value."""
    from distributed.protocol.serialize import Serialized, ToPickle, serialize, to_serialize

    message = {"op": "update-graph", "keys": ["x"], "annotations": ToPickle({"priority": value})}
    return {**message, "expr_ser": Serialized(*serialize(to_serialize(None)))}


def messages():
    two, _ = chained()
    yield message_of(*graph_of(two), {})
    total, _ = array()
    yield message_of(*graph_of(total), {})
    total, _ = annotated()
    yield message_of(*graph_of(total), {"resources": {"GPU": 1}})
    many = {f"inc-{index}": (inc, index) for index in range(5000)}
    yield message_of(plain(many), set(many), {})
    yield opaque(Poison())
    yield opaque(Slow())
    yield opaque(Broken())
    yield opaque(PoisonOnce())
    yield opaque(Hungry())


for message in messages():
    frames = [bytes(frame) for frame in dumps(message)]
    lengths = [len(frame) for frame in frames]
    sys.stdout.buffer.write(
        struct.pack(f"<{len(frames) + 2}Q", 8 + 8 * len(frames) + sum(lengths), len(frames), *lengths)
    )
    for frame in frames:
        sys.stdout.buffer.write(frame)
