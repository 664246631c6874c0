import { YardmasterError } from '../../core/api/index.ts';
import { attachSharedMemory, REFERRING_MARK, sharedMemoryOf } from '../../core/util/bytes.ts';
import { refusalBytes } from './context.ts';

/**
 * Numbers, short texts, booleans, null, undefined, and short lists of these in a few bytes. V8's
 * serialisation, which all else goes through, costs microseconds for each value, however small. What
 * goes through it begins with other bytes (below).
 */
const UNDEFINED = 32;
const NULL = 33;
const TRUE = 34;
const FALSE = 35;
const INT32 = 36;
const FLOAT64 = 37;
/** Followed by the length, in one byte. Characters of one byte each: Latin-1. */
const TEXT = 38;
/** Plus the number of items. */
const LIST = 48;
const LIST_LENGTH_MAX = 8;

const TEXT_LENGTH_MAX = 64;
const BYTES_MAX = 1 + LIST_LENGTH_MAX * (TEXT_LENGTH_MAX + 2);
const LATIN1_MAX = 0xff;

const memory = new Uint8Array(BYTES_MAX);
const view = new DataView(memory.buffer);

/** The bytes of a small value; undefined for any other. */
export function writeSmall(value: unknown): Uint8Array | undefined {
  const end = Array.isArray(value) ? writeList(value) : writeItem(value, 0);
  return end < 0 ? undefined : memory.slice(0, end);
}

/** True when these are bytes of `writeSmall`. */
export function isSmall(bytes: Uint8Array): boolean {
  const [first = 255] = bytes;
  return first >= UNDEFINED && first <= LIST + LIST_LENGTH_MAX;
}

/** @throws RangeError when the bytes end too early or too late, or are not in this format */
export function readSmall(bytes: Uint8Array): unknown {
  const reader = new SmallReader(bytes);
  const value = reader.read();
  reader.end();
  return value;
}

/** The end of the value; -1 when it is not small. */
function writeList(list: readonly unknown[]): number {
  const { length } = list;
  if (length > LIST_LENGTH_MAX || Object.getPrototypeOf(list) !== Array.prototype) return -1;
  // Other properties than items would be lost.
  if (Object.keys(list).length !== length) return -1;
  memory[0] = LIST + length;
  let end = 1;
  for (const item of list) {
    end = writeItem(item, end);
    if (end < 0) return -1;
  }
  return end;
}

function writeItem(value: unknown, at: number): number {
  if (typeof value === 'number') return writeNumber(value, at);
  if (typeof value === 'string') return writeText(value, at);
  const kind = constantOf(value);
  memory[at] = kind;
  return kind < 0 ? -1 : at + 1;
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
  return at + 9;
}

function writeText(text: string, at: number): number {
  const { length } = text;
  if (length > TEXT_LENGTH_MAX) return -1;
  memory[at] = TEXT;
  memory[at + 1] = length;
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index);
    if (code > LATIN1_MAX) return -1;
    memory[at + 2 + index] = code;
  }
  return at + 2 + length;
}

class SmallReader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  read(): unknown {
    const kind = this.byte();
    if (kind < LIST) return this.item(kind);
    if (kind > LIST + LIST_LENGTH_MAX) throw broken();
    const list: unknown[] = [];
    for (let left = kind - LIST; left > 0; left--) list.push(this.item(this.byte()));
    return list;
  }

  end(): void {
    if (this.at !== this.bytes.length) throw broken();
  }

  private item(kind: number): unknown {
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
        return this.byte() | (this.byte() << 8) | (this.byte() << 16) | (this.byte() << 24);
      case FLOAT64:
        for (let index = 0; index < 8; index++) memory[index] = this.byte();
        return view.getFloat64(0, true);
      case TEXT:
        return this.text(this.byte());
      default:
        throw broken();
    }
  }

  private text(length: number): string {
    let text = '';
    for (let left = length; left > 0; left--) text += String.fromCharCode(this.byte());
    return text;
  }

  private byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw broken();
    return byte;
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
