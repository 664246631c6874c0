import { types } from 'node:util';
import { YardmasterError } from '../../core/api/index.ts';
import { attachSharedMemory, REFERRING_MARK, sharedMemoryOf } from '../../core/util/bytes.ts';
import { isWellFormed } from '../codecs/msgpack.ts';
import { refusalBytes } from './context.ts';

/** Upper bound of the bytes of a small value. */
export const SMALL_BYTES_MAX = 960;

/**
 * Numbers, texts, booleans, null, undefined, and plain objects and lists of these, all of it in a few hundred bytes. V8's
 * serialisation, which all else goes through, makes an object of the engine for each value, which costs microseconds. What
 * goes through it begins with other bytes (below).
 */
const UNDEFINED = 32;
const NULL = 33;
const TRUE = 34;
const FALSE = 35;
const INT32 = 36;
const FLOAT64 = 37;
/** Followed by the number of bytes, in two bytes, and UTF-8. */
const TEXT = 38;
/** Plus the number of items. */
const LIST = 48;
/** Plus the number of properties: a text and a value each. */
const OBJECT = 64;
const LENGTH_MAX = 15;
const DEPTH_MAX = 4;
const TEXT_LENGTH_MAX = 256;
const NUMBER_BYTES = 9;
const UTF8_MAX = 3;

/** Longer texts are written with one call into Node. */
const SHORT_TEXT = 12;

const memory = new Uint8Array(SMALL_BYTES_MAX);
const view = new DataView(memory.buffer);
const texts = Buffer.from(memory.buffer);
/** Holds the bytes that are read: Node reads texts from a Buffer alone. */
const source = Buffer.from(new ArrayBuffer(SMALL_BYTES_MAX));
const sourceView = new DataView(source.buffer);
/** The containers in what is written. */
const written: object[] = [];
let isWriting = false;

/** The bytes of a small value; undefined for any other. */
export function writeSmall(value: unknown): Uint8Array | undefined {
  // A getter in the value may come here again.
  if (isWriting) return undefined;
  isWriting = true;
  let end = -1;
  try {
    end = writeItem(value, 0, 0);
  } catch {
    // V8 meets the same getter, and says so.
  }
  isWriting = false;
  written.length = 0;
  return end < 0 ? undefined : memory.slice(0, end);
}

/** True when these are bytes of `writeSmall`. */
export function isSmall(bytes: Uint8Array): boolean {
  const [first = 255] = bytes;
  return first >= UNDEFINED && first <= OBJECT + LENGTH_MAX;
}

/** @throws RangeError when the bytes end too early or too late, or are not in this format */
export function readSmall(bytes: Uint8Array): unknown {
  const reader = new SmallReader(bytes);
  const value = reader.read();
  reader.end();
  return value;
}

/** The end of the value; -1 when it is not small. */
function writeItem(value: unknown, at: number, depth: number): number {
  if (at + NUMBER_BYTES > SMALL_BYTES_MAX) return -1;
  if (typeof value === 'number') return writeNumber(value, at);
  if (typeof value === 'string') return writeText(value, at);
  if (typeof value === 'object' && value !== null) return writeContainer(value, at, depth);
  const kind = constantOf(value);
  memory[at] = kind;
  return kind < 0 ? -1 : at + 1;
}

/** Of two places for one object V8 knows that it is one. */
function writeContainer(value: object, at: number, depth: number): number {
  if (depth === DEPTH_MAX || written.includes(value)) return -1;
  written.push(value);
  return Array.isArray(value) ? writeList(value, at, depth) : writeObject(value, at, depth);
}

function writeList(list: readonly unknown[], at: number, depth: number): number {
  const { length } = list;
  if (length > LENGTH_MAX || Object.getPrototypeOf(list) !== Array.prototype) return -1;
  // Other properties than items would be lost.
  if (Object.keys(list).length !== length) return -1;
  memory[at] = LIST + length;
  let end = at + 1;
  for (let index = 0; index < length && end >= 0; index++) {
    end = writeItem(list[index], end, depth + 1);
  }
  return end;
}

function writeObject(object: object, at: number, depth: number): number {
  if (Object.getPrototypeOf(object) !== Object.prototype || types.isProxy(object)) return -1;
  const names = Object.keys(object);
  if (names.length > LENGTH_MAX) return -1;
  memory[at] = OBJECT + names.length;
  let end = at + 1;
  for (const name of names) {
    if (name === '__proto__') return -1;
    end = writeText(name, end);
    if (end >= 0) end = writeItem((object as Record<string, unknown>)[name], end, depth + 1);
    if (end < 0) return -1;
  }
  return end;
}

function constantOf(value: unknown): number {
  if (value === undefined) return UNDEFINED;
  if (value === null) return NULL;
  if (value === true) return TRUE;
  return value === false ? FALSE : -1;
}

function writeNumber(value: number, at: number): number {
  if ((value | 0) === value && !Object.is(value, -0)) {
    memory[at] = INT32;
    view.setInt32(at + 1, value, true);
    return at + 5;
  }
  memory[at] = FLOAT64;
  view.setFloat64(at + 1, value, true);
  return at + NUMBER_BYTES;
}

function writeText(text: string, at: number): number {
  const { length } = text;
  if (length > TEXT_LENGTH_MAX || at + 3 + UTF8_MAX * length > SMALL_BYTES_MAX) return -1;
  let nbytes = length > SHORT_TEXT ? -1 : writeAscii(text, at + 3);
  if (nbytes < 0) nbytes = texts.write(text, at + 3);
  // Half of a surrogate pair has no bytes of its own.
  if (nbytes !== length && !isWellFormed(text)) return -1;
  memory[at] = TEXT;
  view.setUint16(at + 1, nbytes, true);
  return at + 3 + nbytes;
}

/** The number of bytes; -1 when it has other characters. */
function writeAscii(text: string, at: number): number {
  const { length } = text;
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > 0x7f) return -1;
    memory[at + index] = code;
  }
  return length;
}

class SmallReader {
  private at = 0;
  private readonly length: number;

  constructor(bytes: Uint8Array) {
    if (bytes.length > SMALL_BYTES_MAX) throw broken();
    source.set(bytes);
    this.length = bytes.length;
  }

  read(): unknown {
    const at = this.take(1);
    const kind = source[at] as number;
    if (kind >= OBJECT) return this.object(kind - OBJECT);
    if (kind >= LIST) return this.list(kind - LIST);
    switch (kind) {
      case UNDEFINED:
        return undefined;
      case NULL:
        return null;
      case TRUE:
        return true;
      case FALSE:
        return false;
      case INT32:
        return sourceView.getInt32(this.take(4), true);
      case FLOAT64:
        return sourceView.getFloat64(this.take(8), true);
      case TEXT:
        return this.text();
      default:
        throw broken();
    }
  }

  end(): void {
    if (this.at !== this.length) throw broken();
  }

  /**
   * An empty literal makes arrays of the most general kind that any before has become. Were it one for all lists, those
   * of numbers would hold an object for each number, and so would all that a task computes from them with `map`.
   */
  private list(length: number): unknown[] {
    const integers: unknown[] = [];
    while (integers.length < length && this.next === INT32) integers.push(this.read());
    if (integers.length === length) return integers;
    const numbers: unknown[] = integers.length === 0 ? [] : [...integers];
    while (numbers.length < length && (this.next === INT32 || this.next === FLOAT64)) {
      numbers.push(this.read());
    }
    if (numbers.length === length) return numbers;
    const list: unknown[] = numbers.length === 0 ? [] : [...numbers];
    while (list.length < length) list.push(this.read());
    return list;
  }

  private object(length: number): unknown {
    if (length > LENGTH_MAX) throw broken();
    const object: Record<string, unknown> = {};
    for (let left = length; left > 0; left--) {
      const name = this.read();
      if (typeof name !== 'string' || name === '__proto__') throw broken();
      object[name] = this.read();
    }
    return object;
  }

  /** The kind of the value that follows. */
  private get next(): number | undefined {
    return source[this.at];
  }

  private text(): string {
    const nbytes = sourceView.getUint16(this.take(2), true);
    const start = this.take(nbytes);
    return nbytes === 0 ? '' : source.toString('utf8', start, start + nbytes);
  }

  /** The place of the next bytes. */
  private take(nbytes: number): number {
    const { at } = this;
    this.at += nbytes;
    if (this.at > this.length) throw broken();
    return at;
  }
}

function broken(): RangeError {
  return new RangeError('the bytes of a small value do not fit its kind');
}

/** Number of the first shared ArrayBuffer in the bytes: it takes five bytes, as any that follows. */
export const FIRST_BARE_ID = 0xf000_0000;
/** Bits of the numbers of one attempt to write a value. */
const ATTEMPT_BITS = 16;
const COUNT_MAX = 2 ** ATTEMPT_BITS - 1;
/** The bytes that V8 writes before the number of a shared ArrayBuffer, and of one that was transferred. */
const SHARED_TAG = 0x75;
const TRANSFERRED_TAG = 0x74;
const ALIGNMENT = 8;

interface Stretch {
  start: number;
  end: number;
}

/** The shared memory of one value, and which stretch of each the value shows. */
export class SharedStretches implements SharedParts {
  readonly memories: SharedArrayBuffer[] = [];
  private readonly stretches = new Map<SharedArrayBuffer, Stretch>();
  private readonly bare = new Map<SharedArrayBuffer, number>();

  /** @param attempt - numbers differ from attempt to attempt */
  constructor(private readonly attempt: number) {}

  get isBare(): boolean {
    return this.bare.size > 0;
  }

  get starts(): Float64Array {
    return Float64Array.from(this.stretches.values(), ({ start }) => start);
  }

  get sizes(): number[] {
    return Array.from(this.stretches.values(), ({ start, end }) => end - start);
  }

  /** The value has a view of the memory. @returns the position of the memory in `memories` */
  addView(memory: SharedArrayBuffer, byteOffset: number, byteLength: number): number {
    const index = this.indexOf(memory);
    const stretch = this.stretches.get(memory) as Stretch;
    const start = byteOffset - (byteOffset % ALIGNMENT);
    const isFirst = stretch.end < 0;
    stretch.start = isFirst ? start : Math.min(stretch.start, start);
    stretch.end = Math.max(stretch.end, byteOffset + byteLength);
    return index;
  }

  /** It stands in the value by itself. @returns the number to be written */
  addBare(memory: SharedArrayBuffer): number {
    const index = this.addView(memory, 0, memory.byteLength);
    const id = FIRST_BARE_ID + (this.attempt << ATTEMPT_BITS) + index;
    this.bare.set(memory, index);
    return id;
  }

  /**
   * Has V8 read the shared ArrayBuffers as transferred ones, because Node's deserializer takes no others.
   * @returns false when other bytes of the value look the same: nothing is changed then
   */
  markBare(head: Uint8Array): boolean {
    const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
    const places: [at: number, index: number][] = [];
    for (const index of this.bare.values()) {
      const id = FIRST_BARE_ID + (this.attempt << ATTEMPT_BITS) + index;
      const pattern = Buffer.from([SHARED_TAG, ...varint(id)]);
      const at = bytes.indexOf(pattern);
      if (at < 0 || bytes.indexOf(pattern, at + 1) >= 0) return false;
      places.push([at, index]);
    }
    for (const [at, index] of places) {
      bytes.set([TRANSFERRED_TAG, ...varint(FIRST_BARE_ID + index)], at);
    }
    return true;
  }

  private indexOf(memory: SharedArrayBuffer): number {
    if (this.stretches.has(memory)) return this.memories.indexOf(memory);
    if (this.memories.length >= COUNT_MAX) throw new RangeError('too many shared memories');
    this.stretches.set(memory, { start: 0, end: -1 });
    return this.memories.push(memory) - 1;
  }
}

/**
 * Says which shared memory serialised bytes refer to, where they were written or have arrived from another thread.
 * @returns the bytes
 */
export function withSharedMemory(
  bytes: Uint8Array,
  memories: readonly SharedArrayBuffer[] | undefined,
): Uint8Array {
  if (memories === undefined) return bytes;
  const layout = readLayout(bytes) as Layout;
  attachSharedMemory(bytes, {
    memories,
    nbytes: layout.nbytes,
    copy: () => copied(bytes, layout, memories),
  });
  return bytes;
}

/** The shared memory that the bytes refer to, to be posted with them; undefined: none. */
export function memoriesOf(bytes: Uint8Array): readonly SharedArrayBuffer[] | undefined {
  return sharedMemoryOf(bytes)?.memories;
}

function copied(
  bytes: Uint8Array,
  layout: Layout,
  memories: readonly SharedArrayBuffer[],
): Uint8Array {
  if (layout.isBare) return refusalBytes(bareRefused());
  const starts = startsIn(layout, bytes);
  const sizes = layout.parts.slice(layout.parts.length - memories.length);
  const shared = memories.map(
    (memory, index) => new Uint8Array(memory, starts[index], sizes[index]?.nbytes),
  );
  return fillIn(bytes, layout, shared);
}

/** The positions at which the stretches of shared memory begin. */
function startsIn({ parts, sharedCount }: Layout, bytes: Uint8Array): Float64Array {
  const { offset, nbytes } = parts[parts.length - sharedCount - 1] as Layout['parts'][number];
  return readStarts(bytes.subarray(offset, offset + nbytes));
}

/** @param part - the one before those of shared memory */
export function readStarts(part: Uint8Array): Float64Array {
  return new Float64Array(Uint8Array.from(part).buffer);
}

function bareRefused(): YardmasterError {
  const kind = 'a SharedArrayBuffer';
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `the value has ${kind}, which only threads of one process can share, and was read in another process; use a typed array over it, which arrives there as a copy, or keep both tasks on one worker`,
    { kind },
  );
}

/** As V8 writes a number. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}

// How a serialised value lies in memory. Small values are what V8 writes, which begins with the byte 0xff.
// Large binary parts are kept out of that, so that each is copied once, to where it stays:
//
// byte       1; 3: the last parts are not here, but memory that is shared within the process
// byte       1: an ArrayBuffer that is shared stands in the value by itself, not only under views; else 0
// 16 bits    how many of the parts, the last ones, are of shared memory
// 32 bits    the number of parts
// 8 bytes    32 bits: how many of them, the first ones, are bare ArrayBuffers; 32 bits: bytes of
// what V8 wrote
// 8 bytes    for each part: its length, as a double
// ...        what V8 wrote; then the parts, each at a multiple of 8
//
// A part of shared memory is the stretch of it that the value shows. Before the first such part is one that says,
// as doubles, where the stretches begin.
//
// Numbers are little-endian.

const MARK = 1;
const FIXED_BYTES = 16;

/** Binary parts of a value from this size on lie outside of what V8 writes. */
export const LARGE_PART_BYTES = 32 * 1024;

/** The layout of the parts of a serialised value. */
export interface Layout {
  /** The number of parts, the first ones, that are bare ArrayBuffers. */
  readonly bufferCount: number;
  readonly headOffset: number;
  readonly headBytes: number;
  readonly parts: readonly { readonly offset: number; readonly nbytes: number }[];
  /** The number of parts, the last ones, that are of shared memory. */
  readonly sharedCount: number;
  /** True when a shared ArrayBuffer stands in the value by itself. */
  readonly isBare: boolean;
  /** Of everything. */
  readonly nbytes: number;
  /** Without the parts of shared memory. */
  readonly ownBytes: number;
}

/** A value in two pieces: what V8 wrote, and its large binary parts. */
export interface Pieces {
  readonly head: Uint8Array;
  readonly parts: readonly Uint8Array[];
  /** The number of parts, the first ones, that are bare ArrayBuffers. */
  readonly bufferCount: number;
  /** The number of parts, the last ones, that are of shared memory. Default 0. */
  readonly sharedCount?: number;
}

/** The shared memory of a value that is written. */
interface SharedParts {
  /** Bytes of each stretch. */
  readonly sizes: readonly number[];
  readonly isBare: boolean;
}

const NOTHING_SHARED: SharedParts = { sizes: [], isBare: false };

/** Puts the pieces together in memory that is given. */
export function assemble(
  { head, parts, bufferCount }: Pieces,
  allocate: (nbytes: number) => Uint8Array,
  shared: SharedParts = NOTHING_SHARED,
): Uint8Array {
  const sharedCount = shared.sizes.length;
  const sizes = [...parts.map((part) => part.byteLength), ...shared.sizes];
  const counts = { bufferCount, sharedCount, isBare: shared.isBare };
  const layout = layoutOf(head.byteLength, sizes, counts);
  const bytes = allocate(layout.ownBytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, layout.headOffset);
  view.setUint8(0, sharedCount === 0 ? MARK : REFERRING_MARK);
  view.setUint8(1, shared.isBare ? 1 : 0);
  view.setUint16(2, sharedCount, true);
  view.setUint32(4, sizes.length, true);
  view.setUint32(8, bufferCount, true);
  view.setUint32(12, head.byteLength, true);
  sizes.forEach((nbytes, index) => view.setFloat64(FIXED_BYTES + 8 * index, nbytes, true));
  bytes.set(head, layout.headOffset);
  parts.forEach((part, index) => bytes.set(part, layout.parts[index]?.offset));
  return bytes;
}

/** Puts the parts of shared memory, which are given, into bytes that refer to them. */
function fillIn(
  bytes: Uint8Array,
  { nbytes, parts, sharedCount }: Layout,
  shared: readonly Uint8Array[],
): Uint8Array {
  const whole = new Uint8Array(nbytes);
  whole.set(bytes);
  whole[0] = MARK;
  const first = parts.length - sharedCount;
  shared.forEach((part, index) => whole.set(part, parts[first + index]?.offset));
  return whole;
}

/** True when a value consists of pieces, according to its first bytes. */
export function isInPieces(bytes: Uint8Array): boolean {
  return bytes[0] === MARK || isReferring(bytes);
}

/** True when parts of a value are shared memory that its bytes do not contain. */
export function isReferring(bytes: Uint8Array): boolean {
  return bytes[0] === REFERRING_MARK;
}

/**
 * @param start - the first bytes of a value in pieces
 * @returns undefined when more bytes are needed
 */
export function readLayout(start: Uint8Array): Layout | undefined {
  if (start.byteLength < FIXED_BYTES) return undefined;
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  const count = view.getUint32(4, true);
  if (start.byteLength < FIXED_BYTES + 8 * count) return undefined;
  const sizes: number[] = [];
  for (let index = 0; index < count; index++) {
    sizes.push(view.getFloat64(FIXED_BYTES + 8 * index, true));
  }
  return layoutOf(view.getUint32(12, true), sizes, {
    bufferCount: view.getUint32(8, true),
    sharedCount: view.getUint16(2, true),
    isBare: view.getUint8(1) === 1,
  });
}

function layoutOf(
  headBytes: number,
  sizes: readonly number[],
  counts: Pick<Layout, 'bufferCount' | 'sharedCount' | 'isBare'>,
): Layout {
  const ownCount = sizes.length - counts.sharedCount;
  const headOffset = FIXED_BYTES + 8 * sizes.length;
  let offset = headOffset + headBytes;
  let ownBytes = offset;
  const parts = sizes.map((nbytes, index) => {
    const aligned = Math.ceil(offset / ALIGNMENT) * ALIGNMENT;
    offset = aligned + nbytes;
    if (index < ownCount) ownBytes = offset;
    return { offset: aligned, nbytes };
  });
  return { ...counts, headOffset, headBytes, parts, nbytes: offset, ownBytes };
}
