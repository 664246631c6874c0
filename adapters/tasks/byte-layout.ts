/**
 * How a serialised value lies in memory. Small values are what V8 writes, which begins with the byte 0xff.
 * Large binary parts are kept out of that, so that each is copied once, to where it stays:
 *
 *     byte       1
 *     7 bytes    padding and, as 32 bits, the number of parts
 *     8 bytes    32 bits: how many of them, the first ones, are bare ArrayBuffers; 32 bits: bytes of
 *                what V8 wrote
 *     8 bytes    for each part: its length, as a double
 *     ...        what V8 wrote; then the parts, each at a multiple of 8
 *
 * Numbers are little-endian.
 */

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
  /** Of everything. */
  readonly nbytes: number;
}

/** A value in two pieces: what V8 wrote, and its large binary parts. */
export interface Pieces {
  readonly head: Uint8Array;
  readonly parts: readonly Uint8Array[];
  /** How many of the parts, the first ones, are bare ArrayBuffers. */
  readonly bufferCount: number;
}

/** Puts the pieces together in memory that is given. */
export function assemble(
  { head, parts, bufferCount }: Pieces,
  allocate: (nbytes: number) => Uint8Array,
): Uint8Array {
  const sizes = parts.map((part) => part.byteLength);
  const layout = layoutOf(head.byteLength, sizes, bufferCount);
  const bytes = allocate(layout.nbytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, layout.headOffset);
  view.setUint8(0, MARK);
  view.setUint32(4, parts.length, true);
  view.setUint32(8, bufferCount, true);
  view.setUint32(12, head.byteLength, true);
  sizes.forEach((nbytes, index) => view.setFloat64(FIXED_BYTES + 8 * index, nbytes, true));
  bytes.set(head, layout.headOffset);
  layout.parts.forEach(({ offset }, index) => bytes.set(parts[index] as Uint8Array, offset));
  return bytes;
}

/** Whether a value consists of pieces, according to its first bytes. */
export function isInPieces(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
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
  return layoutOf(view.getUint32(12, true), sizes, view.getUint32(8, true));
}

function layoutOf(headBytes: number, sizes: readonly number[], bufferCount: number): Layout {
  const headOffset = FIXED_BYTES + 8 * sizes.length;
  let offset = headOffset + headBytes;
  const parts = sizes.map((nbytes) => {
    const aligned = Math.ceil(offset / ALIGNMENT) * ALIGNMENT;
    offset = aligned + nbytes;
    return { offset: aligned, nbytes };
  });
  return { bufferCount, headOffset, headBytes, parts, nbytes: offset };
}
