import { isPythonTask } from './translate.ts';
import {
  asList,
  decodeMessage,
  encodeMessage,
  type Fields,
  isFields,
  numberIn,
  Opaque,
} from './wire/codec.ts';
import { MARK, pythonCallOf } from './wire/python.ts';
import {
  mapOrObject,
  NotPortable,
  readPickle,
  toArray,
  within,
  writePickle,
} from './wire/pickle.ts';

// Values of Python, as Dask's workers send them.

const ARROW_TYPES: ReadonlySet<string> = new Set([
  'pyarrow.lib.Table',
  'pyarrow.Table',
  'pyarrow.lib.RecordBatch',
  'pyarrow.RecordBatch',
]);

/**
 * The value for JavaScript. Copies what is binary.
 * @throws NotPortable what has no equal there
 */
export function readValue({ header, frames }: Opaque): unknown {
  const fields = decodeMessage([header]);
  if (!isFields(fields)) throw new NotPortable('a value without a header');
  return read(fields, merged(fields, uncompressed(fields, frames)));
}

/** Our handshake offers no compression, so peers send uncompressed frames. */
function uncompressed(header: Fields, frames: readonly Uint8Array[]): readonly Uint8Array[] {
  const used = asList(header['compression'] ?? null)?.find((one) => typeof one === 'string');
  if (used === undefined) return frames;
  throw new NotPortable(`a value that was compressed with ${used}`);
}

/** Large frames were cut into several, which stand one behind the other. */
function merged(header: Fields, frames: readonly Uint8Array[]): readonly Uint8Array[] {
  const counts = asList(header['split-num-sub-frames'] ?? null);
  if (counts === undefined) return frames;
  let end = 0;
  return counts.map((count) => {
    const start = end;
    end += Math.max(0, Number(count));
    const parts = frames.slice(start, end);
    return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
  });
}

function read(header: Fields, frames: readonly Uint8Array[]): unknown {
  if (header['is-collection'] === true) return readCollection(header, frames);
  switch (header['serializer']) {
    case 'pickle':
      return readPickle(frames[0] ?? new Uint8Array(), frames.slice(1));
    case 'dask':
      return readKnown(header, frames);
    case 'error':
      throw new NotPortable(`a value that Python cannot pickle (${firstLine(frames)})`);
    default:
      throw new NotPortable(`a value serialised by ${String(header['serializer'])}`);
  }
}

function readCollection(header: Fields, frames: readonly Uint8Array[]): unknown {
  const type = header['type-serialized'];
  if (type === 'set') throw new NotPortable('a set');
  const lengths = asList(header['frame-lengths']) ?? [];
  const headers = asList(header['sub-headers']) ?? [];
  let start = 0;
  const members = headers.map((sub, index): readonly [unknown, unknown] => {
    const end = start + Number(lengths[index]);
    const its = frames.slice(start, end);
    start = end;
    const fields = sub as Fields;
    const { key } = fields;
    const place = type === 'dict' ? String(key) : index;
    return [key, within(place, () => read(fields, its))];
  });
  return type === 'dict' ? mapOrObject(members) : members.map(([, value]) => value);
}

/** Types that Dask serialises in a dedicated form. */
function readKnown(header: Fields, frames: readonly Uint8Array[]): unknown {
  const type = String(header['type']);
  const sub = isFields(header['sub-header']) ? header['sub-header'] : {};
  const [first = new Uint8Array()] = frames;
  if (type === 'bytes' || type === 'bytearray' || type === 'memoryview') {
    return Buffer.from(Buffer.concat(frames));
  }
  if (ARROW_TYPES.has(type)) return { [MARK]: 'arrow', bytes: Uint8Array.from(first) };
  if (type === 'numpy.ndarray') return readArray(sub, frames);
  throw new NotPortable(`an object of ${type}`);
}

function readArray(sub: Fields, frames: readonly Uint8Array[]): unknown {
  const [first = new Uint8Array()] = frames;
  if (sub['pickle'] === true) return readPickle(first, frames.slice(1));
  const [isCustom, description] = asList(sub['dtype']) ?? [];
  if (numberIn({ isCustom }, 'isCustom') !== 0) {
    throw new NotPortable('a NumPy array of structures');
  }
  const shape = asList(sub['broadcast_to'] ?? sub['shape']) ?? [];
  return toArray({
    description: String(description),
    shape: shape.map(Number),
    strides: (asList(sub['strides']) ?? []).map(Number),
    bytes: first,
  });
}

function firstLine(frames: readonly Uint8Array[]): string {
  return (
    Buffer.from(frames[0] ?? [])
      .toString('utf8')
      .split('\n', 1)[0] ?? ''
  );
}

/**
 * A value of JavaScript as Dask's workers read the results of each other.
 * @throws NotPortable what has no equal in Python
 */
export function writeValue(value: unknown): Opaque {
  const { bytes, buffers } = writePickle(value, true);
  const frames = [bytes, ...buffers];
  const header = encodeMessage({
    serializer: 'pickle',
    writeable: buffers.map(() => true),
    compression: frames.map(() => null),
    'num-sub-frames': frames.length,
  });
  return new Opaque('serialized', header[0] as Uint8Array, frames);
}

/** The language of a task: clients of Dask submit Python, those of Node what they name. */
export function languageOf(runSpec: unknown): string {
  const isPython = isPythonTask(runSpec) || pythonCallOf(runSpec) !== undefined;
  return isPython ? 'python' : 'javascript';
}
