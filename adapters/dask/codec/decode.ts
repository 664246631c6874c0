import { isUtf8 } from 'node:buffer';

import { YardmasterError } from '../../../core/api/index.ts';
import { MsgpackExtension, Opaque } from './opaque.ts';
import { PyFloat } from './py-float.ts';
import { Slab } from './slab.ts';
import { subFrameCount } from './skip.ts';

/** Deeper values are refused; Python's own packer stops at 511. */
const DEPTH_MAX = 512;

const CACHED_TEXT_MAX = 96;
const CACHED_TEXTS = 2048;

/**
 * Reads a message of Dask: frame 0 is msgpack, the others belong to the opaque values in it.
 *
 * Maps with only string keys become objects, others `Map`; sets `Set`; integral floats `PyFloat`; ints
 * beyond 2^53 `bigint`; nil `null`; bytes `Uint8Array`, which may be shared and must not be changed.
 *
 * @throws YardmasterError `ERR_FRAME` when it is not such a message
 */
export function decodeMessage(frames: readonly Uint8Array[]): unknown {
  return decoder.decode(frames);
}

/** Not re-entrant. */
class Decoder {
  private bytes: Buffer = EMPTY;
  private view: DataView = EMPTY_VIEW;
  private at = 0;
  private frames: readonly Uint8Array[] = [];
  private readonly slab = new Slab();
  private readonly texts = new Array<string>(CACHED_TEXTS).fill('');

  decode(frames: readonly Uint8Array[]): unknown {
    const [first] = frames;
    if (first === undefined) throw unreadable('it has no frame');
    const { buffer, byteOffset, byteLength } = first;
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.view = new DataView(buffer, byteOffset, byteLength);
    this.at = 0;
    this.frames = frames;
    try {
      const value = this.read(0);
      if (this.at === byteLength) return value;
      throw unreadable(`${byteLength - this.at} bytes follow its value`);
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      throw unreadable('it ends within a value', thrown);
    } finally {
      this.bytes = EMPTY; // Large frames shall not live on here.
      this.view = EMPTY_VIEW;
      this.frames = [];
    }
  }

  private read(depth: number): unknown {
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
        return this.slab.keep(this.take(this.length(code - 0xc4)));
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
        return this.readOther(code);
    }
  }

  private readOther(code: number): unknown {
    const { view, at } = this;
    switch (code) {
      case 0xca:
        this.at += 4;
        return floatOf(view.getFloat32(at));
      case 0xcb:
        this.at += 8;
        return floatOf(view.getFloat64(at));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.length(code - 0xcc);
      case 0xcf:
        this.at += 8;
        return exact(view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4), view, at, false);
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
        return exact(view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4), view, at, true);
      default:
        return this.readExtension(code);
    }
  }

  private readExtension(code: number): MsgpackExtension {
    let nbytes: number;
    if (code >= 0xd4 && code <= 0xd8) nbytes = 1 << (code - 0xd4);
    else if (code >= 0xc7 && code <= 0xc9) nbytes = this.length(code - 0xc7);
    else throw unreadable(`the type 0x${code.toString(16)} does not exist in msgpack`);
    const type = this.view.getInt8(this.at++);
    return new MsgpackExtension(type, this.slab.keep(this.take(nbytes)));
  }

  private readArray(length: number, depth: number): unknown[] {
    this.checkCount(length, depth);
    const value: unknown[] = [];
    for (let index = 0; index < length; index++) value.push(this.read(depth + 1));
    return value;
  }

  private readMap(count: number, depth: number): unknown {
    this.checkCount(2 * count, depth);
    const value: Record<string, unknown> = {};
    let isSpecial = false;
    for (let index = 0; index < count; index++) {
      const code = this.view.getUint8(this.at);
      if (code < 0xa0 || (code > 0xbf && code < 0xd9) || code > 0xdb) {
        return this.readOtherMap(value, count - index, depth);
      }
      this.at++;
      const name = this.readText(code < 0xc0 ? code & 0x1f : this.length(code - 0xd9));
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
    const count = subFrameCount(header);
    if (!(count >= 0 && offset + 1 + count <= this.frames.length)) {
      throw unreadable(
        `the sub-header in frame ${offset} of ${this.frames.length} announces ${count} frames`,
      );
    }
    const frames: Uint8Array[] = [];
    for (let index = 1; index <= count; index++) {
      frames.push(this.slab.keep(this.frames[offset + index] as Uint8Array));
    }
    return new Opaque(kind, this.slab.keep(header), frames);
  }

  /** No container has more items than its frame has bytes, so a false count allocates nothing. */
  private checkCount(count: number, depth: number): void {
    if (depth >= DEPTH_MAX) throw unreadable(`it is nested deeper than ${DEPTH_MAX} levels`);
    if (count > this.bytes.length - this.at) throw unreadable('it ends within a value');
  }

  private readText(length: number): string {
    const { bytes, at } = this;
    this.skip(length);
    if (length === 0) return '';
    if (length > CACHED_TEXT_MAX) return textOf(bytes, at, length);
    const place = placeOf(bytes, at, length);
    const known = this.texts[place] as string;
    if (isSame(known, bytes, at, length)) return known;
    const text = textOf(bytes, at, length);
    this.texts[place] = text;
    return text;
  }

  private take(length: number): Uint8Array {
    const { bytes, at } = this;
    this.skip(length);
    return new Uint8Array(bytes.buffer, bytes.byteOffset + at, length);
  }

  private skip(length: number): void {
    this.at += length;
    if (this.at > this.bytes.length) throw unreadable('it ends within a value');
  }

  /** @param size - 0, 1, 2 for 8, 16, 32 bits */
  private length(size: number): number {
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
}

const EMPTY = Buffer.alloc(0);
const EMPTY_VIEW = new DataView(new ArrayBuffer(0));
const UNDERSCORE = 0x5f;

const decoder = new Decoder();

function floatOf(value: number): number | PyFloat {
  return Number.isInteger(value) ? new PyFloat(value) : value;
}

/** @param value - what the eight bytes at `at` mean, if a number can hold it */
function exact(value: number, view: DataView, at: number, isSigned: boolean): number | bigint {
  if (Number.isSafeInteger(value)) return value;
  return isSigned ? view.getBigInt64(at) : view.getBigUint64(at);
}

function setOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function textOf(bytes: Buffer, at: number, length: number): string {
  const text = bytes.toString('utf8', at, at + length);
  if (text.includes('\uFFFD') && !isUtf8(bytes.subarray(at, at + length))) {
    throw unreadable('it has a text that is not UTF-8');
  }
  return text;
}

function placeOf(bytes: Uint8Array, at: number, length: number): number {
  const end = at + length;
  let hash = length;
  hash = hash * 31 + (bytes[at] as number);
  hash = hash * 31 + (bytes[at + (length >> 1)] as number);
  hash = hash * 31 + (bytes[end - (length > 2 ? 3 : 1)] as number);
  hash = hash * 31 + (bytes[end - (length > 1 ? 2 : 1)] as number);
  return (hash * 31 + (bytes[end - 1] as number)) % CACHED_TEXTS;
}

/** Only ever true for ASCII: other texts have fewer characters than bytes. */
function isSame(text: string, bytes: Uint8Array, at: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = length - 1; index >= 0; index--) {
    if (text.charCodeAt(index) !== bytes[at + index]) return false;
  }
  return true;
}

function unreadable(why: string, cause?: unknown): YardmasterError {
  return new YardmasterError('ERR_FRAME', `a message cannot be read: ${why}`, {}, { cause });
}
