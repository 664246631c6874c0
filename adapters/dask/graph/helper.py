"""Reads graphs for a scheduler that is not written in Python.

A scheduler starts this file with the Python that its clients and workers use, writes requests to its
standard input and reads answers from its standard output. Both are messages of Dask: a table of
lengths (u64, little-endian: all bytes that follow, number of frames, length of each frame), then the
frames, of which the first is msgpack.

First the helper identifies itself: {"ready": true, "versions": {...}}. Then it answers requests one by
one, in their order. Each request has "id" and "op"; each answer has the "id", "more" when further
answers to the same request follow, and "error" when it failed.

op "unpack": a graph, in the fields of the client's message that hold one:
  "hlg"                            layers (before 2023.4)
  "graph_header", "graph_frames"   a pickled HighLevelGraph (before 2025.4)
  "expr_ser"                       a pickled expression
  and "keys", "annotations"
  Answers have parallel lists of the tasks that the keys need:
  "keys"         of these tasks
  "links"        for each task the positions of its inputs in the whole graph; a position beyond the
                 last task counts into "outside"
  "specs"        for each task the sub-header of its pickled run specification, or
                 [kind, sub-header, blobs] with the positions of further frames in the table of blobs,
                 kind 0 pickled and 1 serialized, or [2, blob of the function, args, kwargs]
  "annotations"  different ones, and "annotated": for each task the position in them, or -1; absent
                 when no task has any
  "producers"    positions of the tasks that are data producers (since 2025.1); absent without any
  and "count" of all tasks, "outside": keys of inputs that are not in the graph (first answer), and
  "blobs": how many of the frames at the end of the message are added to the table of blobs. The
  table holds what several tasks share, above all functions; it lives as long as the request.

op "packages": no fields; gives {"packages": {name: version}}, those that Dask compares between peers.

op "memory": no fields; gives {"memory": bytes that the process uses}.

op "inspect": {"value": object, "attributes": [names]} gives {"type", "module", "attributes": {...}}.

op "upload": {"plugin": pickle of a SchedulerUploadFile, "folder"} puts its file into the folder and
  gives {"uploaded": true, "filename", "load": whether it is to be imported}; {"uploaded": false} for any
  other object. Later requests name the "folder", from which modules are then imported as well.

op "import": {"folder", "filename"} imports the modules of that file, again if they were imported before.

op "shuffle-run": {"task": run specification of the barrier of a P2P shuffle, "workers": addresses,
  "placed": [[output partition, address]], "run_id", "span_id"} gives {"shuffle_id", "worker_for":
  [[output partition, address]], "run_spec": what the workers want to see}.
"""

from __future__ import annotations

import copyreg
import gc
import inspect
import operator
import os
import pickle
import signal
import struct
import sys
import threading
import time
from io import BytesIO
from types import FunctionType

PICKLED, SERIALIZED, CALL = 0, 1, 2

#: An answer ends when it has this many tasks or bytes, so that the reader can begin with it.
CHUNK_TASKS = 2_000
CHUNK_NBYTES = 4 * 2**20

#: Exit code of a process that used too much memory, and seconds between two looks at that.
OUT_OF_MEMORY = 77
MEMORY_INTERVAL = 0.05

#: So many new objects are made before the collector looks for garbage.
GARBAGE_OBJECTS = 200_000

#: Shorter frames are not worth a look whether they were sent already.
SHARED_NBYTES_MIN = 64


def main() -> None:
    requests = os.fdopen(os.dup(0), "rb", buffering=2**20)
    answers = os.fdopen(os.dup(1), "wb", buffering=2**20)
    # Whatever user code prints must not get between the answers.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)

    # Ctrl-C is meant for the scheduler, which ends this process when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Modules of users must not be hidden by the files of this folder.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if path != here]
    # Late, so that an error here is reported on standard error only.
    import dask
    import dask.highlevelgraph
    import dask.order
    import distributed
    import distributed.scheduler

    versions = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "dask": dask.__version__,
        "distributed": distributed.__version__,
    }
    # A graph is millions of objects that all stay until it is answered: to look for garbage among
    # them, and among the modules, is a quarter of the work.
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)
    is_busy = limit_memory(int(sys.argv[1])) if len(sys.argv) > 1 else threading.Event()
    write(answers, {"ready": True, "versions": versions})
    answers.flush()
    while True:
        frames = read(requests)
        if frames is None:
            return
        is_busy.set()
        try:
            answer(frames, answers)
            answers.flush()
        except BrokenPipeError:
            return
        is_busy.clear()


def limit_memory(limit) -> threading.Event:
    """Ends the process when it uses more than this many bytes while the returned event is set."""
    is_busy = threading.Event()

    def watch():
        while is_busy.wait():
            if memory_used() > limit:
                os.write(
                    2,
                    f"a graph needed more than {limit / 2**20:.0f} MiB of memory to be read; "
                    'the option "pythonMemoryBytes" allows more\n'.encode(),
                )
                os._exit(OUT_OF_MEMORY)
            time.sleep(MEMORY_INTERVAL)

    threading.Thread(target=watch, name="memory", daemon=True).start()
    return is_busy


def memory_used() -> int:
    import psutil

    return psutil.Process().memory_info().rss


def answer(frames, answers) -> None:
    """Answers one request."""
    import msgpack
    from distributed.core import error_message
    from distributed.protocol.core import loads

    # Read apart, so that a request that cannot be read as a whole has a name.
    id = msgpack.unpackb(frames[0], raw=False, strict_map_key=False, use_list=False)["id"]
    try:
        request = loads(frames, deserialize=False)
        op = request["op"]
        folder = request.get("folder")
        if folder is not None and folder not in sys.path:
            sys.path.insert(0, folder)
        if op == "unpack":
            unpack(id, request, answers)
        elif op == "packages":
            write(answers, {"id": id, "packages": dict(get_packages())})
        elif op == "memory":
            write(answers, {"id": id, "memory": memory_used()})
        elif op == "inspect":
            write(answers, {"id": id, **inspect_value(request)})
        elif op == "upload":
            write(answers, {"id": id, **upload(request)})
        elif op == "import":
            write(answers, {"id": id, **import_again(request)})
        elif op == "feed":
            write(answers, {"id": id, **describe_feed(request)})
        elif op == "shuffle-run":
            write(answers, {"id": id, **shuffle_run(request)})
        else:
            raise ValueError(f"unknown op {op!r}")
    except BrokenPipeError:
        raise
    except BaseException as error:  # user code may raise SystemExit, too
        try:
            message = error_message(error)
        except BaseException:
            message = error_message(RuntimeError(f"{type(error).__name__} without a description"))
        write(answers, {"id": id, "error": message})


def get_packages():
    from distributed.versions import get_versions

    return get_versions()["packages"]


def upload(request):
    from distributed.protocol.pickle import loads

    plugin = loads(request["plugin"])
    if type(plugin).__name__ != "SchedulerUploadFile":
        return {"uploaded": False}
    path = os.path.join(request["folder"], os.path.basename(plugin.filename))
    data = plugin.data
    with open(path, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    load = getattr(plugin, "load", True)  # Old releases always load it.
    return {"uploaded": True, "filename": os.path.basename(path), "load": bool(load)}


def import_again(request):
    from distributed.utils import import_file

    import_file(os.path.join(request["folder"], request["filename"]))
    return {}


# ---- graphs ------------------------------------------------------------------------------------


def unpack(id, request, answers) -> None:
    keys = request["keys"]
    dsk, dependencies, annotations, everywhere = materialize(request)
    dsk = needed(dsk, dependencies, keys)
    position = {key: index for index, key in enumerate(dsk)}
    outside = []
    specs = Specs()
    chunk = Chunk(id, len(dsk))
    annotated = Annotations(annotations, everywhere)
    for key, value in dsk.items():
        links = []
        for dependency in dependencies[key]:
            if dependency == key:
                continue
            index = position.get(dependency)
            if index is None:
                index = position[dependency] = len(dsk) + len(outside)
                outside.append(dependency)
            links.append(index)
        is_producer = getattr(value, "data_producer", False) is True
        chunk.add(key, links, specs.dump(value), annotated.of(key), is_producer)
        if len(chunk.keys) >= CHUNK_TASKS or specs.nbytes >= CHUNK_NBYTES:
            chunk.write(answers, specs, annotated, more=True)
            # The scheduler is to begin with it now.
            answers.flush()
    chunk.write(answers, specs, annotated, more=False, outside=outside)


def materialize(request):
    """(tasks, dependencies, annotations by name and key, annotations for all keys)"""
    if "hlg" in request:
        from dask.highlevelgraph import HighLevelGraph

        unpacked = HighLevelGraph.__dask_distributed_unpack__(request["hlg"])
        dsk = unpacked["dsk"]
        for key in [key for key, value in dsk.items() if value is key]:
            del dsk[key]
        return dsk, unpacked["deps"], unpacked["annotations"], {}

    from distributed import scheduler
    from distributed.protocol.serialize import deserialize

    everywhere = request.get("annotations") or {}
    try:
        if "expr_ser" in request:
            graph = deserialize(request["expr_ser"].header, request["expr_ser"].frames)
        else:
            graph = deserialize(request["graph_header"], request["graph_frames"])
            graph = getattr(graph, "data", graph)
    except Exception as error:
        raise RuntimeError(
            "Error during deserialization of the task graph. This frequently occurs if the "
            "scheduler's Python and the client have different environments: "
            f"{type(error).__name__}: {error}"
        ) from error

    # A private function, whose form differs from release to release.
    function = getattr(scheduler, "_materialize_graph", None)
    if function is None:
        function = scheduler.Scheduler.materialize_graph  # 2023.4
    offered = {
        "graph": graph,
        "expr": graph,
        "hlg": graph,
        "global_annotations": everywhere,
        "keys": request["keys"],
        "validate": False,
    }
    wanted = inspect.signature(function).parameters
    result = function(**{name: offered[name] for name in wanted})
    if len(result) == 2:
        dsk, annotations = result
        dependencies = Dependencies(dsk)
    else:
        dsk, dependencies, annotations = result[:3]
    if "global_annotations" in wanted:
        everywhere = {}
    # From 2024.8.0 to 2024.10.0 the scheduler brings tasks into the form of the workers itself.
    normalize = getattr(scheduler, "_normalize_task", None)
    if normalize is not None and "_normalize_task" not in function.__code__.co_names:
        dsk = {key: normalize(value) for key, value in dsk.items()}
    return dsk, dependencies, annotations, everywhere


class Dependencies:
    """Of tasks that know them themselves."""

    def __init__(self, dsk):
        self.dsk = dsk

    def __getitem__(self, key):
        return self.dsk[key].dependencies


def needed(dsk, dependencies, keys):
    """The tasks that the keys need, in the order of the graph."""
    work = [key for key in keys if key in dsk]
    seen = set(work)
    while work:
        for dependency in dependencies[work.pop()]:
            if dependency not in seen and dependency in dsk:
                seen.add(dependency)
                work.append(dependency)
    if len(seen) == len(dsk):
        return dsk
    return {key: value for key, value in dsk.items() if key in seen}


class Annotations:
    """Annotations by task; equal ones are sent once."""

    def __init__(self, by_name, everywhere):
        self.by_name = [(name, values) for name, values in by_name.items() if values]
        self.everywhere = everywhere
        self.has_functions = any(callable(value) for value in everywhere.values())
        self.none = not self.by_name and not everywhere
        self.positions = {}
        self.count = 0
        self.fresh = []

    def of(self, key) -> int:
        if self.none:
            return -1
        annotations = self.everywhere
        if self.has_functions:
            annotations = {
                name: value(key) if callable(value) else value
                for name, value in annotations.items()
            }
        for name, values in self.by_name:
            value = values.get(key)
            if value is not None:
                annotations = {**annotations, name: value}
        if not annotations:
            return -1
        # The values stay alive as long as the graph does; what a function has made just now may not.
        identity = tuple((name, id(value)) for name, value in annotations.items())
        position = None if self.has_functions else self.positions.get(identity)
        if position is None:
            position = self.positions[identity] = self.count
            self.count += 1
            self.fresh.append(annotations)
        return position


class Chunk:
    """Tasks of the next answer."""

    def __init__(self, id, count):
        self.id = id
        self.count = count
        self.clear()

    def clear(self):
        self.keys, self.links, self.specs, self.annotated, self.producers = [], [], [], [], []

    def add(self, key, links, spec, annotation, is_producer):
        if is_producer:
            self.producers.append(len(self.keys))
        self.keys.append(key)
        self.links.append(links)
        self.specs.append(spec)
        self.annotated.append(annotation)

    def write(self, answers, specs, annotated, more, outside=None):
        blobs = specs.take()
        message = {
            "id": self.id,
            "more": more,
            "count": self.count,
            "keys": self.keys,
            "links": self.links,
            "specs": self.specs,
            "blobs": len(blobs),
        }
        if not annotated.none:
            message["annotations"] = annotated.fresh
            message["annotated"] = self.annotated
            annotated.fresh = []
        if self.producers:
            message["producers"] = self.producers
        if outside is not None:
            message["outside"] = outside
        write(answers, message, blobs)
        self.clear()


# ---- run specifications ------------------------------------------------------------------------


class Specs:
    """Pickles run specifications as workers expect them; what tasks share becomes a blob."""

    def __init__(self):
        import distributed
        import msgpack
        from distributed.protocol.serialize import Serialize, Serialized

        self.pack = msgpack.Packer(use_bin_type=True).pack
        self.serialized = Serialized
        self.serialize = Serialize
        self.functions = Functions()
        self.pickled_functions = {}
        self.are_calls = version_of(distributed) < (2023, 8, 1)
        self.blobs = []
        #: Position by identity of the memory, and what keeps this memory in place.
        self.positions = {}
        self.count = 0
        #: Of the present chunk.
        self.nbytes = 0

    def take(self):
        blobs, self.blobs, self.nbytes = self.blobs, [], 0
        return blobs

    def dump(self, value):
        if isinstance(value, dict) and self.are_calls:
            return self.dump_call(value)
        if isinstance(value, (self.serialize, self.serialized)):
            return self.dump_serialized(value)
        return self.dump_pickled(value)

    def dump_pickled(self, value):
        """As `ToPickle` goes over the wire."""
        pickled, buffers = self.functions.dumps(value)
        header = self.pack(
            {
                "pickled-obj": pickled,
                "compression": [None] * len(buffers),
                "num-sub-frames": len(buffers),
            }
        )
        self.nbytes += len(header)
        if not buffers:
            return header
        return [PICKLED, header, [self.blob(buffer.raw()) for buffer in buffers]]

    def dump_serialized(self, value):
        """As `Serialize` goes over the wire."""
        from distributed.protocol.serialize import msgpack_encode_default, serialize_and_split

        if isinstance(value, self.serialized):
            header, frames = dict(value.header), value.frames
        else:
            import dask

            header, frames = serialize_and_split(
                value, size=dask.utils.parse_bytes(dask.config.get("distributed.comm.shard"))
            )
            header = {**header, "compression": (None,) * len(frames)}
        header["num-sub-frames"] = len(frames)
        import msgpack

        packed = msgpack.packb(header, default=msgpack_encode_default, use_bin_type=True)
        self.nbytes += len(packed)
        return [SERIALIZED, packed, [self.blob(memoryview(frame)) for frame in frames]]

    def dump_call(self, value):
        """A function, arguments and keyword arguments, pickled one by one (before 2023.8.1)."""
        function = value["function"]
        # Layers hold copies of one function, which are not the same object.
        function = self.pickled_functions.setdefault(function, function)
        parts = [CALL, self.blob(memoryview(function))]
        for name in ("args", "kwargs"):
            part = value.get(name)
            if isinstance(part, (self.serialize, self.serialized)):
                part = self.dump_serialized(part)
            elif part is not None:
                self.nbytes += len(part)
            parts.append(part)
        return parts

    def blob(self, memory) -> int:
        """Position of a frame in the table of blobs."""
        nbytes = memory.nbytes
        identity = identity_of(memory) if nbytes >= SHARED_NBYTES_MIN else None
        if identity is not None:
            known = self.positions.get(identity)
            if known is not None:
                return known[0]
        position = self.count
        self.count += 1
        self.blobs.append(memory.cast("B") if nbytes > 0 else b"")
        self.nbytes += nbytes
        if identity is not None:
            self.positions[identity] = (position, memory)
        return position


def identity_of(memory):
    """The identity of the object that is exactly this memory; None when the memory is a part of one."""
    owner = memory.obj
    if type(owner) is bytes:
        return (id(owner),) if len(owner) == memory.nbytes else None
    # NumPy may not be there, so that its class cannot be named.
    if type(owner).__name__ == "ndarray" and owner.nbytes == memory.nbytes:
        return (id(owner),)
    return None


class Functions:
    """Pickles tasks. Functions that must travel by value are pickled once and become buffers."""

    def __init__(self):
        import cloudpickle
        from distributed.protocol import pickle as dask_pickle

        self.dumps_by_value = cloudpickle.dumps
        self.dumps_whole = dask_pickle.dumps
        registry = getattr(cloudpickle, "list_registry_pickle_by_value", set)()
        self.modules_by_value = frozenset(registry) | {"__main__"}
        #: By identity: the function, and its pickle or None when a reference is enough.
        self.known = {}
        functions = self

        task_class, state_of = task_state()

        class Pickler(pickle.Pickler):
            def reducer_override(self, value):
                value_class = type(value)
                if value_class is FunctionType:
                    return functions.reduce(value)
                if value_class is task_class:
                    return copyreg.__newobj__, (task_class,), state_of(value)
                return NotImplemented

        #: Used again for each task: to make a pickler takes as long as to use it.
        self.file = BytesIO()
        self.buffers = []
        self.pickler = Pickler(self.file, 5, buffer_callback=self.buffers.append)

    def dumps(self, value):
        """The pickle, and its buffers. The list of these is good until the next call."""
        file, buffers, pickler = self.file, self.buffers, self.pickler
        file.seek(0)
        file.truncate()
        buffers.clear()
        pickler.clear_memo()
        try:
            pickler.dump(value)
            pickled = file.getvalue()
        except Exception:
            pickled = None
        # A class of __main__ is a reference that other processes cannot resolve.
        if pickled is None or b"__main__" in pickled:
            buffers.clear()
            pickled = self.dumps_whole(value, buffer_callback=buffers.append)
        return pickled, buffers

    def reduce(self, function):
        known = self.known.get(id(function))
        if known is None:
            known = self.known[id(function)] = (function, self.by_value(function))
        buffer = known[1]
        if buffer is None:
            return NotImplemented
        return pickle.loads, (buffer,)

    def by_value(self, function):
        module = function.__module__
        if module not in self.modules_by_value:
            found = sys.modules.get(module)
            for name in function.__qualname__.split("."):
                found = getattr(found, name, None)
            if found is function:
                return None
        return pickle.PickleBuffer(self.dumps_by_value(function, protocol=5))


def task_state():
    """The class of tasks, and a function that reads the state of one for its pickle.

    The class does the same slot by slot in Python, which is half the time of a pickle. Two times None
    in releases whose tasks have another form.
    """
    try:
        from dask._task_spec import Task

        state_of = operator.attrgetter(*Task.get_all_slots())
        task = Task("key", len, [])
        if task.__reduce_ex__(5)[:3] == (copyreg.__newobj__, (Task,), state_of(task)):
            return Task, state_of
    except (ImportError, AttributeError):
        pass
    return None, None


def version_of(module):
    parts = []
    for part in module.__version__.split(".")[:3]:
        digits = "".join(character for character in part if character.isdigit())
        parts.append(int(digits or 0))
    return tuple(parts)


# ---- other questions ---------------------------------------------------------------------------


def inspect_value(request):
    from distributed.protocol.serialize import deserialize

    value = request["value"]
    if hasattr(value, "header"):
        value = deserialize(value.header, value.frames)
    return {
        "type": type(value).__name__,
        "module": type(value).__module__,
        "attributes": {
            name: getattr(value, name) for name in request["attributes"] if hasattr(value, name)
        },
    }


#: Functions of `distributed.diagnostics.progressbar` that clients send.
BARS = {
    "ProgressBar.listen.<locals>.setup": "single",
    "MultiProgressBar.listen.<locals>.setup": "multiple",
}


def describe_feed(request):
    from distributed.protocol.pickle import loads

    setup = loads(request["setup"])
    bar = BARS.get(getattr(setup, "__qualname__", None))
    if bar is None or setup.__module__ != "distributed.diagnostics.progressbar":
        return {}
    names = setup.__code__.co_freevars
    seen = {name: cell.cell_contents for name, cell in zip(names, setup.__closure__)}
    group_by = seen.get("group_by", seen.get("func"))
    if not (group_by in (None, "prefix") or getattr(group_by, "__name__", "") == "key_split"):
        return {}
    return {
        "bar": bar,
        "keys": list(seen["keys"]),
        "complete": bool(seen["complete"]),
    }


def shuffle_run(request):
    from dataclasses import fields

    from distributed.protocol.serialize import ToPickle
    from distributed.shuffle._core import ShuffleRunSpec

    spec = shuffle_spec(request["spec"] if "spec" in request else request["task"].spec)
    placed = dict(request["placed"])
    workers = list(request["workers"])

    def place(partitions, pick):
        found = {}
        for partition in partitions:
            worker = placed.get(partition)
            found[partition] = pick(partition, workers) if worker is None else worker
        return found

    if hasattr(spec, "pick_worker"):
        worker_for = place(spec.output_partitions, spec.pick_worker)
    else:
        # Before 2023.12 it calls the scheduler's plugin with its partitions.
        class Plugin:
            @staticmethod
            def _pin_output_workers(id, output_partitions, pick):
                return place(output_partitions, pick)

        worker_for = spec._pin_output_workers(Plugin)
    parts = {"spec": spec, "worker_for": worker_for}
    if "span_id" in (field.name for field in fields(ShuffleRunSpec)):
        parts["span_id"] = request["span_id"]
    run = ShuffleRunSpec(**parts)
    # The class is frozen, and counts by itself; after a restart this process would count anew.
    object.__setattr__(run, "run_id", request["run_id"])
    return {
        "worker_for": list(worker_for.items()),
        "run_spec": ToPickle(run),
    }


def shuffle_spec(value):
    # Some releases wrap it to say how it travels.
    return getattr(value, "data", value)


# ---- messages ----------------------------------------------------------------------------------


def read(file):
    """Frames of the next message; None at the end of the file."""
    head = file.read(16)
    if len(head) < 16:
        return None
    _, count = struct.unpack("<QQ", head)
    lengths = struct.unpack(f"<{count}Q", file.read(8 * count))
    return [file.read(length) for length in lengths]


def write(file, message, blobs=()) -> None:
    from distributed.protocol.core import dumps

    frames = [*dumps(message), *blobs]
    lengths = [memoryview(frame).nbytes for frame in frames]
    table = struct.pack(f"<{len(frames) + 1}Q", len(frames), *lengths)
    file.write(struct.pack("<Q", len(table) + sum(lengths)))
    file.write(table)
    for frame in frames:
        file.write(frame)


if __name__ == "__main__":
    main()
