"""Data frames of Dask: groups, joins, shuffles, files."""

import os
import tempfile

import numpy as np
import pandas as pd

import dask
import dask.dataframe as dd
from kit import brief, failure, needs, since, slow

TABLE = pd.DataFrame(
    {
        "a": np.arange(600) % 7,
        "b": np.arange(600) * 37 % 601,
        "c": np.arange(600) / 8,
        "s": [f"text {n % 5}" for n in range(600)],
        "t": pd.date_range("2024-01-01", periods=600, freq="h"),
    }
)


def parts(npartitions=5):
    return dd.from_pandas(TABLE, npartitions=npartitions)


def ordered(frame, by):
    return frame.compute().sort_values(by).reset_index(drop=True)


def method(name):
    """Shuffles with a method, under the name of this setting in old and new releases."""
    return dask.config.set({"dataframe.shuffle.method": name, "dataframe.shuffle.algorithm": name, "shuffle": name})


def case_group_aggregation(client):
    found = parts().groupby("a").agg({"b": ["sum", "max"], "c": ["mean", "std", "count"]}).compute().sort_index()
    return [list(map(str, found.columns)), found.to_numpy()]


def case_group_by_two(client):
    return parts().groupby(["a", "s"]).b.sum().compute().sort_index().to_numpy()


@brief
def case_group_apply(client):
    found = parts().groupby("a").apply(lambda g: g.b.max() - g.b.min(), meta=("x", "i8")).compute()
    return found.sort_index().to_numpy()


def case_group_split_out(client):
    return parts().groupby("a").c.mean(split_out=2).compute().sort_index()


def case_group_nunique(client):
    return parts().groupby("a").s.nunique().compute().sort_index(), parts().b.nunique().compute()


def case_value_counts(client):
    return parts().s.value_counts().compute().sort_index().to_numpy(), sorted(parts().a.unique().compute())


def case_describe(client):
    return parts()[["b", "c"]].describe().compute()


@brief
def case_merge_with_tasks(client):
    with method("tasks"):
        found = parts().merge(parts(3)[["b", "c"]], on="b", suffixes=("", "_right"))
        return ordered(found[["b", "c", "c_right"]], ["b", "c", "c_right"]).head(8), len(found)


@brief
@since(2023, 3)
def case_merge_p2p(client):
    needs("pyarrow")
    with method("p2p"):
        found = parts().merge(parts(3)[["b", "c"]], on="b", suffixes=("", "_right"), how="outer")
        return ordered(found[["b", "c", "c_right"]], ["b", "c", "c_right"]).head(8)


@slow
def case_merge_on_disk(client):
    with method("disk"):
        found = parts().merge(parts(3)[["b", "c"]], on="b", suffixes=("", "_right"))
        return ordered(found[["b", "c"]], ["b", "c"]).tail(8)


def case_merge_with_one_partition(client):
    small = pd.DataFrame({"a": range(7), "name": list("ABCDEFG")})
    return parts().merge(small, on="a", how="left").groupby("name").b.sum().compute().sort_index()


def case_merge_by_index(client):
    left, right = parts(4)[["b"]], parts(3)[["c"]]
    return left.join(right).c.sum().compute()


def shuffled(name):
    with method(name):
        found = parts().shuffle("a", npartitions=4)
        sizes = found.map_partitions(len).compute()
        return sorted(sizes), found.groupby("a").b.sum().compute().sort_index()


@brief
def case_shuffle_with_tasks(client):
    return shuffled("tasks")


def case_shuffle_on_disk(client):
    return shuffled("disk")


@since(2023, 1)
def case_shuffle_p2p(client):
    needs("pyarrow")
    return shuffled("p2p")


@slow
@since(2023, 1)
def case_two_shuffles_p2p_at_once(client):
    needs("pyarrow")
    with method("p2p"):
        first, second = parts().shuffle("a"), parts(3).shuffle("b")
        return dask.compute(first.c.sum(), second.c.sum(), first.b.max())


@brief
def case_default_shuffle(client):
    return parts().shuffle("s").groupby("s").c.sum().compute().sort_index()


@brief
def case_set_index(client):
    found = parts().set_index("b")
    return found.c.compute().head(5), found.npartitions, found.loc[3:6].c.compute()


def case_sort_values(client):
    return parts().sort_values("b").b.compute().head(6).to_numpy()


def case_drop_duplicates(client):
    return sorted(parts().drop_duplicates(subset=["a"]).a.compute()), len(parts().s.drop_duplicates())


def case_rolling(client):
    return parts().c.rolling(4).sum().compute().tail(5), parts().b.cumsum().compute().iloc[-1], parts().c.shift(3).sum().compute()


def case_resample(client):
    return parts().set_index("t", sorted=True).b.resample("7D").sum().compute().to_numpy()


def case_quantiles(client):
    return len(parts().b.quantile([0.25, 0.5]).compute()), parts()[["b", "c"]].corr().compute().to_numpy()


def case_concatenate(client):
    return len(dd.concat([parts(), parts(2)])), dd.concat([parts(), parts(2)]).b.sum().compute()


def case_map_partitions(client):
    return parts().map_partitions(lambda part, n: part.b.sum() + n, 3, meta=("x", "i8")).compute().tolist()


def case_repartition(client):
    found = parts(10).repartition(npartitions=3)
    return found.npartitions, found.map_partitions(len).compute().tolist()


def case_text_and_time(client):
    frame = parts()
    return frame.s.str.upper().str.len().sum().compute(), frame.t.dt.day.max().compute(), frame.isnull().sum().compute()


def case_categories(client):
    frame = parts().assign(k=parts().s.astype("category").cat.as_known())
    return frame.groupby("k", observed=False).b.sum().compute().sort_index().to_numpy()


def case_pivot(client):
    frame = parts().categorize(columns=["s"])
    return frame.pivot_table(index="a", columns="s", values="b", aggfunc="sum").compute().sort_index().to_numpy()


def case_csv(client):
    with tempfile.TemporaryDirectory() as folder:
        parts().to_csv(os.path.join(folder, "part-*.csv"), index=False)
        found = dd.read_csv(os.path.join(folder, "part-*.csv"))
        return found.b.sum().compute(), len(found), found.npartitions


def case_parquet(client):
    needs("pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        parts().to_parquet(folder)
        found = dd.read_parquet(folder, columns=["a", "b"], filters=[("a", ">", 3)])
        return found.b.sum().compute(), dd.read_parquet(folder).npartitions, len(dd.read_parquet(folder))


@slow
def case_parquet_by_directory(client):
    needs("pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        parts().to_parquet(folder, partition_on=["a"])
        return sorted(os.listdir(folder)), dd.read_parquet(folder).b.sum().compute()


def case_delayed_partitions(client):
    pieces = [dask.delayed(TABLE.iloc[n:n + 100][["a", "b"]]) for n in (0, 100, 200)]
    found = dd.from_delayed(pieces, meta=TABLE[["a", "b"]].iloc[:0])
    return found.b.sum().compute(), [len(part) for part in client.gather(client.compute(parts().to_delayed()))]


def case_persist(client):
    frame = client.persist(parts())
    return frame.b.sum().compute(), frame.loc[10:12].c.compute(), len(frame)


def case_frame_to_array_and_bag(client):
    return parts()[["b", "c"]].to_dask_array(lengths=True).sum().compute(), parts()[["a"]].to_bag().count().compute()


def case_an_error_in_a_partition(client):
    return failure(parts().map_partitions(lambda part: part.nothing, meta=("x", "i8")).compute)


def case_time_series(client):
    frame = dask.datasets.timeseries("2000-01-01", "2000-01-08", freq="1h", seed=1)
    return len(frame), sorted(frame.columns), frame.npartitions, frame.x.abs().max().compute() <= 1
