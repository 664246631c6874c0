import { YardmasterError } from '../../../core/api/index.ts';

const FIELD = Buffer.from('num-sub-frames');
const DEPTH_MAX = 512;

/**
 * How many frames belong to a sub-header. Nothing else in it is read: it may hold a pickle of many
 * megabytes.
 * @throws YardmasterError `ERR_FRAME` when it is not a map of msgpack with that field
 */
export function subFrameCount(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const code = view.getUint8(0);
    const isFixed = code >= 0x80 && code <= 0x8f;
    let at = isFixed ? 1 : code === 0xde ? 3 : 5;
    if (!isFixed && code !== 0xde && code !== 0xdf) throw unreadable('is not a map');
    let count = isFixed ? code & 0x0f : code === 0xde ? view.getUint16(1) : view.getUint32(1);
    for (; count > 0; count--) {
      const nameEnd = skipValue(view, at);
      if (isField(bytes, at, nameEnd)) return naturalAt(view, nameEnd);
      at = skipValue(view, nameEnd);
    }
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw unreadable('ends within a value');
  }
  throw unreadable('lacks the field num-sub-frames');
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
  throw unreadable('has a num-sub-frames that is not a natural number');
}

/** @returns where the value at `at` ends */
function skipValue(view: DataView, at: number, depth = 0): number {
  if (depth > DEPTH_MAX) throw unreadable(`is nested deeper than ${DEPTH_MAX} levels`);
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
  if (end > view.byteLength) throw unreadable('ends within a value');
  return end;
}

function invalid(code: number): never {
  throw unreadable(`has the type 0x${code.toString(16)}, which does not exist in msgpack`);
}

function unreadable(why: string): YardmasterError {
  return new YardmasterError('ERR_FRAME', `the sub-header of an opaque value ${why}`);
}
