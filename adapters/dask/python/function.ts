import { type FunctionSpec, YardmasterError } from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';
import { type AnyFunction, foreignFunction, type TaskFunctionOf } from '../../tasks/index.ts';

/** What the modules of functions of Python begin with, as their tasks name them. */
const SCHEME = 'python:';

/** A module or name of Python, dotted. */
const DOTTED = /^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u;

/**
 * A function of Python, which workers of Dask call: give it to `client.submit`, `map` or `task` like any
 * other. Its arguments and its result are plain data, typed arrays and tables (see docs/dask.md).
 *
 * ```ts
 * const norm = python<(x: Float64Array) => number>('numpy.linalg:norm');
 * await client.submit(norm, Float64Array.of(3, 4)).result(); // 5
 * ```
 *
 * @param path - `module:name`; the name may be dotted. Workers import the module
 * @throws YardmasterError `ERR_FUNCTION_MISSING` when it is no such path
 */
export function python<F extends AnyFunction = (...args: readonly unknown[]) => unknown>(
  path: string,
): TaskFunctionOf<F> {
  const [module = '', name = '', ...rest] = typeof path === 'string' ? path.split(':') : [];
  if (!DOTTED.test(module) || !DOTTED.test(name) || rest.length > 0) {
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      `${show(path)} does not name a function of Python; write "module:name", as in "math:sqrt"`,
      { path },
    );
  }
  return foreignFunction<F>(`${SCHEME}${module}`, name, () => {
    throw new YardmasterError(
      'ERR_FUNCTION_MISSING',
      `${path} is a function of Python, which workers of Dask call; submit it to a cluster that has some`,
      { path },
    );
  });
}

/** What a task of Python calls, if it is one that a client of Node submitted. */
export interface PythonCall {
  readonly module: string;
  readonly name: string;
  /** Serialised arguments. */
  readonly args: Uint8Array;
}

/** Undefined for any other run specification. */
export function pythonCallOf(runSpec: unknown): PythonCall | undefined {
  const { module, name, args } = (runSpec ?? {}) as Partial<FunctionSpec>;
  if (typeof module !== 'string' || !module.startsWith(SCHEME)) return undefined;
  if (typeof name !== 'string' || !(args instanceof Uint8Array)) return undefined;
  return { module: module.slice(SCHEME.length), name, args };
}
