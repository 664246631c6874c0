"""Bags of Dask."""

import os
import tempfile

import dask
import dask.bag as db
from kit import brief, failure, slow


def numbers(npartitions=6):
    return db.from_sequence(range(60), npartitions=npartitions)


@brief
def case_map_filter_sum(client):
    return numbers().map(lambda n: n * n).filter(lambda n: n % 3 == 0).sum().compute()


def case_statistics(client):
    return dask.compute(numbers().mean(), numbers().std(), numbers().max(), numbers().count(), numbers().any())


def case_frequencies(client):
    return sorted(numbers().map(lambda n: n % 7).frequencies().compute()), numbers().topk(4).compute()


def case_distinct(client):
    return sorted(numbers().map(lambda n: n % 9).distinct().compute())


def case_fold(client):
    return numbers().fold(lambda a, b: a + b, initial=0).compute(), sorted(
        numbers().foldby(lambda n: n % 4, lambda total, n: total + n, 0, lambda a, b: a + b, 0).compute()
    )


def groups(shuffle):
    found = numbers().groupby(lambda n: n % 5, shuffle=shuffle).compute()
    return sorted((key, sorted(items)) for key, items in found)


@brief
def case_groups_with_tasks(client):
    return groups("tasks")


def case_groups_on_disk(client):
    return groups("disk")


def case_join_and_product(client):
    pairs = numbers(2).join(range(0, 60, 20), lambda n: n).compute()
    return sorted(pairs), len(db.from_sequence("abc").product(db.from_sequence("de")).compute())


def case_zip_and_concatenate(client):
    return db.zip(numbers(), numbers().map(str)).take(3), len(db.concat([numbers(), numbers(2)]).compute())


def case_accumulate(client):
    return numbers(3).accumulate(lambda a, b: a + b).compute()[-3:]


def case_pluck_and_flatten(client):
    people = db.from_sequence([{"name": f"n{i}", "tags": [i, i + 1]} for i in range(8)], npartitions=3)
    return people.pluck("name").compute(), people.pluck("tags").flatten().sum().compute()


def case_text_files(client):
    with tempfile.TemporaryDirectory() as folder:
        numbers(3).map(str).to_textfiles(os.path.join(folder, "*.txt"))
        found = db.read_text(os.path.join(folder, "*.txt"))
        return len(os.listdir(folder)), found.map(int).sum().compute()


def case_bag_to_frame(client):
    rows = db.from_sequence([{"x": i, "y": str(i)} for i in range(12)], npartitions=3)
    return rows.to_dataframe(meta={"x": "i8", "y": "O"}).x.sum().compute()


def case_sample_with_a_seed(client):
    return len(numbers().random_sample(0.5, random_state=5).compute()), numbers().repartition(2).npartitions


def case_reduction(client):
    return numbers().reduction(sum, sum, split_every=2).compute(), numbers().map_partitions(lambda p: [len(list(p))]).compute()


def case_delayed_items(client):
    return db.from_delayed([dask.delayed(range)(n) for n in range(5)]).compute(), len(numbers().to_delayed())


@slow
def case_many_partitions(client):
    return db.from_sequence(range(600), npartitions=300).map(lambda n: n + 1).sum().compute()


@brief
def case_an_error_in_an_item(client):
    return failure(numbers().map(lambda n: 1 // (n - 17)).compute)
