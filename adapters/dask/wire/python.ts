import { type FunctionSpec, YardmasterError } from '../../../core/api/index.ts';
import { show } from '../../../core/shared/words.ts';
import { type AnyFunction, foreignFunction, type TaskFunctionOf } from '../../tasks/index.ts';

/** The prefix of the modules of functions of Python, as their tasks name them. */
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

/** The call of a task of Python that a client of Node submitted. */
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

// Values that have a meaning in Python beyond plain data. They are plain objects with a mark, so that
// they pass through workers and survive serialisation as they are.

/** Name of the field that marks such an object. */
export const MARK = '$python';

/** Types of elements that an array may have, as NumPy calls them. */
export type DType =
  | 'bool'
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float32'
  | 'float64';

/** Elements of an array, in memory. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/**
 * A `numpy.ndarray` that is more than a typed array: it has another number of dimensions than one, or
 * elements of type `bool`.
 */
export interface NdArray {
  readonly [MARK]: 'ndarray';
  readonly dtype: DType;
  /** Length of each dimension. */
  readonly shape: readonly number[];
  /** The elements, the last dimension varying fastest; of `bool` as 0 and 1. */
  readonly data: TypedArray;
}

/** A `pyarrow.Table`: the bytes of an Arrow IPC stream, for `tableFromIPC` of the package apache-arrow. */
export interface ArrowStream {
  readonly [MARK]: 'arrow';
  readonly bytes: Uint8Array;
}

/** Arguments by name, as the last argument of a function of Python. */
export interface Keywords {
  readonly [MARK]: 'keywords';
  readonly values: Readonly<Record<string, unknown>>;
}

/** The NumPy type of a typed array; undefined for a Buffer, which is `bytes`, and what is none. */
export function dtypeOf(value: unknown): DType | undefined {
  if (!ArrayBuffer.isView(value) || Buffer.isBuffer(value)) return undefined;
  return DTYPES.get(Object.prototype.toString.call(value));
}

const DTYPES = new Map<string, DType>([
  ['[object Int8Array]', 'int8'],
  ['[object Uint8Array]', 'uint8'],
  ['[object Uint8ClampedArray]', 'uint8'],
  ['[object Int16Array]', 'int16'],
  ['[object Uint16Array]', 'uint16'],
  ['[object Int32Array]', 'int32'],
  ['[object Uint32Array]', 'uint32'],
  ['[object BigInt64Array]', 'int64'],
  ['[object BigUint64Array]', 'uint64'],
  ['[object Float32Array]', 'float32'],
  ['[object Float64Array]', 'float64'],
]);

/**
 * A `numpy.ndarray` of any shape.
 *
 * @param data - all elements, the last dimension varying fastest
 * @param shape - length of each dimension
 * @param dtype - default: that of the data. `bool` for bytes that are 0 and 1
 * @throws YardmasterError `ERR_GRAPH_INVALID` when the three do not fit together
 */
export function ndarray(data: TypedArray, shape: readonly number[], dtype?: 'bool'): NdArray {
  const type = dtypeOf(data);
  const count = shape.reduce((product, length) => product * length, 1);
  const isShape = shape.every((length) => Number.isSafeInteger(length) && length >= 0);
  if (type !== undefined && isShape && count === data.length) {
    if (dtype === undefined || type === 'uint8') {
      return { [MARK]: 'ndarray', dtype: dtype ?? type, shape: [...shape], data };
    }
  }
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `${data.length} elements of ${type ?? 'no type that NumPy has'} are no ${dtype ?? 'array'} of the shape [${shape.join(', ')}]`,
    { shape, length: data.length },
  );
}

/** A table for Python: the bytes of an Arrow IPC stream, as `tableToIPC(table, 'stream')` writes them. */
export function arrow(bytes: Uint8Array): ArrowStream {
  return { [MARK]: 'arrow', bytes };
}

/** Arguments by name for a function of Python; give them last: `client.submit(sum, x, keywords({ axis: 0 }))`. */
export function keywords(values: Readonly<Record<string, unknown>>): Keywords {
  return { [MARK]: 'keywords', values };
}

/** True when a value has this mark, set by any copy of this package. */
export function isMarked<Kind extends 'ndarray' | 'arrow' | 'keywords'>(
  value: unknown,
  kind: Kind,
): value is Extract<NdArray | ArrowStream | Keywords, { readonly [MARK]: Kind }> {
  return (
    typeof value === 'object' && value !== null && (value as { [MARK]?: unknown })[MARK] === kind
  );
}
