"""Tasks, workers, clients and groups as the scheduler has them at the moment of reading.

Objects have the names and attributes of those of Dask's scheduler, and cannot be changed. What they tell is
read from the scheduler when it is first looked at, and again after the running function has given up
the main thread: two looks without an `await` between them see the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class View:
    """Attributes in `fields` are there; others are loaded by `_load_…` of their group."""

    #: Attribute to the method that loads it.
    LOADED_BY = {}

    def __init__(self, scheduler, fields):
        self.__dict__["_scheduler"] = scheduler
        self.__dict__.update(fields)

    def __getattr__(self, name):
        loader = self.LOADED_BY.get(name)
        if loader is None:
            raise AttributeError(
                f"{type(self).__name__} of Yardmaster's scheduler has no {name!r}; "
                "docs/dask.md lists what Python beside the scheduler can see"
            )
        self.__dict__.update(getattr(self, loader)())
        return self.__dict__[name]

    def __setattr__(self, name, value):
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be changed from Python: it is a copy of what "
            "Yardmaster's scheduler has; scheduling is changed by its policies"
        )

    def __hash__(self):
        return hash((type(self), self._identity()))

    def __eq__(self, other):
        return type(self) is type(other) and self._identity() == other._identity()


class TaskState(View):
    LOADED_BY = {
        **dict.fromkeys(
            ("_dependencies", "dependents", "waiting_on", "waiters", "exception_blame"), "_load_links"
        ),
        **dict.fromkeys(
            (
                "annotations",
                "metadata",
                "host_restrictions",
                "worker_restrictions",
                "resource_restrictions",
                "loose_restrictions",
                "exception",
                "exception_text",
                "traceback",
                "traceback_text",
                "run_spec",
                "has_lost_dependencies",
                "run_id",
                "erred_on",
            ),
            "_load_details",
        ),
    }

    #: As the scheduler sends them.
    FIELDS = (
        "key",
        "state",
        "group_key",
        "prefix_key",
        "priority",
        "nbytes",
        "type",
        "retries",
        "suspicious",
        "actor",
        "_processing_on",
        "_who_has",
        "_who_wants",
        # In events only; otherwise they are asked for.
        "_inputs",
        "annotations",
    )

    def __init__(self, scheduler, values):
        super().__init__(scheduler, zip(self.FIELDS, values))

    @classmethod
    def gone(cls, scheduler, key):
        """A task of which only the key is left."""
        nothing = (None, None, -1, None, 0, 0, False, None, (), (), (), {})
        return cls(scheduler, (key, "forgotten", *nothing))

    @property
    def dependencies(self):
        inputs = self.__dict__.get("_inputs")
        return self._dependencies if inputs is None else self._scheduler._tasks_with(inputs)

    def _identity(self):
        return self.key

    @property
    def processing_on(self):
        address = self._processing_on
        return None if address is None else self._scheduler._worker(address)

    @property
    def who_has(self):
        return {self._scheduler._worker(address) for address in self._who_has}

    @property
    def who_wants(self):
        return {self._scheduler._client(client) for client in self._who_wants}

    @property
    def prefix(self):
        return self._scheduler._prefix(self.prefix_key)

    @property
    def group(self):
        return self._scheduler._group(self.group_key)

    def get_nbytes(self):
        if self.nbytes >= 0:
            return self.nbytes
        import dask
        from dask.utils import parse_bytes

        return parse_bytes(dask.config.get("distributed.scheduler.default-data-size"))

    def get_nbytes_deps(self):
        return sum(each.get_nbytes() for each in self.dependencies)

    def _load_links(self):
        links = self._scheduler._ask("state.links", key=self.key) or {}
        blame = links.get("exception_blame")
        names = ("dependents", "waiting_on", "waiters")
        loaded = {name: self._scheduler._tasks_of(links.get(name, ())) for name in names}
        loaded["_dependencies"] = self._scheduler._tasks_of(links.get("dependencies", ()))
        loaded["exception_blame"] = None if blame is None else self._scheduler.tasks.get(blame)
        return loaded

    def _load_details(self):
        details = self._scheduler._ask("state.details", key=self.key) or {}
        loaded = {
            name: details.get(name)
            for name, loader in self.LOADED_BY.items()
            if loader == "_load_details"
        }
        for name in ("annotations", "metadata", "resource_restrictions"):
            loaded[name] = dict(loaded[name] or {})
        if "annotations" in self.__dict__:
            del loaded["annotations"]
        for name in ("host_restrictions", "worker_restrictions"):
            loaded[name] = set(loaded[name] or ())
        if loaded["erred_on"] is not None:
            loaded["erred_on"] = set(loaded["erred_on"])
        return loaded

    def __repr__(self):
        return f"<TaskState {self.key!r} {self.state}>"


class Tasks(Mapping):
    """All tasks by key. Looking at many of them at once costs as much as there are tasks."""

    def __init__(self, scheduler):
        self._scheduler = scheduler

    def __getitem__(self, key):
        task = self._scheduler._task(key)
        if task is None:
            raise KeyError(key)
        return task

    def __len__(self):
        return self._scheduler._ask("state.numbers")["tasks"]

    def __iter__(self):
        return iter([task.key for task in self._all()])

    def values(self):
        return self._all()

    def items(self):
        return [(task.key, task) for task in self._all()]

    def _all(self):
        found = []
        cursor = None
        while True:
            page = self._scheduler._ask("state.tasks", cursor=cursor)
            found.extend(self._scheduler._keep_task(values) for values in page["tasks"])
            cursor = page["cursor"]
            if cursor is None:
                return found

    def __repr__(self):
        return f"<Tasks: {len(self)}>"


class MemoryState(View):
    def _identity(self):
        return id(self)

    def __repr__(self):
        return f"<MemoryState process={self.process} managed={self.managed}>"


class WorkerState(View):
    TABLES = ("processing", "has_what", "long_running", "actors")
    LOADED_BY = {name: "_load_tables" for name in TABLES}

    def __init__(self, scheduler, fields):
        from distributed.core import Status

        fields = dict(fields)
        fields["status"] = getattr(Status, fields["status"], Status.undefined)
        fields["memory"] = MemoryState(scheduler, fields["memory"])
        super().__init__(scheduler, fields)

    def _identity(self):
        return self.address

    def _load_tables(self):
        keys = self._scheduler._ask("state.worker-tasks", worker=self.address)
        return {name: self._scheduler._tasks_of(keys[name]) for name in self.TABLES}

    @property
    def executing(self):
        return {
            self._scheduler._task(key): seconds
            for key, seconds in dict(self.metrics.get("executing") or {}).items()
        }

    @property
    def needs_what(self):
        """Inputs of its tasks that it does not have, with the number of tasks that need each."""
        held = self.has_what
        return Counter(
            needed for task in self.processing for needed in task.dependencies if needed not in held
        )

    @property
    def task_prefix_count(self):
        return Counter(task.prefix_key for task in self.processing)

    @property
    def bandwidth(self):
        measured = dict(dict(self.metrics).get("bandwidth") or {}).get("total")
        return self._scheduler.bandwidth if measured is None else measured

    def scheduler_ref(self):
        return self._scheduler

    @property
    def scheduler(self):
        return self._scheduler

    def clean(self):
        return self

    def identity(self):
        return self._scheduler.identity()["workers"].get(self.address, {})

    def __repr__(self):
        return f"<WorkerState {self.address!r}, name: {self.name}, status: {self.status.name}>"


class ClientState(View):
    LOADED_BY = {"wants_what": "_load_wants"}

    def _identity(self):
        return self.client_key

    def _load_wants(self):
        keys = self._scheduler._ask("state.client-tasks", client=self.client_key)
        return {"wants_what": self._scheduler._tasks_of(keys)}

    def __repr__(self):
        return f"<Client {self.client_key!r}>"


class TaskGroup(View):
    def _identity(self):
        return self.name

    @property
    def prefix(self):
        return self._scheduler._prefix(self._prefix)

    @property
    def dependencies(self):
        return {self._scheduler._group(name) for name in self._dependencies}

    @property
    def done(self):
        return all(
            not count or state in ("memory", "erred", "released", "forgotten")
            for state, count in self.states.items()
        )

    def __len__(self):
        return sum(self.states.values())

    def __repr__(self):
        states = " ".join(f"{state}: {count}" for state, count in self.states.items() if count)
        return f"<{self.name}: {states}>"


class TaskPrefix(View):
    def _identity(self):
        return self.name

    @property
    def groups(self):
        return [group for group in self._scheduler.task_groups.values() if group._prefix == self.name]

    @property
    def states(self):
        total = {}
        for group in self.groups:
            for state, count in group.states.items():
                total[state] = total.get(state, 0) + count
        return total

    @property
    def active_states(self):
        return self.states

    @property
    def active(self):
        return [group for group in self.groups if any(group.states.values())]

    @property
    def duration(self):
        return sum(group.duration for group in self.groups)

    @property
    def all_durations(self):
        return sum((Counter(group.all_durations) for group in self.groups), Counter())

    @property
    def types(self):
        return {type for group in self.groups for type in group.types}

    def __len__(self):
        return sum(map(len, self.groups))

    def __repr__(self):
        return f"<TaskPrefix {self.name!r}>"
