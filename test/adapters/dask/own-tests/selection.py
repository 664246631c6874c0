"""Which of Dask's own tests can be played against a scheduler in another process."""

import ast
import inspect
import re
import textwrap

# Tests with a cluster of processes: their functions or plugins would have to run in the process of the scheduler.
NEEDS_THE_PROCESS = re.compile(
    r"run_on_scheduler|register_scheduler_plugin|scheduler_kwargs|dask_scheduler|"
    r"_scheduler_plugin|progress\(|ProgressBar|register_timeseries|MemorySampler"
)
# Tests with a cluster in their own process: settings of the scheduler that have no other way, and other schedulers.
OWN_SETTINGS = re.compile(r"scheduler_kwargs|security=|scheduler=|Worker=(?!Nanny)|nthreads=\[\]$")
OWN_SCHEDULER = re.compile(
    r"Scheduler\(|LocalCluster|dask_scheduler|run_on_scheduler|_scheduler_plugin|register_scheduler_plugin|"
    r"\.cluster\b|SchedulerPlugin|c\.io_loop\.add|inproc"
)
ATTRIBUTES = {"address", "ip", "port"}  # Of the scheduler: what every scheduler has.


def runs_outside(item, kinds):
    """Whether a test is of one of these kinds (`tasks`, `processes`) and looks at its scheduler from outside only.

    The workers of the first kind are in the process of the test, those of the second have processes of their own.
    """
    if item.get_closest_marker("slow") or item.get_closest_marker("avoid_ci"):
        return False
    function = unwrapped(item)
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return False
    if "gen_cluster" in source.split("def ")[0]:
        return "tasks" in kinds and looks_from_outside(source)
    if "processes" not in kinds or inspect.iscoroutinefunction(function):
        return False
    own_cluster = "cluster_fixture" in item.fixturenames or "with cluster(" in source
    return own_cluster and not NEEDS_THE_PROCESS.search(source)


def unwrapped(item):
    function = getattr(item, "function", None)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def looks_from_outside(source):
    """Whether a test of `gen_cluster` uses nothing of its scheduler but the address."""
    head = source.split("async def")[0]
    if OWN_SETTINGS.search(head) or OWN_SCHEDULER.search(source):
        return False
    tree = ast.parse(source).body[0]
    names = [argument.arg for argument in tree.args.args]
    has_client = bool(re.search(r"client\s*=\s*True", head))
    if len(names) <= has_client:
        return False
    scheduler = names[has_client]
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    return all(
        isinstance(parents[node], ast.Attribute) and parents[node].attr in ATTRIBUTES
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == scheduler
    )
