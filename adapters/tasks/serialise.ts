import { types } from 'node:util';

import { YardmasterError } from '../../core/api/index.ts';
import { sharedBytes } from '../../core/util/bytes.ts';
import { isPlainObject, typeName } from '../../core/util/values.ts';
import { PiecesReader, PiecesWriter, type ScatteredValue } from './pieces.ts';
import { checkRefusal } from './context.ts';
import { isSmall, readSmall, writeSmall } from './small-values.ts';

/** Upper bound of the values that the search for the offending one examines. */
const SEARCHED_VALUES_MAX = 100_000;

/** The bytes of what a task returned lie in memory that threads share. @throws as {@link serialise} */
export function serialiseResult(value: unknown): Uint8Array {
  return serialise(value, 'result', sharedBytes, true);
}

/**
 * Turns a value into bytes with V8's structured serialisation: plain objects, arrays, Map, Set,
 * Date, RegExp, BigInt, ArrayBuffer, typed arrays, Buffer, Error (name, message, stack, cause),
 * cycles and shared references. Instances of other classes become plain objects with their
 * enumerable own properties, as with `structuredClone`; one without any, such as a `URL`, is refused. `-0`, NaN and
 * `undefined` survive.
 *
 * Large typed arrays, Buffers and DataViews, anywhere in the value, are copied once, directly to
 * their final place. So are ArrayBuffers that are the value itself or one of its direct members.
 *
 * @param what - how the message calls the value: `result`, `arguments`
 * @param allocate - memory for a value with such parts; may refuse it with `ERR_FRAME`. Default: an
 *   ArrayBuffer
 * @param isSharing - whether SharedArrayBuffers, and views of them, stay the same memory: the bytes then refer to it, and
 *   stay in this process as they are. Default: such views are copied, and the buffers themselves refused
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` with the path of a function, symbol, promise, …
 */
export function serialise(
  value: unknown,
  what = 'value',
  allocate: (nbytes: number) => Uint8Array = newBytes,
  isSharing = false,
): Uint8Array {
  const small = writeSmall(value);
  if (small !== undefined) return small;
  if (isHollow(value)) throw notSerialisable(value, what);
  const writer = new PiecesWriter(value, isSharing);
  try {
    return writer.write(allocate);
  } catch (thrown) {
    if (YardmasterError.is(thrown, 'ERR_FRAME')) throw thrown;
    throw notSerialisable(value, what, thrown);
  }
}

/**
 * True for an instance of a class of which nothing would arrive, and V8 does not mind: what it holds is private, or the
 * engine's. To look for them in a whole value costs more than V8 does, so this is left to those who look at all of it.
 */
export function isHollow(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  if (isPlainObject(value) || types.isProxy(value) || KEPT.some((is) => is(value))) return false;
  return Object.keys(value).length === 0;
}

/** The kinds of objects that V8 keeps as what they are. */
const KEPT: readonly ((value: object) => boolean)[] = [
  (value) => ArrayBuffer.isView(value),
  ...[types.isMap, types.isSet, types.isDate, types.isRegExp],
  ...[types.isAnyArrayBuffer, types.isNativeError, types.isBoxedPrimitive],
];

/**
 * True when equal values always have these bytes. The bytes of larger values show how the engine holds them: hash the
 * value itself then, with `ContentHash`.
 */
export function isCanonical(bytes: Uint8Array): boolean {
  return isSmall(bytes);
}

/**
 * The value behind the bytes of {@link serialise}. It shares no memory with the bytes, so it may be
 * changed; only SharedArrayBuffers may be those that the bytes refer to. The parts that a {@link ScatteredValue} has collected become part of the value, and must
 * not be used otherwise afterwards.
 *
 * @throws YardmasterError `ERR_FRAME` when the bytes are not what `serialise` made; the error that
 *   stands in the place of a value
 */
export function deserialise(given: Uint8Array | ScatteredValue): unknown {
  if (given instanceof Uint8Array) checkRefusal(given);
  try {
    const bytes = given instanceof Uint8Array ? given : given.bytes;
    if (isSmall(bytes)) return readSmall(bytes);
    return new PiecesReader(given).read();
  } catch (thrown) {
    const nbytes = given.byteLength;
    throw new YardmasterError(
      'ERR_FRAME',
      `${nbytes} bytes are not a serialised value: were they made by another version of Node?`,
      { nbytes },
      { cause: thrown },
    );
  }
}

function newBytes(nbytes: number): Uint8Array {
  return new Uint8Array(nbytes);
}

/** For what cannot travel, with the path of the part that is at fault. */
export function notSerialisable(value: unknown, what: string, cause?: unknown): YardmasterError {
  const found = findOffender(value, what);
  const where = found?.path ?? what;
  const isDeep = cause instanceof RangeError && /call stack/i.test(cause.message);
  const kind = found?.kind ?? (isDeep ? 'nested too deeply' : 'a value that V8 refuses');
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `${where} is ${kind}, which cannot be serialised; use plain data (objects, arrays, Map, Set, Date, typed arrays; the text of a URL)`,
    { path: where, kind },
    cause === undefined ? {} : { cause },
  );
}

interface Offender {
  readonly path: string;
  readonly kind: string;
}

/** Searches breadth-first, so that the shortest path is named. */
function findOffender(root: unknown, what: string): Offender | undefined {
  const queue: [value: unknown, path: string][] = [[root, what]];
  const seen = new Set<unknown>();
  for (let index = 0; index < queue.length && index < SEARCHED_VALUES_MAX; index++) {
    const [value, path] = queue[index] as [unknown, string];
    const kind = unserialisableKind(value);
    if (kind !== undefined) return { path, kind };
    if (typeof value !== 'object' || value === null || seen.has(value)) continue;
    seen.add(value);
    try {
      for (const child of children(value, path)) queue.push(child);
    } catch (thrown) {
      return { path, kind: `an object with a getter that throws (${String(thrown)})` };
    }
  }
  return undefined;
}

function unserialisableKind(value: unknown): string | undefined {
  if (typeof value === 'function') return `a function (${value.name || 'anonymous'})`;
  if (typeof value === 'symbol') return `a symbol (${value.toString()})`;
  if (typeof value !== 'object' || value === null) return undefined;
  if (types.isProxy(value)) return 'a Proxy';
  if (types.isPromise(value)) return 'a Promise';
  if (types.isWeakMap(value) || types.isWeakSet(value)) return `a ${typeName(value)}`;
  if (types.isGeneratorObject(value)) return 'a generator';
  if (types.isSharedArrayBuffer(value)) return 'a SharedArrayBuffer';
  if (isHollow(value)) return `an instance of ${typeName(value)} without properties of its own`;
  return undefined;
}

function* children(value: object, path: string): Generator<[unknown, string]> {
  if (ArrayBuffer.isView(value)) return;
  if (value instanceof Map) {
    let index = 0;
    for (const [key, item] of value) {
      yield [key, `${path} (key ${index++} of the Map)`];
      yield [item, `${path}.get(${keyText(key)})`];
    }
    return;
  }
  if (value instanceof Set) {
    let index = 0;
    for (const item of value) yield [item, `${path} (member ${index++} of the Set)`];
    return;
  }
  if (types.isNativeError(value)) {
    yield [value.cause, `${path}.cause`];
    return;
  }
  const isArray = Array.isArray(value);
  for (const [name, item] of Object.entries(value)) {
    if (isArray && /^\d+$/.test(name)) yield [item, `${path}[${name}]`];
    else
      yield [item, /^[\w$]+$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`];
  }
}

function keyText(key: unknown): string {
  return typeof key === 'string'
    ? JSON.stringify(key)
    : typeof key === 'number'
      ? String(key)
      : '…';
}
