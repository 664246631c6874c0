"""A stand-in for Dask's scheduler, for Python that wants to run inside of it."""
