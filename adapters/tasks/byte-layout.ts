/**
 * How a serialised value lies in memory. Small values are what V8 writes, which begins with the byte 0xff.
 * Large binary parts are kept out of that, so that each is copied once, to where it stays:
 *
 *     byte       1; 3: the last parts are not here, but memory that is shared within the process
 *     byte       1: an ArrayBuffer that is shared stands in the value by itself, not only under views; else 0
 *     16 bits    how many of the parts, the last ones, are of shared memory
 *     32 bits    the number of parts
 *     8 bytes    32 bits: how many of them, the first ones, are bare ArrayBuffers; 32 bits: bytes of
 *                what V8 wrote
 *     8 bytes    for each part: its length, as a double
 *     ...        what V8 wrote; then the parts, each at a multiple of 8
 *
 * A part of shared memory is the stretch of it that the value shows. Before the first such part is one that says,
 * as doubles, where the stretches begin.
 *
 * Numbers are little-endian.
 */
import { REFERRING_MARK } from '../../core/util/shared-memory.ts';

const MARK = 1;
const FIXED_BYTES = 16;
const ALIGNMENT = 8;

/** Binary parts of a value from this size on lie outside of what V8 writes. */
export const LARGE_PART_BYTES = 32 * 1024;

/** Where the parts of a serialised value are. */
export interface Layout {
  /** How many of the parts, the first ones, are bare ArrayBuffers. */
  readonly bufferCount: number;
  readonly headOffset: number;
  readonly headBytes: number;
  readonly parts: readonly { readonly offset: number; readonly nbytes: number }[];
  /** How many of the parts, the last ones, are of shared memory. */
  readonly sharedCount: number;
  /** Whether a shared ArrayBuffer stands in the value by itself. */
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
  /** How many of the parts, the first ones, are bare ArrayBuffers. */
  readonly bufferCount: number;
  /** How many of the parts, the last ones, are of shared memory. Default 0. */
  readonly sharedCount?: number;
}

/** The shared memory of a value that is written. */
export interface SharedParts {
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
export function fillIn(
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

/** Whether a value consists of pieces, according to its first bytes. */
export function isInPieces(bytes: Uint8Array): boolean {
  return bytes[0] === MARK || isReferring(bytes);
}

/** Whether parts of a value are shared memory that its bytes do not contain. */
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
