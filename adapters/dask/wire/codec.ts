import { isUtf8 } from 'node:buffer';
import { YardmasterError } from '../../../core/api/index.ts';
import {
  type ForeignValues,
  MsgpackReader,
  MsgpackWriter,
  TooLarge,
} from '../../codecs/msgpack.ts';

/** A message of Dask: a map with text keys. It must not be changed. */
export type Fields = Readonly<Record<string, unknown>>;

/** Deeper values are refused; Python's own packer stops at 511. */
const READ_DEPTH_MAX = 511;

const CACHED_TEXTS = 2048;

/**
 * Reads a message of Dask: frame 0 is msgpack, the others belong to the opaque values in it.
 *
 * Maps with only string keys become objects, others `Map`; sets `Set`; integral floats `PyFloat`; ints
 * beyond 2^53 `bigint`; nil `null`; bytes `Uint8Array`, which may be shared and must not be changed.
 *
 * @param valuesMax - values that it may have; an object or array counts as `CONTAINER_VALUES` plus what is in it, an
 *   opaque value as its frames
 * @throws YardmasterError `ERR_FRAME` when it is not such a message
 */
export function decodeMessage(frames: readonly Uint8Array[], valuesMax = Infinity): unknown {
  return decoder.decode(frames, valuesMax);
}

/** Not re-entrant. */
class Decoder extends MsgpackReader {
  private frames: readonly Uint8Array[] = [];
  /** The frame counts that the sub-headers announce, by frame: each is read once. */
  private counts: number[] = [];
  /** Frames of opaque values as they are kept: what several values name is copied once. */
  private kept: Uint8Array[] = [];
  private readonly slab = new Slab();

  constructor() {
    super(READ_DEPTH_MAX, CACHED_TEXTS);
  }

  decode(frames: readonly Uint8Array[], valuesMax: number): unknown {
    const [first] = frames;
    if (first === undefined) throw unreadable('it has no frame');
    this.frames = frames;
    try {
      return this.readAll(first, valuesMax);
    } finally {
      this.frames = [];
      if (this.counts.length > 0) [this.counts, this.kept] = [[], []];
    }
  }

  protected readBytes(length: number): Uint8Array {
    return this.slab.keep(this.take(length));
  }

  protected readExtension(code: number): MsgpackExtension {
    let nbytes: number;
    if (code >= 0xd4 && code <= 0xd8) nbytes = 1 << (code - 0xd4);
    else if (code >= 0xc7 && code <= 0xc9) nbytes = this.length(code - 0xc7);
    else throw unreadable(`the type 0x${code.toString(16)} does not exist in msgpack`);
    const type = this.view.getInt8(this.at++);
    return new MsgpackExtension(type, this.slab.keep(this.take(nbytes)));
  }

  protected float(value: number): number | PyFloat {
    return Number.isInteger(value) ? new PyFloat(value) : value;
  }

  protected wideInteger(value: number, isSigned: boolean): number | bigint {
    if (Number.isSafeInteger(value)) return value;
    const { view, at } = this;
    return isSigned ? view.getBigInt64(at - 8) : view.getBigUint64(at - 8);
  }

  protected text(bytes: Buffer, at: number, length: number): string {
    const text = bytes.toString('utf8', at, at + length);
    if (text.includes('\uFFFD') && !isUtf8(bytes.subarray(at, at + length))) {
      throw unreadable('it has a text that is not UTF-8');
    }
    return text;
  }

  protected unreadable(why: string, cause?: unknown): YardmasterError {
    return unreadable(why, cause);
  }

  protected readMap(count: number, depth: number): unknown {
    this.checkCount(2 * count, depth);
    const value: Record<string, unknown> = {};
    let isSpecial = false;
    for (let index = 0; index < count; index++) {
      const name = this.readName();
      if (name === undefined) return this.readOtherMap(value, count - index, depth);
      if (name.charCodeAt(0) === UNDERSCORE && name.charCodeAt(1) === UNDERSCORE) {
        isSpecial = true;
        if (name === '__proto__') {
          setOwn(value, name, this.read(depth + 1));
          continue;
        }
      }
      value[name] = this.read(depth + 1);
    }
    return isSpecial ? this.resolve(value) : value;
  }

  /** The rest of a map with keys that are not strings. */
  private readOtherMap(read: Readonly<Record<string, unknown>>, count: number, depth: number) {
    const value = new Map<unknown, unknown>(Object.entries(read));
    for (let index = 0; index < count; index++) {
      const key = this.read(depth + 1);
      value.set(key, this.read(depth + 1));
    }
    return value;
  }

  /** Dask's own conventions are maps with one certain key. */
  private resolve(value: Readonly<Record<string, unknown>>): unknown {
    const serialized = value['__Serialized__'];
    if (typeof serialized === 'number' && serialized > 0) {
      return this.opaque('serialized', serialized);
    }
    const pickled = value['__Pickled__'];
    if (typeof pickled === 'number' && pickled > 0) return this.opaque('pickled', pickled);
    const items = value['as-list'];
    return value['__Set__'] !== undefined && Array.isArray(items) ? new Set(items) : value;
  }

  private opaque(kind: Opaque['kind'], offset: number): Opaque {
    const header = this.frames[offset];
    if (header === undefined) {
      throw unreadable(`it names frame ${offset}, but has only ${this.frames.length}`);
    }
    const count = (this.counts[offset] ??= subFrameCount(header));
    if (!(count >= 0 && offset + 1 + count <= this.frames.length)) {
      throw unreadable(
        `the sub-header in frame ${offset} of ${this.frames.length} announces ${count} frames`,
      );
    }
    this.spend(count);
    const frames: Uint8Array[] = [];
    for (let index = 1; index <= count; index++) {
      frames.push(this.keep(offset + index));
    }
    return new Opaque(kind, this.keep(offset), frames);
  }

  private keep(index: number): Uint8Array {
    return (this.kept[index] ??= this.slab.keep(this.frames[index] as Uint8Array));
  }
}

const UNDERSCORE = 0x5f;

const KNOWN_COUNT = 256;

/**
 * Copies byte arrays into separate memory, so that one small value does not keep alive the chunk of
 * the socket in which it arrived. Small arrays share pages. Repeated arrays (the pickled class of
 * each result, the sub-header of each task) are stored once.
 */
class Slab {
  private page = new ArrayBuffer(0);
  private used = 0;
  private readonly known = new Array<Uint8Array | undefined>(KNOWN_COUNT).fill(undefined);

  /**
   * Returns a copy of these bytes, which may be shared with earlier callers and must not be
   * changed.
   */
  keep(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (2 * length > bytes.buffer.byteLength && length > KNOWN_MAX_BYTES) return bytes;
    if (length > KNOWN_MAX_BYTES) return this.copy(bytes);
    const place = placeOf(bytes);
    const known = this.known[place];
    if (known !== undefined && isSame(known, bytes)) return known;
    const copy = this.copy(bytes);
    this.known[place] = copy;
    return copy;
  }

  private copy(bytes: Uint8Array): Uint8Array {
    const { length } = bytes;
    if (length > COPY_MAX_BYTES) return new Uint8Array(bytes); // The `slice` of a Buffer copies nothing.
    if (this.used + length > this.page.byteLength) {
      this.page = new ArrayBuffer(SLAB_BYTES);
      this.used = 0;
    }
    const copy = new Uint8Array(this.page, this.used, length);
    copy.set(bytes);
    this.used += length;
    return copy;
  }
}

const decoder = new Decoder();

function setOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function unreadable(why: string, cause?: unknown): YardmasterError {
  return new YardmasterError('ERR_FRAME', `a message cannot be read: ${why}`, {}, { cause });
}

/**
 * The differences between releases of `distributed`, for one peer. A field too many or too few ends a
 * worker, so these follow the releases exactly.
 */
export interface Dialect {
  /** The version that the peer reported. */
  readonly version: string;
  /** 2023.1.1: assignments have a number, which comes back with the answer. */
  readonly hasRunIds: boolean;
  /** Before 2023.2.1: `update_data` takes `report`. */
  readonly hasUpdateDataReport: boolean;
  /** 2023.3.1: one message for many cancelled keys. */
  readonly hasCancelledKeys: boolean;
  /** 2023.3.2: workers hear that a peer is gone. */
  readonly hasRemoveWorker: boolean;
  /** 2023.7.1: workers get the P2P shuffle as a plugin. */
  readonly hasShufflePlugin: boolean;
  /** 2023.6.0: `compute-task` names a span. */
  readonly hasSpanIds: boolean;
  /** 2023.8.1: a task is one pickle; before, it may be a function with its arguments. */
  readonly hasOnlyRunSpecs: boolean;
  /** Before 2023.8.1: `get_data` takes `max_connections`. */
  readonly hasMaxConnections: boolean;
  /** 2024.6.0: answers about a shuffle have a status; before, the specification came bare. */
  readonly hasShuffleStatus: boolean;
  /** 2024.11.0: `get_runspec` is answered with the task; before, with its inputs beside it. */
  readonly hasBareRunSpecs: boolean;
  /** 2024.12.0: a task is an object that knows its inputs (`dask._task_spec.Task`). */
  readonly hasTaskSpecs: boolean;
  /** Before 2025.2.0: `compute-task` says how long it is expected to take. */
  readonly hasDuration: boolean;
  /** 2025.3.0: cancelled keys come with a reason. */
  readonly hasCancelReasons: boolean;
  /** 2025.4.0: the heartbeats of clients are answered. */
  readonly hasClientHeartbeatAnswer: boolean;
}

const known = new Map<string, Dialect>();

/**
 * The dialect of a release. A version that cannot be read (a checkout says `unknown`) counts as the
 * newest.
 */
export function dialectOf(version: string): Dialect {
  let dialect = known.get(version);
  if (dialect === undefined) {
    dialect = makeDialect(version);
    // Peers choose the text; there are never this many releases.
    if (known.size < 100) known.set(version, dialect);
  }
  return dialect;
}

/** The version of `distributed` in the package list that a peer sends when it registers. */
export function versionIn(versions: unknown): string {
  const { packages } = (versions ?? {}) as { packages?: unknown };
  const text = (packages as { distributed?: unknown } | null | undefined)?.distributed;
  return typeof text === 'string' ? text : 'unknown';
}

function makeDialect(version: string): Dialect {
  const since = (year: number, month: number, patch: number): boolean => {
    const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
    if (parts === undefined) return true;
    const [itsYear = 0, itsMonth = 0, itsPatch = 0] = parts;
    if (itsYear !== year) return itsYear > year;
    if (itsMonth !== month) return itsMonth > month;
    return itsPatch >= patch;
  };
  return {
    version,
    hasRunIds: since(2023, 1, 1),
    hasUpdateDataReport: !since(2023, 2, 1),
    hasCancelledKeys: since(2023, 3, 1),
    hasRemoveWorker: since(2023, 3, 2),
    hasShufflePlugin: since(2023, 7, 1),
    hasSpanIds: since(2023, 6, 0),
    hasOnlyRunSpecs: since(2023, 8, 1),
    hasMaxConnections: !since(2023, 8, 1),
    hasShuffleStatus: since(2024, 6, 0),
    hasBareRunSpecs: since(2024, 11, 0),
    hasTaskSpecs: since(2024, 12, 0),
    hasDuration: !since(2025, 2, 0),
    hasCancelReasons: since(2025, 3, 0),
    hasClientHeartbeatAnswer: since(2025, 4, 0),
  };
}

/** Deeper values are refused; Python's own packer stops at 511. */
const WRITTEN_DEPTH_MAX = 500;

/**
 * Writes a message of Dask: frame 0, then those of the opaque values in it.
 *
 * Integral numbers become ints (a float that must stay one is a `PyFloat`), fields that are `undefined`
 * are left out, other `undefined` is nil.
 *
 * @throws YardmasterError `ERR_NOT_SERIALISABLE` when something in it has no form in msgpack
 */
export function encodeMessage(value: unknown): Uint8Array[] {
  shared.reset(0);
  shared.write(value);
  return [shared.copy(0), ...shared.takeFrames()];
}

/** Writes values one after the other into memory that it keeps. */
export class Encoder extends MsgpackWriter {
  private frames: Uint8Array[] = [];

  /** Shared memory; valid up to `length`, until the next write. */
  get memory(): Uint8Array {
    return this.bytes;
  }

  /** The offset at which the next value begins. */
  get length(): number {
    return this.at;
  }

  /** Frames of opaque values so far; frame 0 is not among them. */
  get frameCount(): number {
    return this.frames.length;
  }

  /** Copies what was written from this position on into separate memory. */
  copy(from: number): Uint8Array {
    const { buffer, byteOffset } = this.bytes;
    return new Uint8Array(buffer, byteOffset + from, this.at - from).slice();
  }

  /** Starts anew. @param at - number of bytes to leave free in front */
  reset(at: number): void {
    this.at = at;
    this.frames = [];
    this.shrink(KEPT_BYTES);
  }

  /** Frames of opaque values; from now on the caller's. */
  takeFrames(): Uint8Array[] {
    const { frames } = this;
    this.frames = [];
    return frames;
  }

  /**
   * Appends a value, or nothing of it when it throws.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`
   */
  write(value: unknown): void {
    const { at } = this;
    const { length } = this.frames;
    try {
      this.any(value, 0);
    } catch (thrown) {
      this.at = at;
      this.frames.length = length;
      if (thrown instanceof TooLarge) throw refused('a value of 2^32 or more bytes or items');
      throw thrown;
    }
  }

  /** Appends bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.writeRaw(bytes);
  }

  private any(value: unknown, depth: number): void {
    switch (typeof value) {
      case 'string':
        this.text(value);
        return;
      case 'number':
        this.number(value);
        return;
      case 'boolean':
        this.writeByte(value ? 0xc3 : 0xc2);
        return;
      case 'undefined':
        this.writeByte(0xc0);
        return;
      case 'object':
        if (value === null) this.writeByte(0xc0);
        else this.object(value, depth);
        return;
      case 'bigint':
        this.bigint(value);
        return;
      case 'function':
      case 'symbol':
        throw refused(`a ${typeof value}`);
    }
  }

  private object(value: object, depth: number): void {
    if (depth >= WRITTEN_DEPTH_MAX)
      throw refused(`a value nested deeper than ${WRITTEN_DEPTH_MAX} levels`);
    const { constructor } = value;
    if (constructor === Object) this.fields(value as Fields, depth);
    else if (Array.isArray(value)) this.array(value, depth);
    else if (value instanceof Uint8Array) this.writeBytes(value);
    else if (value instanceof Opaque) this.opaque(value);
    else if (value instanceof PyFloat) this.writeFloat(value.valueOf());
    else if (value instanceof Map) this.map(value, depth);
    else if (value instanceof Set) this.set(value, depth);
    else if (value instanceof MsgpackExtension) this.extension(value);
    else this.unusual(value, depth);
  }

  /** An object without prototype, or with a field called `constructor`. */
  private unusual(value: object, depth: number): void {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== null && prototype !== Object.prototype) {
      throw refused(`an instance of ${value.constructor.name}`);
    }
    this.fields(value as Fields, depth);
  }

  private array(value: readonly unknown[], depth: number): void {
    const { length } = value;
    this.writeHeader(length, 0x90, 0xdc);
    for (let index = 0; index < length; index++) this.any(value[index], depth + 1);
  }

  private fields(value: Fields, depth: number): void {
    const start = this.at;
    this.writeByte(0x80);
    let count = 0;
    for (const name in value) {
      const field = value[name];
      if (field === undefined) continue;
      count++;
      this.text(name);
      this.any(field, depth + 1);
    }
    if (count < 16) this.bytes[start] = 0x80 | count;
    else this.widenHeader(start, count);
  }

  /**
   * Widens the header for the number of fields, which was not known when the header was written.
   */
  private widenHeader(start: number, count: number): void {
    const more = count < 0x10000 ? 2 : 4;
    this.reserve(more);
    this.bytes.copyWithin(start + 1 + more, start + 1, this.at);
    this.at += more;
    this.bytes[start] = more === 2 ? 0xde : 0xdf;
    if (more === 2) this.view.setUint16(start + 1, count);
    else this.view.setUint32(start + 1, count);
  }

  private map(value: ReadonlyMap<unknown, unknown>, depth: number): void {
    this.writeHeader(value.size, 0x80, 0xde);
    for (const [key, item] of value) {
      this.any(key, depth + 1);
      this.any(item, depth + 1);
    }
  }

  private set(value: ReadonlySet<unknown>, depth: number): void {
    this.writeByte(0x82);
    this.text('__Set__');
    this.writeByte(0xc3);
    this.text('as-list');
    this.writeHeader(value.size, 0x90, 0xdc);
    for (const item of value) this.any(item, depth + 1);
  }

  private opaque({ kind, header, frames }: Opaque): void {
    this.writeByte(0x81);
    this.text(kind === 'serialized' ? '__Serialized__' : '__Pickled__');
    this.number(1 + this.frames.length);
    this.frames.push(header);
    for (const frame of frames) this.frames.push(frame);
  }

  private extension({ type, data }: MsgpackExtension): void {
    const { length } = data;
    this.reserve(6);
    const fixed = FIXED_EXTENSIONS[length];
    if (fixed !== undefined) this.writeByte(fixed);
    else if (length < 0x100) this.writeLength8(0xc7, length);
    else this.writeHeader(length, undefined, 0xc8);
    this.writeByte(type);
    this.raw(data);
  }

  private number(value: number): void {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) this.writeFloat(value);
    else this.writeInteger(value);
  }

  private bigint(value: bigint): void {
    if (BigInt.asUintN(64, value) === value) this.code8(0xcf).setBigUint64(this.at - 8, value);
    else if (BigInt.asIntN(64, value) === value) this.code8(0xd3).setBigInt64(this.at - 8, value);
    else throw refused(`the integer ${value}, which needs more than 64 bits`);
  }

  private code8(code: number): DataView {
    this.reserve(9);
    this.bytes[this.at] = code;
    this.at += 9;
    return this.view;
  }

  private text(text: string): void {
    if (this.writeText(text)) return;
    throw refused(`the text ${JSON.stringify(text)}, which has half of a surrogate pair`);
  }
}

/** Memory that an encoder keeps for its next message. */
const KEPT_BYTES = 64 * 1024;
const FIXED_EXTENSIONS: Readonly<Record<number, number>> = {
  1: 0xd4,
  2: 0xd5,
  4: 0xd6,
  8: 0xd7,
  16: 0xd8,
};

const shared = new Encoder();

function refused(what: string): YardmasterError {
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `${what} cannot be sent to a Dask peer: its messages hold plain data`,
  );
}

/**
 * The values that clients of Dask submit and plain data cannot express: values of Python, integral floats, maps, sets, large
 * integers. A journal keeps each as a message of Dask: number of frames, their lengths (u32, big-endian), the frames.
 */
export const DASK_VALUES: ForeignValues = {
  write(value) {
    if (!isOfDask(value)) return undefined;
    const frames = encodeMessage(value);
    const table = Buffer.alloc(4 * (frames.length + 1));
    table.writeUInt32BE(frames.length);
    frames.forEach((frame, index) => table.writeUInt32BE(frame.length, 4 * (index + 1)));
    return Buffer.concat([table, ...frames]);
  },
  read(bytes) {
    const table = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const count = table.readUInt32BE();
    const frames: Uint8Array[] = [];
    let at = 4 * (count + 1);
    for (let index = 1; index <= count; index++) {
      const end = at + table.readUInt32BE(4 * index);
      frames.push(bytes.subarray(at, end));
      at = end;
    }
    return decodeMessage(frames);
  },
};

function isOfDask(value: object | bigint): boolean {
  return (
    typeof value === 'bigint' ||
    value instanceof Opaque ||
    value instanceof PyFloat ||
    value instanceof Map ||
    value instanceof Set ||
    value instanceof MsgpackExtension
  );
}

/**
 * A value that only Python can read, carried as it came: what Dask calls `Serialized` (stays as it is
 * until someone asks) or `Pickled` (read when it arrives).
 */
export class Opaque {
  constructor(
    readonly kind: 'serialized' | 'pickled',
    /** The msgpack of the sub-header, byte for byte. It must not be changed. */
    readonly header: Uint8Array,
    /** As many frames as the sub-header states. They must not be changed. */
    readonly frames: readonly Uint8Array[],
  ) {}

  /** Of header and frames together. */
  get nbytes(): number {
    let sum = this.header.length;
    for (const frame of this.frames) sum += frame.length;
    return sum;
  }
}

/** A msgpack value of an extension type, which Dask itself never sends but users may. */
export class MsgpackExtension {
  constructor(
    /** From -128 to 127. */
    readonly type: number,
    readonly data: Uint8Array,
  ) {}
}

/**
 * A float of Python that happens to be integral (`1.0`). It computes like a number, and leaves as a
 * float again; a plain `1` would leave as an int and change the type of what a user stored.
 * Numbers with a fraction, NaN and the infinities are plain numbers: they can be nothing but floats.
 */
export class PyFloat extends Number {}

/** The number in a decoded value; undefined when it is none. An int beyond 2^53 loses its last digits. */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (value instanceof PyFloat) return value.valueOf();
  return typeof value === 'bigint' ? Number(value) : undefined;
}

const FIELD = Buffer.from('num-sub-frames');

const SKIPPED_DEPTH_MAX = 512;

/**
 * The number of frames that belong to a sub-header. Nothing else in it is read: it may hold a pickle of many
 * megabytes.
 * @throws YardmasterError `ERR_FRAME` when it is not a map of msgpack with that field
 */
function subFrameCount(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const code = view.getUint8(0);
    const isFixed = code >= 0x80 && code <= 0x8f;
    let at = isFixed ? 1 : code === 0xde ? 3 : 5;
    if (!isFixed && code !== 0xde && code !== 0xdf) throw unreadableSubHeader('is not a map');
    let count = isFixed ? code & 0x0f : code === 0xde ? view.getUint16(1) : view.getUint32(1);
    for (; count > 0; count--) {
      const nameEnd = skipValue(view, at);
      if (isField(bytes, at, nameEnd)) return naturalAt(view, nameEnd);
      at = skipValue(view, nameEnd);
    }
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw unreadableSubHeader('ends within a value');
  }
  throw unreadableSubHeader('lacks the field num-sub-frames');
}

/** A loop: a call into Node takes longer than these few bytes. */
function isField(bytes: Uint8Array, at: number, end: number): boolean {
  if (end - at !== FIELD.length + 1) return false;
  for (let index = 0; index < FIELD.length; index++) {
    if (bytes[at + 1 + index] !== FIELD[index]) return false;
  }
  return true;
}

function naturalAt(view: DataView, at: number): number {
  const code = view.getUint8(at);
  if (code < 0x80) return code;
  if (code === 0xcc) return view.getUint8(at + 1);
  if (code === 0xcd) return view.getUint16(at + 1);
  if (code === 0xce) return view.getUint32(at + 1);
  throw unreadableSubHeader('has a num-sub-frames that is not a natural number');
}

/** @returns where the value at `at` ends */
function skipValue(view: DataView, at: number, depth = 0): number {
  if (depth > SKIPPED_DEPTH_MAX)
    throw unreadableSubHeader(`is nested deeper than ${SKIPPED_DEPTH_MAX} levels`);
  const code = view.getUint8(at);
  if (code < 0x80 || code >= 0xe0) return at + 1;
  if (code < 0x90) return skipValues(view, at + 1, 2 * (code & 0x0f), depth);
  if (code < 0xa0) return skipValues(view, at + 1, code & 0x0f, depth);
  if (code < 0xc0) return checked(view, at + 1 + (code & 0x1f));
  if (code >= 0xdc) {
    const isWide = code === 0xdd || code === 0xdf;
    const count = isWide ? view.getUint32(at + 1) : view.getUint16(at + 1);
    return skipValues(view, at + (isWide ? 5 : 3), code >= 0xde ? 2 * count : count, depth);
  }
  return checked(view, at + sizeOf(view, at, code));
}

function skipValues(view: DataView, start: number, count: number, depth: number): number {
  let at = start;
  for (let left = count; left > 0; left--) at = skipValue(view, at, depth + 1);
  return at;
}

/** Bytes of a value that holds no others, with its code. */
function sizeOf(view: DataView, at: number, code: number): number {
  switch (code) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return 1;
    case 0xc4:
    case 0xd9:
      return 2 + view.getUint8(at + 1);
    case 0xc5:
    case 0xda:
      return 3 + view.getUint16(at + 1);
    case 0xc6:
    case 0xdb:
      return 5 + view.getUint32(at + 1);
    case 0xc7:
      return 3 + view.getUint8(at + 1);
    case 0xc8:
      return 4 + view.getUint16(at + 1);
    case 0xc9:
      return 6 + view.getUint32(at + 1);
    default:
      return SIZES[code] ?? invalid(code);
  }
}

const SIZES: Readonly<Record<number, number>> = {
  0xca: 5,
  0xcb: 9,
  0xcc: 2,
  0xcd: 3,
  0xce: 5,
  0xcf: 9,
  0xd0: 2,
  0xd1: 3,
  0xd2: 5,
  0xd3: 9,
  0xd4: 3,
  0xd5: 4,
  0xd6: 6,
  0xd7: 10,
  0xd8: 18,
};

function checked(view: DataView, end: number): number {
  if (end > view.byteLength) throw unreadableSubHeader('ends within a value');
  return end;
}

function invalid(code: number): never {
  throw unreadableSubHeader(`has the type 0x${code.toString(16)}, which does not exist in msgpack`);
}

function unreadableSubHeader(why: string): YardmasterError {
  return new YardmasterError('ERR_FRAME', `the sub-header of an opaque value ${why}`);
}

const SLAB_BYTES = 32 * 1024;
const COPY_MAX_BYTES = SLAB_BYTES / 8;

const KNOWN_MAX_BYTES = 160;

function placeOf(bytes: Uint8Array): number {
  const { length } = bytes;
  if (length === 0) return 0;
  const first = bytes[length >> 2] as number;
  const middle = bytes[length >> 1] as number;
  const later = bytes[length - (length >> 2) - 1] as number;
  return (((first * 31 + middle) * 31 + later) * 31 + length) % KNOWN_COUNT;
}

function isSame(known: Uint8Array, bytes: Uint8Array): boolean {
  const { length } = bytes;
  if (known.length !== length) return false;
  for (let index = length - 1; index >= 0; index--) {
    if (known[index] !== bytes[index]) return false;
  }
  return true;
}

/** Types that are remembered; a program has far fewer. */
const TYPES_MAX = 10_000;

/**
 * The pickled classes of results by their names. Workers report both; the scheduler keeps the name,
 * and clients want the class.
 */
export class TypeTable {
  private readonly pickles = new Map<string, unknown>();

  learn(name: string, pickle: unknown): void {
    if (this.pickles.get(name) === pickle) return;
    if (this.pickles.size < TYPES_MAX || this.pickles.has(name)) this.pickles.set(name, pickle);
  }

  /** Undefined when no worker has reported the type. */
  pickleOf(name: string | undefined): unknown {
    return name === undefined ? undefined : this.pickles.get(name);
  }
}

/** A text field. @throws YardmasterError `ERR_PROTOCOL` naming the field */
export function textIn(message: Fields, field: string): string {
  const value = message[field];
  if (typeof value === 'string') return value;
  throw wrong(field, 'a text', value);
}

/** A number field, whichever type Python gave it; undefined when it is missing or None. */
export function numberIn(message: Fields, field: string): number | undefined {
  const value = message[field];
  if (value === undefined || value === null) return undefined;
  const number = toNumber(value);
  if (number === undefined) throw wrong(field, 'a number', value);
  return number;
}

/** A list (tuple, list or set) field as an array; undefined when it is missing or None. */
export function listIn(message: Fields, field: string): readonly unknown[] | undefined {
  const value = message[field];
  if (value === undefined || value === null) return undefined;
  const list = asList(value);
  if (list === undefined) throw wrong(field, 'a list', value);
  return list;
}

/** A list, tuple or set of Python; undefined when it is none. */
export function asList(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value as readonly unknown[];
  return value instanceof Set ? [...(value as Set<unknown>)] : undefined;
}

/** The entries of a dict of Python, whatever its keys are. Empty for None and what is no dict. */
export function entriesOf(value: unknown): readonly (readonly [key: unknown, value: unknown])[] {
  if (value instanceof Map) return [...(value as Map<unknown, unknown>)];
  return isFields(value) ? Object.entries(value) : [];
}

/** The fields without those of these names. */
export function omit(fields: Fields, ...names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** True when it is a dict with text keys. */
export function isFields(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Numbers of a dict by name; others are left out. */
export function amountsOf(value: unknown): Record<string, number> {
  const amounts: Record<string, number> = {};
  for (const [name, amount] of entriesOf(value)) {
    const number = toNumber(amount);
    if (typeof name === 'string' && number !== undefined) amounts[name] = number;
  }
  return amounts;
}

function wrong(field: string, what: string, got: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_PROTOCOL',
    `the field ${field} has to be ${what}, not ${got === null ? 'None' : typeof got}`,
    { field },
  );
}
