"""Takes what the scheduler asks for, and runs it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import sys
import threading

from .channel import Channel

logger = logging.getLogger("distributed.scheduler")


def serve() -> None:
    channel = Channel()
    # Ctrl-C is meant for the scheduler, which ends this process when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Late, so that an error here is reported on standard error only.
    import dask
    import distributed
    import distributed.scheduler

    versions = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "dask": dask.__version__,
        "distributed": distributed.__version__,
    }
    log_through(channel)
    asyncio.run(Service(channel).run(versions))
    # Threads that plugins have left behind must not keep the process alive.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


class ChannelHandler(logging.Handler):
    """Log entries go to the log of the scheduler."""

    def __init__(self, channel):
        super().__init__()
        self.channel = channel

    def emit(self, record):
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + logging.Formatter().formatException(record.exc_info)
        self.channel.tell(
            "companion.log", level=record.levelno, logger=record.name, text=text
        )


def log_through(channel) -> None:
    """In the place of what writes to standard error; levels stay as Dask's configuration has them."""
    handler = ChannelHandler(channel)
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict]
    for each in [logging.root, *loggers]:
        for old in list(each.handlers):
            if type(old) is logging.StreamHandler:
                each.removeHandler(old)
                each.addHandler(handler)
    if handler not in logging.root.handlers:
        logging.root.addHandler(handler)


class Service:
    """Answers requests. They begin in their order; those that wait for something overlap."""

    def __init__(self, channel):
        self.channel = channel
        #: Coroutines in progress: asyncio keeps only weak references.
        self.running = set()
        #: Modules that were loaded before anything else.
        self.preloads = []
        #: Functions that look again and again, what they remember, and their ends, by number.
        self.feeds = {}
        self.operations = {
            "configure": self.configure,
            "preload": self.preload,
            "run": self.run_function,
            "register": self.register,
            "unregister": self.unregister,
            "handle": self.handle,
            "feed.begin": self.begin_feed,
            "feed.look": self.look_for_feed,
            "feed.end": self.end_feed,
            "dump": self.dump,
            "upload": self.upload,
            "close": self.close,
        }

    async def run(self, versions) -> None:
        from .facade import SchedulerFacade
        from .hooks import Hooks

        loop = asyncio.get_running_loop()
        self.scheduler = SchedulerFacade(self.channel)
        self.hooks = Hooks(self.scheduler)
        self.ended = asyncio.Event()

        def read():
            try:
                self.channel.read_all(
                    lambda message: loop.call_soon_threadsafe(self.take, message)
                )
            finally:
                # The scheduler is gone: nothing that still runs here is of use to anyone, even if it
                # does not give up the main thread.
                os._exit(0)

        threading.Thread(target=read, name="channel", daemon=True).start()
        self.channel.send({"ready": True, "versions": versions})
        await self.ended.wait()

    def take(self, message) -> None:
        op = message.pop("op")
        if op == "events":
            self.hooks.handle(message["events"])
            self.channel.send({"acknowledged": len(message["events"])})
            return
        if op == "stream":
            self.scheduler._stream_message(message)
            return
        id = message.pop("id")
        task = asyncio.ensure_future(self.answer(id, self.operations[op], message))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def answer(self, id, operation, fields) -> None:
        from distributed.core import error_message

        self.scheduler._forget_views()
        try:
            self.channel.send({"id": id, "result": await operation(**fields)})
        except Exception as error:
            self.channel.send({"id": id, "error": error_message(error, status="uncaught-error")})
        except BaseException as error:  # SystemExit of user code does not end this process
            wrapped = RuntimeError(f"it ended with {type(error).__name__}: {error}")
            self.channel.send({"id": id, "error": error_message(wrapped, status="uncaught-error")})
        if operation == self.close:
            self.ended.set()

    async def configure(self, fields):
        """What stays the same: address, id, and the folder for files."""
        await self.scheduler._configure(fields)

    async def preload(self, modules, argv):
        """Loads modules and runs their `dask_setup`; one that raises is logged, as in Dask."""
        from distributed.preloading import process_preloads

        folder = self.scheduler.local_directory
        argv = [list(each) if isinstance(each, tuple) else each for each in argv]
        preloads = process_preloads(self.scheduler, list(modules), argv, file_dir=folder)
        self.scheduler.__dict__["preloads"] = preloads
        for each in preloads:
            try:
                await each.start()
                self.preloads.append(each)
            except Exception:
                logger.exception("Failed to start preload: %s", each.name)

    async def run_function(self, function, args=(), kwargs=None, wait=True):
        from distributed.scheduler import Scheduler

        return await Scheduler.run_function(
            self.scheduler, None, function=function, args=args, kwargs=kwargs, wait=wait
        )

    async def register(self, plugin, name=None, idempotent=None):
        from distributed.protocol.pickle import loads

        plugin = loads(plugin)
        if idempotent is None:
            idempotent = getattr(plugin, "idempotent", False)
        await self.scheduler.register_scheduler_plugin(plugin, name=name, idempotent=idempotent)

    async def unregister(self, name):
        await self.scheduler.unregister_scheduler_plugin(name)

    async def handle(self, handler, fields):
        return await self.scheduler._handle_request(handler, dict(fields))

    async def begin_feed(self, feed, function=None, setup=None, teardown=None):
        from distributed.protocol.pickle import loads

        function, setup, teardown = (each and loads(each) for each in (function, setup, teardown))
        state = setup(self.scheduler) if setup else None
        if inspect.isawaitable(state):
            state = await state
        self.feeds[feed] = function, state, teardown

    async def look_for_feed(self, feed):
        function, state, _ = self.feeds[feed]
        return function(self.scheduler) if state is None else function(self.scheduler, state)

    async def end_feed(self, feed):
        _, state, teardown = self.feeds.pop(feed)
        if teardown:
            teardown(self.scheduler, state)

    async def dump(self, url, format, exclude, options):
        """Into whatever `fsspec` reaches."""
        from distributed.cluster_dump import write_state

        async def state():
            return await self.channel.ask_soon("get_cluster_state", exclude=exclude)

        await write_state(state, url, format, **dict(options))

    async def upload(self, filename, load):
        self.scheduler._import_upload(filename, load)

    async def close(self):
        """The scheduler closes."""
        await self.hooks.before_close()
        for each in reversed(self.preloads):
            try:
                await each.teardown()
            except Exception:
                logger.exception("Failed to tear down preload: %s", each.name)
        await self.hooks.close()
