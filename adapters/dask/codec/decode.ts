import { isUtf8 } from 'node:buffer';

import { YardmasterError } from '../../../core/api/index.ts';
import { MsgpackReader } from '../../codecs/msgpack/decoder.ts';
import { MsgpackExtension, Opaque } from './opaque.ts';
import { PyFloat } from './py-float.ts';
import { Slab } from './slab.ts';
import { subFrameCount } from './skip.ts';

/** Deeper values are refused; Python's own packer stops at 511. */
const DEPTH_MAX = 511;

const CACHED_TEXTS = 2048;

/**
 * Reads a message of Dask: frame 0 is msgpack, the others belong to the opaque values in it.
 *
 * Maps with only string keys become objects, others `Map`; sets `Set`; integral floats `PyFloat`; ints
 * beyond 2^53 `bigint`; nil `null`; bytes `Uint8Array`, which may be shared and must not be changed.
 *
 * @param valuesMax - values that it may have; an object or array counts as `CONTAINER_VALUES` plus what is in it, an
 *   opaque value as its frames
 * @throws YardmasterError `ERR_FRAME` when it is not such a message
 */
export function decodeMessage(frames: readonly Uint8Array[], valuesMax = Infinity): unknown {
  return decoder.decode(frames, valuesMax);
}

/** Not re-entrant. */
class Decoder extends MsgpackReader {
  private frames: readonly Uint8Array[] = [];
  /** What the sub-headers that were named so far announce, by frame: each is read once. */
  private counts: number[] = [];
  private readonly slab = new Slab();

  constructor() {
    super(DEPTH_MAX, CACHED_TEXTS);
  }

  decode(frames: readonly Uint8Array[], valuesMax: number): unknown {
    const [first] = frames;
    if (first === undefined) throw unreadable('it has no frame');
    this.frames = frames;
    try {
      return this.readAll(first, valuesMax);
    } finally {
      this.frames = [];
      if (this.counts.length > 0) this.counts = [];
    }
  }

  protected readBytes(length: number): Uint8Array {
    return this.slab.keep(this.take(length));
  }

  protected readExtension(code: number): MsgpackExtension {
    let nbytes: number;
    if (code >= 0xd4 && code <= 0xd8) nbytes = 1 << (code - 0xd4);
    else if (code >= 0xc7 && code <= 0xc9) nbytes = this.length(code - 0xc7);
    else throw unreadable(`the type 0x${code.toString(16)} does not exist in msgpack`);
    const type = this.view.getInt8(this.at++);
    return new MsgpackExtension(type, this.slab.keep(this.take(nbytes)));
  }

  protected float(value: number): number | PyFloat {
    return Number.isInteger(value) ? new PyFloat(value) : value;
  }

  protected wideInteger(value: number, isSigned: boolean): number | bigint {
    if (Number.isSafeInteger(value)) return value;
    const { view, at } = this;
    return isSigned ? view.getBigInt64(at - 8) : view.getBigUint64(at - 8);
  }

  protected text(bytes: Buffer, at: number, length: number): string {
    const text = bytes.toString('utf8', at, at + length);
    if (text.includes('\uFFFD') && !isUtf8(bytes.subarray(at, at + length))) {
      throw unreadable('it has a text that is not UTF-8');
    }
    return text;
  }

  protected unreadable(why: string, cause?: unknown): YardmasterError {
    return unreadable(why, cause);
  }

  protected readMap(count: number, depth: number): unknown {
    this.checkCount(2 * count, depth);
    const value: Record<string, unknown> = {};
    let isSpecial = false;
    for (let index = 0; index < count; index++) {
      const name = this.readName();
      if (name === undefined) return this.readOtherMap(value, count - index, depth);
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
    const count = (this.counts[offset] ??= subFrameCount(header));
    if (!(count >= 0 && offset + 1 + count <= this.frames.length)) {
      throw unreadable(
        `the sub-header in frame ${offset} of ${this.frames.length} announces ${count} frames`,
      );
    }
    this.spend(count);
    const frames: Uint8Array[] = [];
    for (let index = 1; index <= count; index++) {
      frames.push(this.slab.keep(this.frames[offset + index] as Uint8Array));
    }
    return new Opaque(kind, this.slab.keep(header), frames);
  }
}

const UNDERSCORE = 0x5f;

const decoder = new Decoder();

function setOwn(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function unreadable(why: string, cause?: unknown): YardmasterError {
  return new YardmasterError('ERR_FRAME', `a message cannot be read: ${why}`, {}, { cause });
}
