"""Calls the hooks of scheduler plugins, each as the release of Dask that is installed here calls it."""

from __future__ import annotations

import asyncio
import inspect
import logging

logger = logging.getLogger("distributed.scheduler")

#: Hooks that are fed with events.
FED = (
    "transition",
    "update_graph",
    "restart",
    "add_worker",
    "remove_worker",
    "add_client",
    "remove_client",
    "log_event",
)


def wanted_hooks(plugins):
    """Those that some plugin overrides."""
    from distributed.diagnostics.plugin import SchedulerPlugin

    return [
        hook
        for hook in FED
        if any(
            getattr(type(plugin), hook, None) is not getattr(SchedulerPlugin, hook)
            or hook in getattr(plugin, "__dict__", ())
            for plugin in plugins
        )
    ]


class Hooks:
    def __init__(self, scheduler):
        from distributed.diagnostics.plugin import SchedulerPlugin

        self.scheduler = scheduler
        self.running = set()
        #: Number of failures by name of the plugin and hook.
        self.failures = {}
        self.transition_names = parameters_of(SchedulerPlugin.transition)
        self.update_names = parameters_of(SchedulerPlugin.update_graph)

    def handle(self, events) -> None:
        self.scheduler._batch(True)
        try:
            for name, *fields in events:
                self.scheduler._forget_views()
                try:
                    getattr(self, "on_" + name)(*fields)
                except Exception:
                    logger.exception("The event %s could not be handed to the plugins", name)
        finally:
            self.scheduler._batch(False)

    def call(self, hook, *args, **kwargs) -> None:
        for name, plugin in list(self.scheduler.plugins.items()):
            function = getattr(plugin, hook, None)
            if function is not None:
                self.begin(name, hook, function, args, kwargs)

    def begin(self, name, hook, function, args, kwargs) -> None:
        """An exception of one plugin does not affect the others. Coroutines run concurrently with later events."""
        try:
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                task = asyncio.ensure_future(self.watch(hook, name, result))
                self.running.add(task)
                task.add_done_callback(self.running.discard)
        except Exception:
            self.failed(name, hook)

    async def watch(self, hook, name, result) -> None:
        try:
            await result
        except Exception:
            self.failed(name, hook)

    def failed(self, name, hook) -> None:
        """Logs the exception if it is the 1st, 2nd, 4th, 8th … of this hook, so that a log is not flooded."""
        count = self.failures[name, hook] = self.failures.get((name, hook), 0) + 1
        if count & (count - 1) == 0:
            shown = f" (failure {count} of this hook)" if count > 2 else ""
            logger.exception("%s of the scheduler plugin %s failed%s", hook, name, shown)

    def on_transition(self, key, start, finish, stimulus_id, task, details) -> None:
        self.scheduler._remember_task(key, task)
        fields = dict(details)
        if "stimulus_id" in self.transition_names:
            fields["stimulus_id"] = stimulus_id
        self.call("transition", key, start, finish, **fields)

    def on_update_graph(self, fields) -> None:
        tasks = [key for key, *_ in fields["tasks"]]
        annotations = {}
        for key, _, _, annotated in fields["tasks"]:
            for name, value in (annotated or {}).items():
                annotations.setdefault(name, {})[key] = value
        arguments = {
            "client": fields["client"],
            "keys": set(fields["keys"]),
            "tasks": tasks,
            "annotations": annotations,
            "priority": {key: priority for key, priority, _, _ in fields["tasks"]},
        }
        if {"dependencies", "restrictions"} & set(self.update_names):  # before 2025.4
            arguments["dependencies"] = {key: set(inputs) for key, _, inputs, _ in fields["tasks"]}
        if "stimulus_id" in self.update_names:
            arguments["stimulus_id"] = fields["stimulus_id"]
        if "restrictions" in self.update_names:  # before 2023.4
            arguments["tasks"] = dict.fromkeys(tasks)
            arguments["restrictions"] = annotations.get("workers", {})
            arguments["loose_restrictions"] = list(annotations.get("allow_other_workers", {}))
            arguments["resources"] = annotations.get("resources", {})
        self.call("update_graph", self.scheduler, **arguments)

    def on_restart(self) -> None:
        self.call("restart", self.scheduler)

    def on_add_worker(self, worker) -> None:
        self.call("add_worker", scheduler=self.scheduler, worker=worker)

    def on_remove_worker(self, worker, stimulus_id) -> None:
        for name, plugin in list(self.scheduler.plugins.items()):
            function = getattr(plugin, "remove_worker", None)
            if function is None:
                continue
            fields = {"scheduler": self.scheduler, "worker": worker}
            if accepts(function, "stimulus_id"):
                fields["stimulus_id"] = stimulus_id
            self.begin(name, "remove_worker", function, (), fields)

    def on_add_client(self, client) -> None:
        self.call("add_client", scheduler=self.scheduler, client=client)

    def on_remove_client(self, client) -> None:
        self.call("remove_client", scheduler=self.scheduler, client=client)

    def on_log_event(self, topic, message) -> None:
        self.call("log_event", topic, message)

    async def before_close(self) -> None:
        await self.at_end("before_close")

    async def close(self) -> None:
        await self.at_end("close")

    async def at_end(self, hook) -> None:
        """Calls this hook of all plugins concurrently; each failure is reported."""
        waiting = []
        for name, plugin in list(self.scheduler.plugins.items()):
            function = getattr(plugin, hook, None)
            if function is not None:
                waiting.append(self.finish(hook, name, function))
        await asyncio.gather(*waiting)

    async def finish(self, hook, name, function) -> None:
        try:
            result = function()
            if inspect.isawaitable(result):
                await result
        except Exception:
            logger.exception("%s of the scheduler plugin %s failed", hook, name)


def parameters_of(function):
    return inspect.signature(function).parameters


def accepts(function, name) -> bool:
    parameters = parameters_of(function).values()
    return any(each.name == name or each.kind is each.VAR_KEYWORD for each in parameters)
