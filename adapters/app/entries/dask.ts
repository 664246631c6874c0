/**
 * `yardmaster/dask`: for programs that work with Dask's clients and workers: calls of Python functions, and
 * values that both languages understand. Guide: `docs/dask.md`.
 *
 * @module yardmaster/dask
 */
export {
  arrow,
  type ArrowStream,
  keywords,
  type Keywords,
  ndarray,
  type NdArray,
  python,
} from '../../dask/wire/python.ts';
