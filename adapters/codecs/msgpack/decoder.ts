import { CONTAINER_VALUES } from '../../../core/api/index.ts';
import { FOREIGN_TYPE, type ForeignValues } from './encoder.ts';
import { DEPTH_MAX, isUnsafeInteger } from './plain-data.ts';

/** Longer texts are seldom repeated. */
const CACHED_TEXT_MAX = 100;

/**
 * Reads values of msgpack. Our own, because it checks, and finds repeated texts (names of fields,
 * addresses, modules) again instead of making them anew, all in the pass that reads. What a map, a
 * byte array or a number becomes is for the subclass to say.
 *
 * Not re-entrant.
 */
export abstract class MsgpackReader {
  protected bytes: Buffer = EMPTY;
  protected view: DataView = EMPTY_VIEW;
  protected at = 0;
  /** Values that may still be read, counted as {@link IncomingLimits.valuesMax} says. */
  private valuesLeft = Infinity;
  /** Texts that came lately, each in the place that its bytes lead to. */
  private readonly texts: string[];

  /**
   * @param depthMax - levels of nesting that are read
   * @param cachedTexts - texts that are remembered; a power of two
   */
  constructor(
    private readonly depthMax: number,
    cachedTexts: number,
  ) {
    this.texts = new Array<string>(cachedTexts).fill('');
  }

  /** The one value that the bytes are. @param valuesMax - as {@link IncomingLimits.valuesMax} */
  protected readAll({ buffer, byteOffset, byteLength }: Uint8Array, valuesMax: number): unknown {
    this.valuesLeft = valuesMax;
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.view = new DataView(buffer, byteOffset, byteLength);
    this.at = 0;
    try {
      const value = this.read(0);
      if (this.at === byteLength) return value;
      throw this.unreadable(`it has ${byteLength - this.at} bytes after its value`);
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      throw this.unreadable('it ends within a value', thrown);
    } finally {
      this.bytes = EMPTY; // Large frames shall not live on here.
      this.view = EMPTY_VIEW;
    }
  }

  protected abstract readMap(count: number, depth: number): unknown;
  protected abstract readBytes(length: number): unknown;
  /** A value of a type that JSON does not have. */
  protected abstract readExtension(code: number): unknown;
  protected abstract float(value: number): unknown;
  /**
   * An integer of 64 bits, the last ones that were read.
   * @param value - the same, if a number can hold it
   */
  protected abstract wideInteger(value: number, isSigned: boolean): unknown;
  protected abstract text(bytes: Buffer, at: number, length: number): string;
  /** @param why - what is wrong with the bytes: "it ends within a value" */
  protected abstract unreadable(why: string, cause?: unknown): Error;

  protected read(depth: number): unknown {
    const code = this.view.getUint8(this.at++);
    if (code < 0x80) return code;
    if (code >= 0xe0) return code - 0x100;
    if (code < 0x90) return this.readMap(code & 0x0f, depth);
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
      case 0xc5:
      case 0xc6:
        return this.readBytes(this.length(code - 0xc4));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.readText(this.length(code - 0xd9));
      case 0xdc:
      case 0xdd:
        return this.readArray(this.length(code - 0xdb), depth);
      case 0xde:
      case 0xdf:
        return this.readMap(this.length(code - 0xdd), depth);
      default:
        return this.readNumber(code);
    }
  }

  /** The text that follows; undefined, and nothing is read, when something else does. */
  protected readName(): string | undefined {
    const code = this.view.getUint8(this.at);
    if (code < 0xa0 || (code > 0xbf && code < 0xd9) || code > 0xdb) return undefined;
    this.at++;
    return this.readText(code < 0xc0 ? code & 0x1f : this.length(code - 0xd9));
  }

  /** The budget of values bounds memory and time where the values are small. */
  protected spend(values: number): void {
    this.valuesLeft -= values;
    if (this.valuesLeft < 0) {
      throw this.unreadable('it has more values than this side accepts at once');
    }
  }

  /** No container has more items than its frame has bytes, so a false header allocates nothing. */
  protected checkCount(count: number, depth: number): void {
    this.spend(count + CONTAINER_VALUES);
    if (depth > this.depthMax) {
      throw this.unreadable(`it is nested deeper than ${this.depthMax} levels`);
    }
    if (count > this.bytes.length - this.at) throw this.unreadable('it ends within a value');
  }

  protected take(length: number): Uint8Array {
    const { bytes, at } = this;
    this.skip(length);
    return new Uint8Array(bytes.buffer, bytes.byteOffset + at, length);
  }

  /** @param size - 0, 1, 2 for 8, 16, 32 bits */
  protected length(size: number): number {
    const { view, at } = this;
    if (size === 0) {
      this.at = at + 1;
      return view.getUint8(at);
    }
    if (size === 1) {
      this.at = at + 2;
      return view.getUint16(at);
    }
    this.at = at + 4;
    return view.getUint32(at);
  }

  private readNumber(code: number): unknown {
    const { view, at } = this;
    switch (code) {
      case 0xca:
        this.at += 4;
        return this.float(view.getFloat32(at));
      case 0xcb:
        this.at += 8;
        return this.float(view.getFloat64(at));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.length(code - 0xcc);
      case 0xcf:
        this.at += 8;
        return this.wideInteger(view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4), false);
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
        return this.wideInteger(view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4), true);
      default:
        return this.readExtension(code);
    }
  }

  private readArray(length: number, depth: number): unknown[] {
    this.checkCount(length, depth);
    const value: unknown[] = [];
    for (let index = 0; index < length; index++) value.push(this.read(depth + 1));
    return value;
  }

  private readText(length: number): string {
    const { bytes, at } = this;
    this.skip(length);
    if (length === 0) return '';
    if (length > CACHED_TEXT_MAX) return this.text(bytes, at, length);
    const { texts } = this;
    const place = hashOf(bytes, at, length) & (texts.length - 1);
    const known = texts[place] as string;
    if (isSame(known, bytes, at, length)) return known;
    const text = this.text(bytes, at, length);
    texts[place] = text;
    return text;
  }

  private skip(length: number): void {
    this.at += length;
    if (this.at > this.bytes.length) throw this.unreadable('it ends within a value');
  }
}

const EMPTY = Buffer.alloc(0);
const EMPTY_VIEW = new DataView(new ArrayBuffer(0));

/** Of some of the bytes: keys that are numbered differ in the last ones. */
function hashOf(bytes: Uint8Array, at: number, length: number): number {
  const end = at + length;
  let hash = length;
  hash = hash * 31 + (bytes[at] as number);
  hash = hash * 31 + (bytes[at + (length >> 1)] as number);
  hash = hash * 31 + (bytes[end - (length > 2 ? 3 : 1)] as number);
  hash = hash * 31 + (bytes[end - (length > 1 ? 2 : 1)] as number);
  return hash * 31 + (bytes[end - 1] as number);
}

/** Only ever true for ASCII: other texts have fewer characters than bytes. */
function isSame(text: string, bytes: Uint8Array, at: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = length - 1; index >= 0; index--) {
    if (text.charCodeAt(index) !== bytes[at + index]) return false;
  }
  return true;
}

/** Why bytes are not one value of plain data. */
export class Unreadable extends Error {}

const CACHED_TEXTS = 512;

/** Reads plain data, and copies byte arrays out of the frame. */
export class Decoder extends MsgpackReader {
  private isOwned = false;

  /** @param foreign - reads values of another protocol. Default: they are refused */
  constructor(private readonly foreign?: ForeignValues) {
    super(DEPTH_MAX, CACHED_TEXTS);
  }

  /**
   * @param isOwned - a byte array that fills most of the buffer may stay in it
   * @param valuesMax - as {@link IncomingLimits.valuesMax}
   * @throws Unreadable
   */
  decode(bytes: Uint8Array, isOwned: boolean, valuesMax = Infinity): unknown {
    this.isOwned = isOwned;
    return this.readAll(bytes, valuesMax);
  }

  protected readMap(count: number, depth: number): Record<string, unknown> {
    this.checkCount(2 * count, depth);
    const value: Record<string, unknown> = {};
    for (let index = 0; index < count; index++) {
      const name = this.readName();
      if (name === undefined) throw this.unreadable('a map has a key that is not a string');
      if (name === '__proto__') throw this.unreadable('it has a field of the name __proto__');
      value[name] = this.read(depth + 1);
    }
    return value;
  }

  protected readBytes(length: number): Uint8Array {
    const part = this.take(length);
    return this.isOwned && 2 * length > part.buffer.byteLength ? part : part.slice();
  }

  protected readExtension(code: number): unknown {
    if (this.foreign !== undefined && code === 0xc9) {
      const length = this.length(2);
      if (this.view.getUint8(this.at++) === FOREIGN_TYPE) {
        return this.foreign.read(this.take(length).slice());
      }
    }
    throw this.unreadable(`the type 0x${code.toString(16)} is not part of it`);
  }

  protected float(value: number): number {
    if (isUnsafeInteger(value)) throw this.unreadable(`it has the integer ${value}, beyond ±2^53`);
    return value;
  }

  protected wideInteger(value: number): number {
    return this.float(value);
  }

  protected text(bytes: Buffer, at: number, length: number): string {
    return bytes.toString('utf8', at, at + length);
  }

  protected unreadable(why: string): Unreadable {
    return new Unreadable(`is not msgpack of this protocol: ${why}`);
  }
}
