"""Delayed functions, and graphs written by hand."""

import operator
import time

import dask
import distributed
from dask import delayed
from distributed import get_worker
from kit import brief, differs, failure


def inc(x):
    return x + 1


@brief
def case_tree(client):
    layer = [delayed(inc)(i) for i in range(64)]
    while len(layer) > 1:
        layer = [delayed(operator.add)(a, b) for a, b in zip(layer[::2], layer[1::2])]
    return layer[0].compute()


def case_diamond(client):
    a = delayed(inc)(1)
    return dask.compute(delayed(sum)([delayed(inc)(a), delayed(operator.mul)(a, 10)]), a)


def case_many_outputs(client):
    low, high = delayed(divmod, nout=2)(17, 5)
    return dask.compute(low, high, delayed(tuple)([low, high]))


def case_nested_arguments(client):
    a = delayed(inc)(1)
    return delayed(lambda tree: tree)({"a": [a, (a, {"b": a})], "plain": 3}).compute()


def case_objects_and_methods(client):
    text = delayed("some words here")
    return text.upper().split(" ").compute(), delayed(complex)(1, 2).imag.compute(), (delayed([1, 2, 3])[1] + 5).compute()


def case_pure_is_computed_once(client):
    a, b = delayed(inc, pure=True)(5), delayed(inc, pure=True)(5)
    c, d = delayed(inc)(5), delayed(inc)(5)
    return a.key == b.key, c.key == d.key, dask.compute(a, b, c, d)


def case_traversal_is_off(client):
    return delayed([1, [2, 3]], traverse=False).compute(), delayed(len)([delayed(1), 2]).compute()


def case_persisted(client):
    a, b = dask.persist(delayed(inc)(1), delayed(inc)(2))
    return (a + b).compute(), delayed(inc)(a).compute()


@brief
def case_errors(client):
    bad = delayed(operator.truediv)(1, 0)
    return failure(delayed(inc)(bad).compute), failure(dask.compute, bad, delayed(inc)(1))


@brief
def case_annotations(client):
    def place():
        return get_worker().name

    with dask.annotate(workers=["bob"], priority=3):
        a = delayed(place)()
    with dask.annotate(resources={"GPU": 1}):
        b = delayed(place, pure=False)()
    return dask.compute(a, b, optimize_graph=False)


def case_retries_by_annotation(client):
    def flaky():
        worker = get_worker()
        worker.tries = getattr(worker, "tries", 0) + 1
        if worker.tries < 3:
            raise ValueError("not yet")
        return worker.tries

    with dask.annotate(retries=5, workers=["alice"]):
        return delayed(flaky)().compute()


@brief
def case_graph_by_hand(client):
    graph = {"x": 1, "y": (inc, "x"), "z": (sum, ["x", "y", (inc, "y")]), ("t", 0): (inc, "z")}
    return client.get(graph, ["x", "z", ("t", 0)]), client.get(graph, "y")


def case_graph_with_aliases(client):
    return client.get({"a": (inc, 1), "b": "a", "c": "b", "d": (inc, "c")}, ["b", "d"])


def case_graph_with_data(client):
    return client.get({"data": [1, 2, 3], "n": (len, "data"), "text": "word"}, ["n", "text"])


@brief
@differs("the error of current releases, for clients of all", ours="RuntimeError", before=(2024, 10))
def case_graph_with_a_cycle(client):
    return failure(client.get, {"a": (inc, "b"), "b": (inc, "a")}, "a")[0]


@differs(
    "there the client waits for ever, here it learns that there is no such task",
    ours=getattr(distributed.client, "FutureCancelledError", distributed.client.CancelledError).__name__,
    before=(2024, 11),
)
def case_unknown_key(client):
    return failure(client.get({"a": (inc, 1)}, "nothing", sync=False).result, timeout=20)[0]


def case_deep_chain(client):
    x = delayed(0)
    for _ in range(200):
        x = delayed(inc)(x)
    return x.compute(optimize_graph=False)


def case_wide_fan(client):
    root = delayed(inc)(0)
    return delayed(sum)([delayed(operator.add)(root, n) for n in range(200)]).compute()


def case_graph_manipulation(client):
    from dask.graph_manipulation import bind, checkpoint, clone, wait_on

    a, b = delayed(inc)(1), delayed(inc)(2)
    return dask.compute(bind(a, b), clone(a), checkpoint(a, b), wait_on(b))


@brief
def case_delayed_of_future(client):
    future = client.submit(inc, 10)
    return delayed(operator.add)(future, 1).compute(), client.compute(delayed(inc)(future)).result()


def case_optimisation_and_names(client):
    a = delayed(inc)(1, dask_key_name="given")
    future = client.compute(a)
    return future.key, future.result(), client.compute([a, a], sync=True)


def case_tokenized_arguments(client):
    first = client.submit(inc, 3)
    second = client.submit(inc, 3)
    return first.key == second.key, client.submit(inc, 3, pure=False).key == first.key


def case_slow_inputs_first(client):
    def late(x, s):
        time.sleep(s)
        return x

    items = [delayed(late)(n, 0.05 * (3 - n)) for n in range(4)]
    return delayed(list)(items).compute()


def case_large_literal(client):
    data = bytes(2_000_000)
    return delayed(len)(data).compute()


def case_none_and_empty(client):
    return dask.compute(delayed(None), delayed([]), delayed({}), delayed(tuple)()), dask.compute(), client.get({}, [])


@brief
def case_unreadable_argument(client):
    class Unreadable:
        def __reduce__(self):
            return int, ("unreadable",)

    def about(error):  # The rest of the text is advice.
        return type(error).__name__, str(error).split(".")[0]

    future = client.submit(inc, Unreadable(), pure=False)
    try:
        return future.result()
    except Exception as error:
        cause = error.__cause__
        return about(error), None if cause is None else about(cause), client.submit(inc, 1).result()
