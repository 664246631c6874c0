"""What functions and plugins get as `dask_scheduler`."""

from __future__ import annotations

import asyncio
import collections
import os
import sys
import threading

from .methods import caller_for, changes_scheduler
from .state import Tasks
from .tables import StateTables, transitions_of


class WatchedDict(dict):
    """A dict that reports each change. A change that is refused is undone."""

    def __init__(self, changed):
        self.changed = changed

    def _change(self, change):
        before = dict(self)
        change()
        try:
            self.changed()
        except BaseException:
            super().clear()
            super().update(before)
            raise

    def __setitem__(self, key, value):
        self._change(lambda: super(WatchedDict, self).__setitem__(key, value))

    def __delitem__(self, key):
        if key not in self:
            raise KeyError(key)
        self._change(lambda: super(WatchedDict, self).__delitem__(key))

    def update(self, *args, **kwargs):
        self._change(lambda: super(WatchedDict, self).update(*args, **kwargs))

    def pop(self, key, *default):
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        self._change(super().clear)


class Extension:
    """Stands for an extension that is a part of Yardmaster's scheduler: one can see that it is there."""

    def __init__(self, scheduler, name):
        self.scheduler = scheduler
        self.name = name

    def __getattr__(self, attribute):
        raise AttributeError(
            f"the extension {self.name!r} is not written in Python, and has no {attribute!r}; "
            "docs/dask.md lists what functions and plugins beside the scheduler can use"
        )

    def __repr__(self):
        return f"<Extension {self.name!r} of Yardmaster's scheduler>"


def extensions_of(scheduler):
    """Those that a scheduler of the installed release has."""
    from distributed.scheduler import DEFAULT_EXTENSIONS

    return {name: Extension(scheduler, name) for name in (*DEFAULT_EXTENSIONS, "stealing")}


def settings():
    """Attributes that are settings, as Dask's configuration has them."""
    import dask
    from dask.utils import parse_timedelta

    get = dask.config.get
    return {
        "WORKER_SATURATION": get("distributed.scheduler.worker-saturation"),
        "UNKNOWN_TASK_DURATION": parse_timedelta(get("distributed.scheduler.unknown-task-duration")),
        "MEMORY_RECENT_TO_OLD_TIME": parse_timedelta(
            get("distributed.worker.memory.recent-to-old-time")
        ),
        "MEMORY_REBALANCE_MEASURE": get("distributed.worker.memory.rebalance.measure"),
        "MEMORY_REBALANCE_SENDER_MIN": get("distributed.worker.memory.rebalance.sender-min"),
        "MEMORY_REBALANCE_RECIPIENT_MAX": get("distributed.worker.memory.rebalance.recipient-max"),
        "MEMORY_REBALANCE_HALF_GAP": get(
            "distributed.worker.memory.rebalance.sender-recipient-gap"
        )
        / 2,
        "allowed_failures": get("distributed.scheduler.allowed-failures"),
        "idle_timeout": parse_timedelta(get("distributed.scheduler.idle-timeout")),
        "no_workers_timeout": parse_timedelta(get("distributed.scheduler.no-workers-timeout", None)),
        "rootish_tg_threshold": get("distributed.scheduler.rootish-taskgroup", 5),
        "rootish_tg_dependencies_threshold": get(
            "distributed.scheduler.rootish-taskgroup-dependencies", 5
        ),
        "worker_ttl": parse_timedelta(get("distributed.scheduler.worker-ttl"), default="s"),
    }


class SchedulerFacade(StateTables):
    """The scheduler, as far as Python can have it: it reads, calls and listens, and cannot change the state."""

    def __init__(self, channel):
        from distributed.core import Status
        from tornado.ioloop import IOLoop

        fields = {
            "_channel": channel,
            "_hooks": [],
            "_tables": {},
            "_in_batch": False,
            "status": Status.running,
            "loop": IOLoop.current(),
            "plugins": WatchedDict(self._plugins_changed),
            "handlers": WatchedDict(self._handlers_changed),
            "stream_handlers": WatchedDict(self._handlers_changed),
            "extensions": extensions_of(self),
            "computations": collections.deque(),
            "periodic_callbacks": {},
            "thread_id": threading.get_ident(),
            # The checks of Yardmaster's scheduler are an option of its own.
            "validate": False,
            "transition_counter_max": False,
            # Jupyter would run inside of the scheduler.
            "jupyter": False,
            "preloads": [],
            **settings(),
            "tasks": Tasks(self),
            "_ongoing_background_tasks": background_tasks(),
        }
        fields["io_loop"] = fields["loop"]
        self.__dict__.update(fields)

    async def _configure(self, fields) -> None:
        from distributed.comm.addressing import get_address_host_port
        from distributed.core import ConnectionPool
        from distributed.security import Security

        self.__dict__.update(fields)
        host, port = get_address_host_port(self.address)
        #: Connections to workers and nannies.
        rpc = ConnectionPool(connection_args=Security().get_connection_args("scheduler"))
        await rpc.start()
        self.__dict__.update(
            ip=host, host=host, port=port, contact_address=None, name=self.id, rpc=rpc
        )
        self.__dict__.update(address_safe=self.address)
        if self.local_directory not in sys.path:
            sys.path.insert(0, self.local_directory)

    def __setattr__(self, name, value):
        """Plugins may set further attributes here."""
        if changes_scheduler(name):
            raise AttributeError(
                f"{name} cannot be set from Python: it would not change Yardmaster's scheduler. "
                "Its configuration and policies do"
            )
        self.__dict__[name] = value

    def __getattr__(self, name):
        # Only for what is not there otherwise.
        return caller_for(self, name)

    # ---- what Dask computes from the tables ----------------------------------------------------

    def workers_list(self, workers):
        from distributed.scheduler import Scheduler

        return Scheduler.workers_list(self, workers)

    def coerce_address(self, addr, resolve=True):
        from distributed.scheduler import Scheduler

        return Scheduler.coerce_address(self, addr, resolve)

    def coerce_hostname(self, host):
        from distributed.scheduler import Scheduler

        return Scheduler.coerce_hostname(self, host)

    def story(self, *keys_or_tasks_or_stimuli):
        wanted = {getattr(each, "key", each) for each in keys_or_tasks_or_stimuli}
        return transitions_of(self._ask("get_story", keys_or_stimuli=list(wanted)))

    async def get_story(self, keys_or_stimuli=(), keys=()):
        return self.story(*keys_or_stimuli, *keys)

    def versions(self, packages=None):
        from distributed.scheduler import Scheduler

        return Scheduler.versions(self, packages)

    def echo(self, data=None):
        return data

    async def run_function(self, comm, function, args=(), kwargs=None, wait=True):
        from distributed.scheduler import Scheduler

        return await Scheduler.run_function(
            self, comm, function=function, args=args, kwargs=kwargs, wait=wait
        )

    async def get_worker_monitor_info(self, *args, **kwargs):
        from distributed.scheduler import Scheduler

        return await Scheduler.get_worker_monitor_info(self, *args, **kwargs)

    async def get_profile_metadata(self, *args, **kwargs):
        from distributed.scheduler import Scheduler

        return await Scheduler.get_profile_metadata(self, *args, **kwargs)

    # ---- measurements --------------------------------------------------------------------------

    @property
    def proc(self):
        """The scheduler's process."""
        import psutil

        return psutil.Process(os.getppid())

    @property
    def monitor(self):
        """Of the scheduler's process; measured from the first look on."""
        if "_monitor" not in self.__dict__:
            from distributed.system_monitor import SystemMonitor
            from tornado.ioloop import PeriodicCallback

            monitor = SystemMonitor()
            monitor.proc = self.proc
            monitor.update()
            callback = PeriodicCallback(monitor.update, 500)
            callback.start()
            self.__dict__.update(_monitor=monitor, _monitor_callback=callback)
        return self._monitor

    # ---- plugins -----------------------------------------------------------------------------

    def _plugins_changed(self) -> None:
        from .hooks import wanted_hooks

        hooks = wanted_hooks(self.plugins.values())
        self._ask("companion.plugins", names=[str(name) for name in self.plugins], hooks=hooks)

    def add_plugin(self, plugin, **kwargs) -> None:
        from distributed.scheduler import Scheduler

        Scheduler.add_plugin(self, plugin, **kwargs)

    def remove_plugin(self, *args, **kwargs) -> None:
        from distributed.scheduler import Scheduler

        Scheduler.remove_plugin(self, *args, **kwargs)

    async def register_scheduler_plugin(self, plugin, name=None, idempotent=False) -> None:
        from distributed.scheduler import Scheduler

        await Scheduler.register_scheduler_plugin(self, plugin, name=name, idempotent=idempotent)

    async def unregister_scheduler_plugin(self, name) -> None:
        self.remove_plugin(name=name)

    # ---- handlers that plugins add ---------------------------------------------------------------

    def _handlers_changed(self) -> None:
        self._ask(
            "companion.handlers", rpc=list(self.handlers), stream=list(self.stream_handlers)
        )

    async def _handle_request(self, name, fields):
        import inspect

        handler = self.handlers[name]
        if "comm" in inspect.signature(handler).parameters:
            fields["comm"] = None
        result = handler(**fields)
        return await result if inspect.isawaitable(result) else result

    def _stream_message(self, message) -> None:
        import inspect
        import logging

        self._forget_views()
        name = message["handler"]
        try:
            result = self.stream_handlers[name](**message["fields"])
            if inspect.isawaitable(result):
                asyncio.ensure_future(result)
        except Exception:
            logging.getLogger("distributed.scheduler").exception("The handler %s failed", name)

    # ---- actions -----------------------------------------------------------------------------

    def get_logs(self, start=0, n=None, timestamps=False):
        """The newest first."""
        logs = [each for each in self._ask("state.logs") if each[0] >= (start or 0)]
        logs = logs[::-1] if n is None else logs[::-1][:n]
        return [tuple(each) if timestamps else tuple(each[1:]) for each in logs]

    def log_event(self, topic, msg) -> None:
        self._channel.tell("log_event", topic=topic, msg=msg)

    def client_send(self, client, msg) -> None:
        self._channel.tell("companion.send", client=client, message=msg)

    def worker_send(self, worker, msg) -> None:
        self._channel.tell("companion.send", worker=worker, message=msg)

    def send_all(self, client_msgs, worker_msgs) -> None:
        for client, messages in client_msgs.items():
            for message in messages:
                self.client_send(client, message)
        for worker, messages in worker_msgs.items():
            for message in messages:
                self.worker_send(worker, message)

    def report(self, msg, ts=None, client=None) -> None:
        if ts is None and msg.get("key") is not None:
            ts = self.tasks.get(msg["key"])
        wanted = {each.client_key for each in ts.who_wants} if ts is not None else set()
        if client is not None:
            wanted.add(client)
        for each in self.clients if ts is None and client is None else wanted:
            self.client_send(each, msg)

    async def upload_file(self, filename, data, load=True):
        """For this process, and for those that read graphs."""
        filename = os.path.basename(filename)
        with open(os.path.join(self.local_directory, filename), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        self._import_upload(filename, load)
        await self._channel.ask_soon("companion.upload", filename=filename, load=bool(load))
        return {"status": "OK", "nbytes": len(data)}

    def _import_upload(self, filename, load) -> None:
        from distributed.utils import import_file

        if load:
            import_file(os.path.join(self.local_directory, filename))

    async def close(self, *args, **kwargs) -> None:
        await self._channel.ask_soon("terminate")

    async def remove_worker(
        self, address, *, stimulus_id=None, safe=False, expected=False, close=True, **_
    ):
        """Older releases call `safe` what is `expected` now."""
        address = self.coerce_address(address)
        if address not in self.workers:
            return "already-removed"
        await self._channel.ask_soon(
            "companion.remove-worker", worker=address, safe=safe or expected, close=close
        )
        return "OK"

    def __repr__(self):
        return f"<Yardmaster's scheduler {self.address!r}>"


def background_tasks():
    """What Dask uses for coroutines that nothing waits for."""
    try:
        from distributed._async_taskgroup import AsyncTaskGroup
    except ImportError:  # before 2023
        from distributed.core import AsyncTaskGroup

    return AsyncTaskGroup()
