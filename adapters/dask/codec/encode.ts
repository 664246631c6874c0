import { YardmasterError } from '../../../core/api/index.ts';
import { MsgpackWriter, TooLarge } from '../../codecs/msgpack/encoder.ts';
import { MsgpackExtension, Opaque } from './opaque.ts';
import { PyFloat } from './py-float.ts';

/** Deeper values are refused; Python's own packer stops at 511. */
const DEPTH_MAX = 500;
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
    if (depth >= DEPTH_MAX) throw refused(`a value nested deeper than ${DEPTH_MAX} levels`);
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

type Fields = Readonly<Record<string, unknown>>;

const shared = new Encoder();

function refused(what: string): YardmasterError {
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `${what} cannot be sent to a Dask peer: its messages hold plain data`,
  );
}
