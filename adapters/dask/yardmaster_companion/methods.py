"""Methods of Dask's scheduler that are served by asking the scheduler, as clients ask it."""

from __future__ import annotations

import inspect

#: Methods that answer at once, and the operations that clients know them by.
PLAIN = {
    "adaptive_target": "adaptive_target",
    "check_idle": "check_idle",
    "get_error_cause": "get_error_cause",
    "get_events": "events",
    "get_has_what": "has_what",
    "get_metadata": "get_metadata",
    "get_nbytes": "nbytes",
    "get_ncores": "ncores",
    "get_ncores_running": "ncores_running",
    "get_processing": "processing",
    "get_runspec": "get_runspec",
    "get_task_prefix_states": "get_task_prefix_states",
    "get_task_status": "get_task_status",
    "get_task_stream": "get_task_stream",
    "get_task_stream_index": "get_task_stream_index",
    "get_who_has": "who_has",
    "get_worker_service_addr": "get_worker_service_addr",
    "identity": "identity",
    "set_metadata": "set_metadata",
    "set_restrictions": "set_restrictions",
    "start_task_metadata": "start_task_metadata",
    "stimulus_cancel": "cancel",
    "stimulus_retry": "retry",
    "stop_task_metadata": "stop_task_metadata",
    "workers_to_close": "workers_to_close",
}

#: Methods that are coroutines.
AWAITED = {
    "benchmark_hardware": "benchmark_hardware",
    "broadcast": "broadcast",
    "delete_worker_data": "delete_worker_data",
    "dump_cluster_state_to_url": "dump_cluster_state_to_url",
    "gather": "gather",
    "performance_report": "performance_report",
    "get_call_stack": "call_stack",
    "get_cluster_state": "get_cluster_state",
    "get_profile": "profile",
    "get_worker_logs": "worker_logs",
    "proxy": "proxy",
    "rebalance": "rebalance",
    "register_nanny_plugin": "register_nanny_plugin",
    "register_worker_plugin": "register_worker_plugin",
    "replicate": "replicate",
    "restart": "restart",
    "restart_workers": "restart_workers",
    "retire_workers": "retire_workers",
    "scatter": "scatter",
    "unregister_nanny_plugin": "unregister_nanny_plugin",
    "unregister_worker_plugin": "unregister_worker_plugin",
}


#: Methods whose answer is a list; sequences arrive as tuples.
LISTING = ("get_task_stream", "workers_to_close")


class NOTHING:
    co_names = ()


def caller_for(scheduler, name):
    """The method `name`; AttributeError when there is none."""
    from distributed.scheduler import Scheduler

    op = PLAIN.get(name) or AWAITED.get(name)
    if op is None or not hasattr(Scheduler, name):
        raise AttributeError(
            f"Yardmaster's scheduler has no {name!r} for Python; docs/dask.md lists what functions "
            "and plugins beside the scheduler can use"
        )

    def fields_of(args, kwargs):
        return fields_for(name, args, kwargs)

    if name in PLAIN:

        def call(*args, **kwargs):
            answer = scheduler._channel.ask(op, **fields_of(args, kwargs))
            return list(answer) if name in LISTING else answer

    else:

        async def call(*args, **kwargs):
            return await scheduler._channel.ask_soon(op, **fields_of(args, kwargs))

    call.__name__ = call.__qualname__ = name
    return call


def fields_for(name, args, kwargs):
    """The arguments by name, as this release of Dask names them."""
    from distributed.scheduler import Scheduler

    signature = inspect.signature(getattr(Scheduler, name))
    given = dict(signature.bind(None, *args, **kwargs).arguments)
    given.pop("self", None)
    given.pop("comm", None)
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given.update(given.pop(parameter.name, {}))
    return given


def changes_scheduler(name) -> bool:
    """Whether it is an attribute of Dask's scheduler, whose value has an effect there."""
    if name in PLAIN or name in AWAITED:
        return True
    from distributed.scheduler import Scheduler

    return isinstance(getattr(Scheduler, name, None), property) or any(
        name in vars(each).get("__annotations__", {})
        or name in getattr(vars(each).get("__init__"), "__code__", NOTHING).co_names
        for each in Scheduler.__mro__
    )
