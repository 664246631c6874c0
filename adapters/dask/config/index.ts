/** Dask's own configuration: its files and its variables of the environment. */
export { DaskConfig, type DaskEntry, type Environment } from './dask-config.ts';
export { parsePythonValue } from './python-literal.ts';
