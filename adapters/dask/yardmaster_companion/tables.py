"""The tables of the scheduler, read when they are looked at."""

from __future__ import annotations

from collections import defaultdict, deque

from .state import ClientState, MemoryState, TaskGroup, TaskPrefix, TaskState, WorkerState


class StateTables:
    """Each table is read at most once until the main thread is given up, or until the next event."""

    def _ask(self, op, **fields):
        return self._channel.ask(op, **fields)

    def _forget_views(self) -> None:
        self._tables.clear()

    def _batch(self, is_running) -> None:
        """Within a batch of events, views are forgotten for each event, and not by the loop."""
        self._tables.clear()
        self.__dict__["_in_batch"] = is_running

    def _table(self, name, load):
        """Loaded at most once until the main thread has been given up."""
        table = self._tables.get(name)
        if table is None:
            if not self._tables and not self._in_batch:
                self.loop.asyncio_loop.call_soon_threadsafe(self._forget_views)
            table = self._tables[name] = load()
        return table

    def _known_tasks(self):
        return self._table("tasks", lambda: {"": None})

    def _keep_task(self, values):
        known = self._known_tasks()
        task = known.get(values[0])
        if task is None:
            task = known[values[0]] = TaskState(self, values)
        return task

    def _remember_task(self, key, values) -> None:
        """For the length of an event: as it was when it happened."""
        self._known_tasks()[key] = TaskState(self, values)

    def _task(self, key):
        known = self._known_tasks()
        if key not in known:
            self._tasks_of([key])
        return known.get(key)

    def _tasks_of(self, keys):
        keys = list(keys)
        known = self._known_tasks()
        missing = [key for key in keys if key not in known]
        if missing:
            for key, values in zip(missing, self._ask("state.task", keys=missing)):
                known[key] = None if values is None else TaskState(self, values)
        return {known[key] for key in keys if known.get(key) is not None}

    def _tasks_with(self, keys):
        """As `_tasks_of`, with those that do not exist any more."""
        self._tasks_of(keys)
        known = self._known_tasks()
        return {known.get(key) or TaskState.gone(self, key) for key in keys}

    @property
    def workers(self):
        return self._table(
            "workers",
            lambda: {
                fields["address"]: WorkerState(self, fields)
                for fields in self._ask("state.workers")
            },
        )

    def _worker(self, address):
        worker = self.workers.get(address)
        if worker is None:
            worker = self.workers[address] = WorkerState(self, self._ask("state.gone", address=address))
        return worker

    @property
    def clients(self):
        return self._table(
            "clients",
            lambda: {
                fields["client_key"]: ClientState(self, fields)
                for fields in self._ask("state.clients")
            },
        )

    def _client(self, key):
        return self.clients.get(key) or ClientState(self, {"client_key": key})

    def _groups(self):
        return self._table("groups", lambda: self._ask("state.groups"))

    @property
    def task_groups(self):
        return {each["name"]: TaskGroup(self, each) for each in self._groups()["groups"]}

    @property
    def task_prefixes(self):
        return {each["name"]: TaskPrefix(self, each) for each in self._groups()["prefixes"]}

    def _group(self, name):
        from dask.utils import key_split

        nothing = {"states": {}, "_dependencies": (), "types": (), "all_durations": {}}
        sums = {"_prefix": key_split(name), "nbytes_total": 0, "duration": 0.0}
        known = self.task_groups.get(name)  # An empty one is false.
        return TaskGroup(self, {**nothing, **sums, "name": name}) if known is None else known

    def _prefix(self, name):
        nothing = {"duration_average": -1, "suspicious": 0, "nbytes_total": 0, "state_counts": {}}
        known = self.task_prefixes.get(name)
        return TaskPrefix(self, {**nothing, "name": name}) if known is None else known

    def _workers_with(self, name):
        addresses = self._ask("state.sets", name=name)
        return {self._worker(address) for address in addresses}

    @property
    def running(self):
        return self._workers_with("running")

    @property
    def saturated(self):
        return self._workers_with("saturated")

    @property
    def idle(self):
        return {worker.address: worker for worker in self._workers_with("idle")}

    @property
    def queued(self):
        return self._tasks_of(self._ask("state.sets", name="queued"))

    @property
    def unrunnable(self):
        return self._tasks_of(self._ask("state.sets", name="unrunnable"))

    @property
    def replicated_tasks(self):
        return self._tasks_of(self._ask("state.sets", name="replicated"))

    @property
    def total_nthreads(self):
        return self._ask("state.numbers")["total_nthreads"]

    @property
    def total_occupancy(self):
        return float(self._ask("state.numbers")["total_occupancy"])

    @property
    def total_memory(self):
        return sum(worker.memory_limit for worker in self.workers.values())

    @property
    def memory(self):
        parts = [vars(worker.memory) for worker in self.workers.values()]
        names = {name for part in parts for name in part if name != "_scheduler"}
        return MemoryState(self, {name: sum(part.get(name, 0) for part in parts) for name in names})

    @property
    def n_tasks(self):
        return len(self.tasks)

    @property
    def erred_tasks(self):
        return {task for task in self.tasks.values() if task.state == "erred"}

    @property
    def idle_task_count(self):
        return {each for each in self.running if len(each.processing) < each.nthreads}

    @property
    def is_idle(self):
        return all(group.done for group in self.task_groups.values())

    @property
    def host_info(self):
        return {
            host: {**info, "addresses": set(info["addresses"])}
            for host, info in self._ask("host_info").items()
        }

    @property
    def aliases(self):
        return {worker.name: address for address, worker in self.workers.items()}

    @property
    def task_metadata(self):
        return dict(self._ask("get_metadata", keys=[]))

    @property
    def time_started(self):
        return self._ask("identity")["started"]

    @property
    def idle_since(self):
        return self._ask("check_idle")

    @property
    def transition_log(self):
        """The newest transitions, as many as the scheduler keeps."""
        return deque(transitions_of(self._ask("state.transitions")))

    @property
    def transition_counter(self):
        return self._ask("state.numbers")["transition_counter"]

    @property
    def generation(self):
        return self._ask("state.numbers")["generation"]

    @property
    def total_nthreads_history(self):
        """The newest 10 000 changes."""
        return [tuple(change) for change in self._ask("state.thread-history")]

    @property
    def cumulative_worker_metrics(self):
        return defaultdict(int, self._ask("state.worker-metrics"))

    @property
    def resources(self):
        found = defaultdict(dict)
        for address, worker in self.workers.items():
            for name, quantity in worker.resources.items():
                found[name][address] = quantity
        return found

    @property
    def bandwidth(self):
        return self._ask("state.numbers")["bandwidth"]

    @property
    def bandwidth_workers(self):
        """As the receiving workers measured it."""
        found = {}
        for address, worker in self.workers.items():
            for sender, (bandwidth, _) in dict(measured(worker).get("workers") or {}).items():
                found[address, sender] = bandwidth
        return found

    @property
    def bandwidth_types(self):
        found = {}
        for worker in self.workers.values():
            for type, (bandwidth, _) in dict(measured(worker).get("types") or {}).items():
                found.setdefault(type, []).append(bandwidth)
        return {type: sum(each) / len(each) for type, each in found.items()}

    @property
    def worker_plugins(self):
        return self._ask("state.plugins")["worker"]

    @property
    def nanny_plugins(self):
        return self._ask("state.plugins")["nanny"]

    @property
    def events(self):
        return dict(self._ask("events", topic=None))


def transitions_of(rows):
    try:
        from distributed.scheduler import Transition
    except ImportError:  # older releases have tuples
        return [tuple(row) for row in rows]
    return [Transition(*row) for row in rows]


def measured(worker):
    return dict(dict(worker.metrics).get("bandwidth") or {})
