import { CONTAINER_VALUES } from '../../../core/api/index.ts';
import { DEPTH_MAX, isUnsafeInteger } from './plain-data.ts';

/** Longer texts are seldom repeated. */
const CACHED_TEXT_MAX = 100;
const CACHED_TEXTS = 512;

/** Why bytes are not one value of plain data. */
export class Unreadable extends Error {}

/**
 * Reads plain data from msgpack. Our own, because it checks, copies byte arrays out of the frame, and
 * finds repeated texts (names of fields, addresses, modules) again instead of making them anew, all
 * in the pass that reads.
 *
 * Not re-entrant.
 */
export class Decoder {
  private bytes: Buffer = Buffer.alloc(0);
  private view = new DataView(this.bytes.buffer);
  private at = 0;
  private isOwned = false;
  /** Values that may still be read. */
  private valuesLeft = Infinity;
  /** Texts that came lately, each in the place that its bytes lead to. */
  private readonly texts = new Array<string>(CACHED_TEXTS).fill('');

  /**
   * @param isOwned - a byte array that fills most of the buffer may stay in it
   * @param valuesMax - as {@link IncomingLimits.valuesMax}
   * @throws Unreadable
   */
  decode(
    { buffer, byteOffset, byteLength }: Uint8Array,
    isOwned: boolean,
    valuesMax = Infinity,
  ): unknown {
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.view = new DataView(buffer, byteOffset, byteLength);
    this.at = 0;
    this.isOwned = isOwned;
    this.valuesLeft = valuesMax;
    try {
      const value = this.read(0);
      if (this.at === byteLength) return value;
      throw new Unreadable(`is not msgpack: it has ${byteLength - this.at} bytes after its value`);
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      throw new Unreadable('is not msgpack: it ends within a value');
    } finally {
      this.bytes = EMPTY; // Large frames shall not live on here.
      this.view = EMPTY_VIEW;
    }
  }

  private read(depth: number): unknown {
    const code = this.view.getUint8(this.at++);
    if (code < 0x80) return code;
    if (code >= 0xe0) return code - 0x100;
    if (code < 0x90) return this.readFields(code & 0x0f, depth);
    if (code < 0xa0) return this.readArray(code & 0x0f, depth);
    if (code < 0xc0) return this.readText(code & 0x1f);
    switch (code) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
        return this.readBytes(this.length8());
      case 0xc5:
        return this.readBytes(this.length16());
      case 0xc6:
        return this.readBytes(this.length32());
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.readText(this.textLength(code));
      case 0xdc:
        return this.readArray(this.length16(), depth);
      case 0xdd:
        return this.readArray(this.length32(), depth);
      case 0xde:
        return this.readFields(this.length16(), depth);
      case 0xdf:
        return this.readFields(this.length32(), depth);
      default:
        return this.readNumber(code);
    }
  }

  private readNumber(code: number): number {
    const { view, at } = this;
    switch (code) {
      case 0xca:
        this.at += 4;
        return checked(view.getFloat32(at));
      case 0xcb:
        this.at += 8;
        return checked(view.getFloat64(at));
      case 0xcc:
        return this.length8();
      case 0xcd:
        return this.length16();
      case 0xce:
        return this.length32();
      case 0xcf:
        this.at += 8;
        return checked(view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4));
      case 0xd0:
        this.at += 1;
        return view.getInt8(at);
      case 0xd1:
        this.at += 2;
        return view.getInt16(at);
      case 0xd2:
        this.at += 4;
        return view.getInt32(at);
      case 0xd3:
        this.at += 8;
        return checked(view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4));
      default:
        throw new Unreadable(
          `is not msgpack: the type 0x${code.toString(16)} is not part of the protocol`,
        );
    }
  }

  private readArray(length: number, depth: number): unknown[] {
    this.checkCount(length, depth);
    const value: unknown[] = [];
    for (let index = 0; index < length; index++) value.push(this.read(depth + 1));
    return value;
  }

  private readFields(count: number, depth: number): Record<string, unknown> {
    this.checkCount(2 * count, depth);
    const value: Record<string, unknown> = {};
    for (let index = 0; index < count; index++) {
      const code = this.view.getUint8(this.at++);
      if (code < 0xa0 || (code > 0xbf && code < 0xd9) || code > 0xdb) {
        throw new Unreadable('is not msgpack: a map has a key that is not a string');
      }
      const name = this.readText(code < 0xc0 ? code & 0x1f : this.textLength(code));
      if (name === '__proto__') throw new Unreadable('has a field of the name __proto__');
      value[name] = this.read(depth + 1);
    }
    return value;
  }

  /**
   * No container has more items than its frame has bytes, so a false header allocates nothing. The budget of
   * values bounds memory and time where the values are small.
   */
  private checkCount(count: number, depth: number): void {
    this.valuesLeft -= count + CONTAINER_VALUES;
    if (this.valuesLeft < 0) throw new Unreadable('has more values than this side accepts at once');
    if (depth > DEPTH_MAX)
      throw new Unreadable(`has values nested deeper than ${DEPTH_MAX} levels`);
    if (count <= this.bytes.length - this.at) return;
    throw new Unreadable('is not msgpack: it ends within a value');
  }

  private readText(length: number): string {
    const { bytes, at } = this;
    this.skip(length);
    if (length > CACHED_TEXT_MAX || length === 0) return bytes.toString('utf8', at, at + length);
    const place = placeOf(bytes, at, length);
    const known = this.texts[place] as string;
    if (isSame(known, bytes, at, length)) return known;
    const text = bytes.toString('utf8', at, at + length);
    this.texts[place] = text;
    return text;
  }

  private readBytes(length: number): Uint8Array {
    const { bytes, at } = this;
    this.skip(length);
    const { buffer, byteOffset } = bytes;
    const part = new Uint8Array(buffer, byteOffset + at, length);
    return this.isOwned && 2 * length > buffer.byteLength ? part : part.slice();
  }

  private skip(length: number): void {
    this.at += length;
    if (this.at > this.bytes.length) throw new Unreadable('is not msgpack: it ends within a value');
  }

  private textLength(code: number): number {
    return code === 0xd9 ? this.length8() : code === 0xda ? this.length16() : this.length32();
  }

  private length8(): number {
    return this.view.getUint8(this.at++);
  }

  private length16(): number {
    const { at } = this;
    this.at += 2;
    return this.view.getUint16(at);
  }

  private length32(): number {
    const { at } = this;
    this.at += 4;
    return this.view.getUint32(at);
  }
}

const EMPTY = Buffer.alloc(0);
const EMPTY_VIEW = new DataView(new ArrayBuffer(0));

function checked(value: number): number {
  if (isUnsafeInteger(value)) throw new Unreadable(`has the integer ${value}, beyond ±2^53`);
  return value;
}

function placeOf(bytes: Uint8Array, at: number, length: number): number {
  const first = bytes[at] as number;
  const middle = bytes[at + (length >> 1)] as number;
  const last = bytes[at + length - 1] as number;
  return (((first * 31 + middle) * 31 + last) * 31 + length) % CACHED_TEXTS;
}

/** Only ever true for ASCII: other texts have fewer characters than bytes. */
function isSame(text: string, bytes: Uint8Array, at: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = 0; index < length; index++) {
    if (text.charCodeAt(index) !== bytes[at + index]) return false;
  }
  return true;
}
