"""xarray with arrays of Dask."""

import numpy as np

from kit import brief, needs, slow


def data_set():
    xarray = needs("xarray")
    values = np.arange(24.0 * 10 * 6).reshape(24, 10, 6) % 37
    coordinates = {"time": np.arange(24), "x": np.arange(10), "y": np.arange(6)}
    found = xarray.Dataset({"t": (("time", "x", "y"), values)}, coords=coordinates)
    return found.chunk({"time": 6, "x": 5})


def case_means(client):
    return data_set().t.mean("time").compute().values, float(data_set().t.std())


def case_groups(client):
    data = data_set()
    groups = data.assign_coords(hour=data.time % 4).t.groupby("hour")
    return groups.mean().compute().values.sum(axis=(1, 2)), (groups - groups.mean()).sum().compute().values


def case_rolling_and_coarsened(client):
    t = data_set().t
    return t.rolling(time=3).mean().sum().compute().values, t.coarsen(x=2).max().sum().compute().values


@brief
def case_selection_and_interpolation(client):
    t = data_set().t
    return t.sel(x=slice(2, 4), time=5).compute().values, t.where(t > 30).count().compute().values


def case_apply_ufunc(client):
    xarray = needs("xarray")
    found = xarray.apply_ufunc(np.sqrt, data_set(), dask="parallelized", output_dtypes=[float])
    return float(found.t.sum().compute())


@brief
def case_persisted(client):
    data = client.persist(data_set() + 1)
    return float(data.t.sum()), float(data.t.isel(time=0).max())


def case_map_blocks(client):
    return float(data_set().map_blocks(lambda part: part * 2).t.sum().compute())


def weather():
    """Two years on a small map, each fifth day."""
    xarray = needs("xarray")
    import pandas as pd

    days = pd.date_range("2001-01-01", periods=146, freq="5D")
    values = np.arange(146.0 * 8 * 6).reshape(146, 8, 6) * 7 % 61
    coordinates = {"time": days, "x": np.arange(8), "y": np.arange(6)}
    found = xarray.DataArray(values, dims=("time", "x", "y"), coords=coordinates, name="t")
    return found.chunk({"time": 73})


@brief
def case_quantiles(client):
    found = weather().chunk({"time": -1, "x": 4}).quantile([0.1, 0.5, 0.9], dim="time")
    return found.compute().values


@slow
def case_climatology(client):
    groups = weather().groupby("time.dayofyear")
    means = groups.mean("time")
    anomalies = groups - means
    monthly = weather().resample(time="MS").mean().groupby("time.month").mean()
    return means.compute().values[::9].sum(axis=1), float(anomalies.std()), monthly.compute().values.sum(axis=(1, 2))
