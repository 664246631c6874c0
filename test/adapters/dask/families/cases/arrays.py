"""Arrays of Dask: reductions, changes of chunks, linear algebra, transforms."""

import numpy as np

import dask
import dask.array as da
from kit import brief, failure, needs, since, slow

NUMBERS = np.arange(3600.0).reshape(60, 60) % 97


def blocks(chunks=(20, 15)):
    return da.from_array(NUMBERS, chunks=chunks)


def case_reductions(client):
    x = blocks()
    return dask.compute(x.sum(), x.mean(0)[:5], x.std(1)[:5], x.max(), x.argmin(0)[:5], (x > 50).any(0)[:3], x.prod())


def case_split_every(client):
    return blocks((5, 5)).sum(split_every=2).compute(), blocks((5, 5)).var(axis=0, split_every=3).sum().compute()


def case_elementwise_and_broadcast(client):
    x = blocks()
    return (np.sqrt(x) + x[:1] * 2 - x[:, :1]).sum(axis=0)[:6].compute()


@brief
def case_matmul(client):
    x = blocks()
    return (x @ x.T).trace().compute(), da.tensordot(x, x, axes=([0], [0])).sum().compute()


def case_einsum(client):
    return da.einsum("ij,kj->ik", blocks(), blocks()).sum(axis=0)[:5].compute()


@brief
def case_slices(client):
    x = blocks()
    return x[3:40:7, ::-9].compute(), x[[5, 1, 58], :][:, [2, 40]].compute(), x[x[:, 0] > 90].compute().shape


def case_assignment(client):
    x = blocks().copy()
    x[x > 90] = -1
    x[0] = 5
    return x.sum().compute()


@brief
def case_rechunk_of_tasks(client):
    with dask.config.set({"array.rechunk.method": "tasks"}):
        y = blocks((60, 5)).rechunk((7, 60))
    return y.chunks, y.sum(axis=1)[:8].compute()


@brief
@since(2023, 3)
def case_rechunk_p2p(client):
    with dask.config.set({"array.rechunk.method": "p2p"}):
        y = blocks((60, 5)).rechunk((7, 60))
    return y.chunks, y.compute()[::13, ::17]


@slow
@since(2023, 3)
def case_rechunk_p2p_twice(client):
    with dask.config.set({"array.rechunk.method": "p2p"}):
        y = (blocks((60, 5)).rechunk((7, 60)) + 1).rechunk((60, 9))
    return y.sum(axis=0)[:9].compute()


@brief
def case_overlap(client):
    y = blocks().map_overlap(lambda b: b[1:-1, 1:-1] + b[:-2, 1:-1], depth=1, boundary="reflect", trim=False)
    return y.sum().compute()


@brief
def case_svd(client):
    _, s, _ = da.linalg.svd(da.from_array(NUMBERS[:, :10] + np.eye(60, 10) * 30, chunks=(15, 10)))
    return s.compute()


def case_qr(client):
    q, r = da.linalg.qr(da.from_array(NUMBERS[:, :8] + np.eye(60, 8) * 30, chunks=(15, 8)))
    return abs(q @ r).sum().compute()


def case_svd_compressed(client):
    _, s, _ = da.linalg.svd_compressed(blocks(), k=3, seed=7)
    return len(s.compute())


def case_least_squares(client):
    needs("scipy")
    a = da.from_array(NUMBERS[:, :6] + np.eye(60, 6) * 500, chunks=(15, 6))
    return da.linalg.lstsq(a, da.ones(60, chunks=15))[0].compute()


def case_fft(client):
    x = blocks((60, 15))
    return abs(da.fft.fft(x, axis=0)).sum().compute(), abs(da.fft.rfft2(x.rechunk(60))).max().compute()


@brief
def case_cumulative_sums(client):
    x = blocks()
    return x.cumsum(axis=0)[-1, :5].compute(), x.cumsum(axis=1, method="blelloch")[:3, -1].compute()


def case_histogram(client):
    counts, _ = da.histogram(blocks(), bins=8, range=(0, 97))
    flat = blocks().ravel()
    return counts.compute(), da.percentile(flat, [25, 50, 75]).compute(), da.bincount(flat.astype(int)).compute()[:4]


def case_random_numbers_with_a_seed(client):
    x = da.random.RandomState(3).normal(size=(50, 50), chunks=(25, 10))
    return x.mean().compute(), x[:2, :2].compute()


def case_unknown_chunks(client):
    x = blocks()[:, 0]
    y = x[x > 40].compute_chunk_sizes()
    return y.chunks, y.sum().compute(), da.unique(x).compute()[:5]


def case_sort_of(client):
    return da.topk(blocks().ravel(), 4).compute(), da.argtopk(blocks()[0], -3).compute()


def case_stack_and_concatenate(client):
    x = blocks()
    stacked = da.stack([x, x + 1]).sum(axis=0)[0, :4].compute()
    return stacked, da.concatenate([x, x], axis=1).shape, da.block([[x, x], [x, x]]).sum().compute()


def case_map_blocks(client):
    def place(block, block_info=None):
        return block * 0 + block_info[0]["chunk-location"][0]

    return blocks().map_blocks(place, dtype=float).sum(axis=1)[::10].compute()


def case_gufunc(client):
    def mean(x):
        return x.mean(axis=-1)

    return da.apply_gufunc(mean, "(i)->()", blocks((20, 60)), output_dtypes=float).compute()[:6]


def case_store(client):
    target = np.zeros((60, 60))
    blocks().store(target, lock=True, scheduler="threads")
    return target.sum()


def case_masked(client):
    x = da.ma.masked_greater(blocks(), 50)
    return x.mean().compute(), da.ma.filled(x, -1).sum().compute()


def case_from_delayed(client):
    parts = [da.from_delayed(dask.delayed(np.full)(3, i), (3,), dtype=int) for i in range(4)]
    return da.concatenate(parts).compute()


def case_persist(client):
    x = client.persist(blocks() + 1)
    return x.sum().compute(), x[:2, :2].compute(), len(client.who_has(x))


def case_wide_tree_of_small_chunks(client):
    return blocks((4, 4)).sum().compute()


@slow
def case_many_chunks(client):
    return da.ones((400, 400), chunks=(10, 10)).map_blocks(lambda b: b + 1).sum().compute()


@brief
def case_an_error_in_a_block(client):
    def bad(block, block_id=None):
        if block_id == (1, 1):
            raise ValueError("block 1, 1")
        return block

    return failure(blocks().map_blocks(bad, dtype=float).sum().compute)


def case_zarr_like_store_with_delayed(client):
    parts = blocks().to_delayed().ravel()
    return sum(client.gather(client.compute([dask.delayed(np.sum)(part) for part in parts])))


def case_distinct_types(client):
    x = da.arange(20, chunks=7)
    return [str(x.astype(kind).sum().compute().dtype) for kind in ("i4", "u1", "f4", "c16", "bool")]
