/** Arrays of NumPy and of JavaScript. */
import { type DType, MARK, type NdArray, type TypedArray } from '../python/index.ts';
import { NotPortable } from './refusal.ts';

type ArrayMaker = new (buffer: ArrayBuffer) => TypedArray;

interface Kind {
  readonly dtype: DType;
  /** As NumPy describes it, for little-endian memory. */
  readonly code: string;
  readonly itemBytes: number;
  readonly make: ArrayMaker;
}

const KINDS: readonly Kind[] = [
  { dtype: 'bool', code: 'b1', itemBytes: 1, make: Uint8Array },
  { dtype: 'int8', code: 'i1', itemBytes: 1, make: Int8Array },
  { dtype: 'uint8', code: 'u1', itemBytes: 1, make: Uint8Array },
  { dtype: 'int16', code: 'i2', itemBytes: 2, make: Int16Array },
  { dtype: 'uint16', code: 'u2', itemBytes: 2, make: Uint16Array },
  { dtype: 'int32', code: 'i4', itemBytes: 4, make: Int32Array },
  { dtype: 'uint32', code: 'u4', itemBytes: 4, make: Uint32Array },
  { dtype: 'int64', code: 'i8', itemBytes: 8, make: BigInt64Array },
  { dtype: 'uint64', code: 'u8', itemBytes: 8, make: BigUint64Array },
  { dtype: 'float32', code: 'f4', itemBytes: 4, make: Float32Array },
  { dtype: 'float64', code: 'f8', itemBytes: 8, make: Float64Array },
];

const BY_CODE = new Map(KINDS.map((kind) => [kind.code, kind]));
const BY_DTYPE = new Map(KINDS.map((kind) => [kind.dtype, kind]));

/** How NumPy's array protocol describes a type: `<f8`. */
export function codeOf(dtype: DType): string {
  const { code, itemBytes } = BY_DTYPE.get(dtype) as Kind;
  return (itemBytes === 1 ? '|' : '<') + code;
}

/** @throws NotPortable when it is a type without an equal here: text, objects, times, big-endian numbers */
function kindOf(description: string): Kind {
  const kind = BY_CODE.get(description.replace(/^[<|=]/, ''));
  if (kind !== undefined) return kind;
  throw new NotPortable(`a NumPy array whose dtype is ${description}`);
}

/** An array of NumPy as it lies in memory. */
interface ArrayInMemory {
  /** `<f8`. */
  readonly description: string;
  readonly shape: readonly number[];
  /** Bytes from one element to the next of each dimension. Default: the last one varies fastest. */
  readonly strides?: readonly number[] | undefined;
  readonly bytes: Uint8Array;
}

/**
 * An array of one dimension as a typed array, others as {@link NdArray}. Copies.
 * @throws NotPortable
 */
export function toArray({
  description,
  shape,
  strides,
  bytes,
}: ArrayInMemory): TypedArray | NdArray {
  const kind = kindOf(description);
  const { itemBytes, dtype } = kind;
  const count = shape.reduce((product, length) => product * length, 1);
  const memory = new Uint8Array(count * itemBytes);
  if (strides === undefined || isDense(shape, strides, itemBytes)) {
    memory.set(bytes.subarray(0, memory.byteLength));
  } else copyStrided({ from: bytes, to: memory, shape, strides, itemBytes });
  const data = new kind.make(memory.buffer);
  if (shape.length === 1 && dtype !== 'bool') return data;
  return { [MARK]: 'ndarray', dtype, shape: [...shape], data };
}

/** @throws NotPortable when JavaScript has no such type of number */
export function toScalar(description: string, bytes: Uint8Array): number | bigint | boolean {
  const { data, dtype } = toArray({ description, shape: [], bytes }) as NdArray;
  const [value] = data;
  if (value === undefined) throw new NotPortable(`a NumPy number without bytes (${description})`);
  if (dtype === 'bool') return value !== 0;
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Whether the elements lie as they shall: one after the other, the last dimension varying fastest. */
function isDense(shape: readonly number[], strides: readonly number[], itemBytes: number): boolean {
  let expected = itemBytes;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const length = shape[axis] as number;
    if (length !== 1 && strides[axis] !== expected) return false;
    expected *= length;
  }
  return true;
}

function copyStrided({
  from,
  to,
  shape,
  strides,
  itemBytes,
}: {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly itemBytes: number;
}): void {
  const place = shape.map(() => 0);
  let source = 0;
  for (let target = 0; target < to.byteLength; target += itemBytes) {
    for (let byte = 0; byte < itemBytes; byte++) to[target + byte] = from[source + byte] as number;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const stride = strides[axis] as number;
      source += stride;
      place[axis] = (place[axis] as number) + 1;
      if ((place[axis] as number) < (shape[axis] as number)) break;
      source -= stride * (shape[axis] as number);
      place[axis] = 0;
    }
  }
}
