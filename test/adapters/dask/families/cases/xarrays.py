"""xarray with arrays of Dask."""

import numpy as np

from kit import brief, needs


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
