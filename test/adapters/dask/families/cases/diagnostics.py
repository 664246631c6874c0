"""What clients can ask about the cluster, and see of it."""

import contextlib
import io
import os
import re
import tempfile
import time

import dask
from distributed import get_task_metadata, get_task_stream, get_worker, performance_report, progress, wait
from kit import VERSION, address_of, brief, differs, failure, names, needs, since, slow, stock_fails

COUNTS = ("n_workers", "total_memory", "total_threads")


def inc(x):
    return x + 1


def late(x, s=0.05):
    time.sleep(s)
    return x


def case_who_has_and_has_what(client):
    alice = address_of(client, "alice")
    f = client.submit(inc, 1, key="held", workers=["alice"])
    wait(f)
    return (
        [list(client.who_has([f])), client.who_has([f])["held"] == (alice,), type(client.who_has()).__name__],
        "held" in client.has_what([alice])[alice],
        sorted(names(client).values()),
    )


def case_sizes_and_threads(client):
    f = client.scatter(b"x" * 1000, hash=False)
    sizes = client.nbytes([f.key], summary=False)
    return list(sizes.values()), sorted(client.nthreads().values()), sorted(client.ncores().values()), client.nbytes() is not None


def without_counts(info):
    """Clients of all releases get the counts that current ones ask for: the schedulers of older ones lack them."""
    return {key: info[key] for key in info if VERSION >= (2025, 4) or key not in COUNTS}


@brief
def case_scheduler_info(client):
    info = without_counts(client.scheduler_info())
    worker = next(iter(info["workers"].values()))
    return sorted(info), sorted(key for key in worker if key != "host"), sorted(w["nthreads"] for w in info["workers"].values())


def case_processing(client):
    futures = [client.submit(late, n, 0.5, pure=False, workers=["bob"], key=f"busy-{n}") for n in range(3)]
    time.sleep(0.15)
    bob = address_of(client, "bob")
    found = client.processing()
    client.cancel(futures)
    return sorted(found[bob]), len(found)


def case_call_stack(client):
    f = client.submit(late, 1, 3.0, pure=False, key="busy")
    time.sleep(0.4)
    stack = client.call_stack([f])
    return list(stack), any("late" in line for lines in stack.values() for line in lines)


RECORD = ["key", "metadata", "nbytes", "startstops", "status", "stimulus_id", "thread", "type", "typename", "worker"]


@brief
@differs("the records for old clients name their stimulus, too", ours=(4, RECORD, ["OK"], "compute"), before=(2024, 10))
def case_task_stream(client):
    with get_task_stream(client=client) as stream:
        client.gather(client.map(inc, range(4), pure=False))
    record = stream.data[0]
    return len(stream.data), sorted(record), {r["status"] for r in stream.data}, record["startstops"][0]["action"]


@brief
def case_tries_in_the_task_stream_and_metadata(client):
    def flaky():
        worker = get_worker()
        worker.flaky_tries = getattr(worker, "flaky_tries", 0) + 1
        if worker.flaky_tries < 3:
            raise ValueError("not yet")
        return worker.flaky_tries

    with get_task_stream(client=client) as stream, get_task_metadata() as found:
        f = client.submit(flaky, retries=4, workers=["bob"], key="flaky")
        bad = client.submit(lambda x: x / 0, f, key="bad")
        after = client.submit(inc, bad, key="after")
        wait([f, bad, after])
    client.run(lambda dask_worker: delattr(dask_worker, "flaky_tries"), workers=[address_of(client, "bob")])
    return [(record["key"], record["status"]) for record in stream.data], sorted(found.state.items()), sorted(found.metadata)


def case_profile(client):
    client.gather(client.map(late, range(4), s=0.1, pure=False))
    found = client.profile()
    return sorted(found), type(found["count"]).__name__, sorted(client.profile(scheduler=True))


@brief
def case_story(client):
    f = client.submit(inc, 1, key="told")
    f.result()
    found = client.story("told") if hasattr(client, "story") else client.sync(client._story, "told")
    steps = [(entry[1], entry[2]) for entry in found if len(entry) > 4 and entry[0] == "told" and entry[2] in
             ("waiting", "processing", "memory")]
    return steps, type(found).__name__


@brief
def case_run(client):
    def about(dask_worker):
        return dask_worker.name

    alice = address_of(client, "alice")
    return (
        sorted(client.run(about).values()),
        client.run(about, workers=[alice])[alice],
        failure(client.run, lambda: 1 / 0),
        sorted({type(error).__name__ for error in client.run(lambda: 1 / 0, on_error="return").values()}),
        client.run(lambda: 1 / 0, on_error="ignore"),
        client.run(inc, 1, nanny=True, workers=[alice])[alice],
    )


def case_run_a_coroutine(client):
    async def later(dask_worker=None):
        return dask_worker.name

    return sorted(client.run(later).values())


@brief
def case_run_on_scheduler(client):
    client.submit(inc, 1, key="looked at").result()

    def about(dask_scheduler, n):
        return len(dask_scheduler.workers), sorted(w.name for w in dask_scheduler.workers.values()), n

    return client.run_on_scheduler(about, n=4), client.run_on_scheduler(inc, 1), failure(client.run_on_scheduler, lambda: 1 / 0)


def case_run_on_scheduler_about_tasks(client):
    f = client.submit(inc, 1, key="seen")
    f.result()

    def about(dask_scheduler):
        task = dask_scheduler.tasks["seen"]
        return task.state, task.nbytes, [w.name for w in task.who_has] != [], len(task.dependents), task.prefix.name

    return client.run_on_scheduler(about)


@brief
def case_metadata(client):
    client.set_metadata(["a", "b"], 3)
    client.set_metadata("c", {"x": 1})
    return (
        client.get_metadata(["a", "b"]),
        client.get_metadata("a"),
        client.get_metadata("c"),
        client.get_metadata("nothing", default=None),
        failure(client.get_metadata, "nothing"),
    )


@brief
def case_versions(client):
    found = client.get_versions(check=True)
    same = found["scheduler"]["packages"].get("distributed") == found["client"]["packages"].get("distributed")
    return sorted(found), len(found["workers"]), sorted(found["client"]), sorted(found["scheduler"]), same


def case_logs(client):
    scheduler = client.get_scheduler_logs()
    workers = client.get_worker_logs()
    return type(scheduler).__name__, len(workers), len(client.get_worker_logs(n=1, nanny=True))


def case_progress_on_a_terminal(client):
    futures = client.map(inc, range(5), pure=False)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        progress(futures, notebook=False)
        time.sleep(0.4)
    return "100% Completed" in out.getvalue(), len(client.gather(futures))


def case_performance_report(client):
    needs("bokeh")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        with performance_report(filename=path):
            client.gather(client.map(inc, range(10), pure=False))
        text = open(path).read()
    return [word in text for word in ("Dask Performance Report", "number of tasks: 10", "Workers: 2", "Worker Profile")]


def dumped(client, **options):
    with tempfile.TemporaryDirectory() as folder:
        client.dump_cluster_state(os.path.join(folder, "dump"), **options)
        (name,) = os.listdir(folder)
        from distributed.cluster_dump import DumpArtefact

        artefact = DumpArtefact.from_url(os.path.join(folder, name))
        return name, artefact


@stock_fails("there the dump has numbers as keys of maps, which its own reader refuses", before=(2024, 11))
def case_dump(client):
    f = client.submit(inc, 1, key="dumped")
    f.result()
    name, dump = dumped(client)
    task = dump["scheduler"]["tasks"]["dumped"]
    return (
        name,
        task["state"],
        len(dump["workers"]),
        [step[1:3] for step in dump.scheduler_story("dumped")["dumped"]],
        len(dump.worker_story("dumped")["dumped"]) > 0,
        sorted(dump.scheduler_tasks_in_state("memory")) == ["dumped"],
    )


def case_parts_of_a_dump(client):
    import yaml

    f = client.submit(inc, 1, key="dumped")
    f.result()
    with tempfile.TemporaryDirectory() as folder:
        client.dump_cluster_state(os.path.join(folder, "dump"), format="yaml")
        with open(os.path.join(folder, "dump.yaml")) as file:
            dump = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return sorted(dump), sorted(without_counts(dump["scheduler"])), sorted(next(iter(dump["workers"].values())))


def case_errors_with_their_task(client):
    f = client.submit(lambda: 1 / 0, pure=False)
    wait(f)
    return failure(client.recreate_error_locally, f)


@brief
def case_locally_recreated_task(client):
    f = client.submit(inc, 5)
    f.result()
    return client.recreate_task_locally(f), f.result()


def case_memory_sampler(client):
    from distributed.diagnostics import MemorySampler

    sampler = MemorySampler()
    with sampler.sample("one", interval=0.05):
        client.gather(client.map(late, range(4), s=0.1, pure=False))
    return list(sampler.samples), len(next(iter(sampler.samples.values()))) > 0


def case_worker_service_and_dashboard(client):
    return type(client.dashboard_link).__name__, re.sub(r"[\d.]+:\d+", "HOST", str(client.scheduler.address)), client.status


def case_representations(client):
    f = client.submit(inc, 1, key="shown")
    f.result()
    return repr(f), re.sub(r"'[^']*'", "ADDRESS", repr(client)), "shown" in f._repr_html_(), "Client" in client._repr_html_()


@slow
def case_computations(client):
    client.gather(client.map(late, range(10), s=0.01, pure=False))
    return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.total_nthreads), len(client.nthreads())


@since(2024, 4)
def case_spans(client):
    from distributed import span

    with span("part"):
        f = client.submit(inc, 1, pure=False)
        g = dask.delayed(inc)(2)
        return f.result(), g.compute()
