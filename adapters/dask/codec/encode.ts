import { YardmasterError } from '../../../core/api/index.ts';
import { isWellFormed } from '../../codecs/msgpack/plain-data.ts';
import { MsgpackExtension, Opaque } from './opaque.ts';
import { PyFloat } from './py-float.ts';

/** Deeper values are refused; Python's own packer stops at 511. */
const DEPTH_MAX = 500;
/** Up to this length a loop over the characters is faster than a call into Node. */
const SHORT_TEXT = 48;
const INITIAL_BYTES = 4096;

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
export class Encoder {
  private buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  private view = viewOf(this.buffer);
  private at = 0;
  private frames: Uint8Array[] = [];

  /** Shared memory; valid up to `length`, until the next write. */
  get bytes(): Uint8Array {
    return this.buffer;
  }

  /** Where the next value begins. */
  get length(): number {
    return this.at;
  }

  /** Frames of opaque values so far; frame 0 is not among them. */
  get frameCount(): number {
    return this.frames.length;
  }

  /** Copies what was written from this position on into separate memory. */
  copy(from: number): Uint8Array {
    const { buffer, byteOffset } = this.buffer;
    return new Uint8Array(buffer, byteOffset + from, this.at - from).slice();
  }

  /** Starts anew. @param at - number of bytes to leave free in front */
  reset(at: number): void {
    this.at = at;
    this.frames = [];
    if (this.buffer.length > KEPT_BYTES) {
      this.buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES);
      this.view = viewOf(this.buffer);
    }
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
      throw thrown;
    }
  }

  /** Appends bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.buffer.set(bytes, this.at);
    this.at += bytes.length;
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
        this.byte(value ? 0xc3 : 0xc2);
        return;
      case 'undefined':
        this.byte(0xc0);
        return;
      case 'object':
        if (value === null) this.byte(0xc0);
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
    if (depth >= DEPTH_MAX) throw refused(`a value nested deeper than ${DEPTH_MAX} levels`);
    const { constructor } = value;
    if (constructor === Object) this.fields(value as Fields, depth);
    else if (Array.isArray(value)) this.array(value, depth);
    else if (value instanceof Uint8Array) this.bin(value);
    else if (value instanceof Opaque) this.opaque(value);
    else if (value instanceof PyFloat) this.float(value.valueOf());
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
    this.header(length, 0x90, 16, 0xdc);
    for (let index = 0; index < length; index++) this.any(value[index], depth + 1);
  }

  private fields(value: Fields, depth: number): void {
    const start = this.at;
    this.byte(0x80);
    let count = 0;
    for (const name in value) {
      const field = value[name];
      if (field === undefined) continue;
      count++;
      this.text(name);
      this.any(field, depth + 1);
    }
    if (count < 16) this.buffer[start] = 0x80 | count;
    else this.widenHeader(start, count);
  }

  /**
   * Widens the header for the number of fields, which was not known when the header was written.
   */
  private widenHeader(start: number, count: number): void {
    const more = count < 0x10000 ? 2 : 4;
    this.reserve(more);
    this.buffer.copyWithin(start + 1 + more, start + 1, this.at);
    this.at += more;
    this.buffer[start] = more === 2 ? 0xde : 0xdf;
    if (more === 2) this.view.setUint16(start + 1, count);
    else this.view.setUint32(start + 1, count);
  }

  private map(value: ReadonlyMap<unknown, unknown>, depth: number): void {
    this.header(value.size, 0x80, 16, 0xde);
    for (const [key, item] of value) {
      this.any(key, depth + 1);
      this.any(item, depth + 1);
    }
  }

  private set(value: ReadonlySet<unknown>, depth: number): void {
    this.byte(0x82);
    this.text('__Set__');
    this.byte(0xc3);
    this.text('as-list');
    this.header(value.size, 0x90, 16, 0xdc);
    for (const item of value) this.any(item, depth + 1);
  }

  private opaque({ kind, header, frames }: Opaque): void {
    this.byte(0x81);
    this.text(kind === 'serialized' ? '__Serialized__' : '__Pickled__');
    this.number(1 + this.frames.length);
    this.frames.push(header);
    for (const frame of frames) this.frames.push(frame);
  }

  private extension({ type, data }: MsgpackExtension): void {
    const { length } = data;
    this.reserve(6);
    const fixed = FIXED_EXTENSIONS[length];
    if (fixed !== undefined) this.byte(fixed);
    else if (length < 0x100) this.length8(0xc7, length);
    else this.header(length, 0, 0, 0xc8);
    this.byte(type);
    this.raw(data);
  }

  private number(value: number): void {
    this.reserve(9);
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) this.float(value);
    else if (value >= 0) this.natural(value);
    else this.negative(value);
  }

  private float(value: number): void {
    this.reserve(9);
    this.buffer[this.at] = 0xcb;
    this.view.setFloat64(this.at + 1, value);
    this.at += 9;
  }

  private bigint(value: bigint): void {
    if (BigInt.asUintN(64, value) === value) this.code8(0xcf).setBigUint64(this.at - 8, value);
    else if (BigInt.asIntN(64, value) === value) this.code8(0xd3).setBigInt64(this.at - 8, value);
    else throw refused(`the integer ${value}, which needs more than 64 bits`);
  }

  private code8(code: number): DataView {
    this.reserve(9);
    this.buffer[this.at] = code;
    this.at += 9;
    return this.view;
  }

  private natural(value: number): void {
    const { buffer, view, at } = this;
    if (value < 0x80) {
      buffer[at] = value;
      this.at = at + 1;
    } else if (value < 0x100) {
      buffer[at] = 0xcc;
      buffer[at + 1] = value;
      this.at = at + 2;
    } else if (value < 0x10000) {
      buffer[at] = 0xcd;
      view.setUint16(at + 1, value);
      this.at = at + 3;
    } else if (value < 2 ** 32) {
      buffer[at] = 0xce;
      view.setUint32(at + 1, value);
      this.at = at + 5;
    } else {
      buffer[at] = 0xcf;
      view.setUint32(at + 1, value / 2 ** 32);
      view.setUint32(at + 5, value);
      this.at = at + 9;
    }
  }

  private negative(value: number): void {
    const { buffer, view, at } = this;
    if (value >= -0x20) {
      buffer[at] = value;
      this.at = at + 1;
    } else if (value >= -0x80) {
      buffer[at] = 0xd0;
      view.setInt8(at + 1, value);
      this.at = at + 2;
    } else if (value >= -0x8000) {
      buffer[at] = 0xd1;
      view.setInt16(at + 1, value);
      this.at = at + 3;
    } else if (value >= -(2 ** 31)) {
      buffer[at] = 0xd2;
      view.setInt32(at + 1, value);
      this.at = at + 5;
    } else {
      buffer[at] = 0xd3;
      view.setInt32(at + 1, Math.floor(value / 2 ** 32));
      view.setUint32(at + 5, value);
      this.at = at + 9;
    }
  }

  private text(text: string): void {
    if (text.length <= SHORT_TEXT && this.shortText(text)) return;
    const nbytes = Buffer.byteLength(text);
    if (nbytes !== text.length && !isWellFormed(text)) {
      throw refused(`the text ${JSON.stringify(text)}, which has half of a surrogate pair`);
    }
    if (nbytes >= 32 && nbytes < 0x100) this.length8(0xd9, nbytes);
    else this.header(nbytes, 0xa0, 32, 0xda);
    this.reserve(nbytes);
    this.at += this.buffer.write(text, this.at);
  }

  /** False, and nothing is written: it has characters beyond ASCII. */
  private shortText(text: string): boolean {
    const { length } = text;
    this.reserve(length + 2);
    const { buffer } = this;
    let at = this.at;
    if (length >= 32) buffer[at++] = 0xd9;
    buffer[at++] = length < 32 ? 0xa0 | length : length;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) return false;
      buffer[at++] = code;
    }
    this.at = at;
    return true;
  }

  private bin(value: Uint8Array): void {
    const { length } = value;
    if (length < 0x100) this.length8(0xc4, length);
    else this.header(length, 0, 0, 0xc5);
    this.raw(value);
  }

  private length8(code: number, length: number): void {
    this.reserve(2);
    this.buffer[this.at++] = code;
    this.buffer[this.at++] = length;
  }

  /**
   * @param short - code of the form whose length lies in the code itself, below `shortMax`
   * @param long - code of the form with 16 bits of length; the next one has 32
   */
  private header(length: number, short: number, shortMax: number, long: number): void {
    this.reserve(5);
    const { buffer, view, at } = this;
    if (length < shortMax) {
      buffer[at] = short | length;
      this.at = at + 1;
    } else if (length < 0x10000) {
      buffer[at] = long;
      view.setUint16(at + 1, length);
      this.at = at + 3;
    } else {
      if (length >= 2 ** 32) throw refused(`${length} bytes in one value; the limit is 2^32 - 1`);
      buffer[at] = long + 1;
      view.setUint32(at + 1, length);
      this.at = at + 5;
    }
  }

  private byte(byte: number): void {
    this.reserve(1);
    this.buffer[this.at++] = byte;
  }

  private reserve(nbytes: number): void {
    const needed = this.at + nbytes;
    if (needed <= this.buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.buffer.length));
    larger.set(this.buffer.subarray(0, this.at));
    this.buffer = larger;
    this.view = viewOf(larger);
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

type Fields = Readonly<Record<string, unknown>>;

const shared = new Encoder();

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function refused(what: string): YardmasterError {
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `${what} cannot be sent to a Dask peer: its messages hold plain data`,
  );
}
