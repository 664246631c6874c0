/** Writes pickles for Python: plain data, arrays, tables, and calls. */
import { isPlainObject } from '../../../core/util/plain-object.ts';
import { isWellFormed } from '../../codecs/msgpack/plain-data.ts';
import { dtypeOf, isMarked, type DType, type TypedArray } from '../python/index.ts';
import { typeName } from '../../tasks/index.ts';
import { codeOf } from './arrays.ts';
import { DEPTH_MAX, NotPortable, within } from './refusal.ts';

/** Something that is written as `called(...args)`. */
export class Call {
  constructor(
    readonly called: Name | Call,
    readonly args: readonly unknown[],
    /** Attributes that the object gets then. */
    readonly attributes?: Readonly<Record<string, unknown>>,
  ) {}
}

/** Something that Python imports: a function or class. */
export class Name {
  constructor(
    readonly module: string,
    /** May be dotted. */
    readonly name: string,
  ) {}
}

/** An array that is written as a tuple. */
export class Tuple {
  constructor(readonly items: readonly unknown[]) {}
}

/** Memory of at least this many bytes is not copied into a pickle that has buffers. */
const BUFFER_BYTES_MIN = 4096;

/** A pickle, and the memory that it refers to. */
interface Pickle {
  readonly bytes: Uint8Array;
  readonly buffers: readonly Uint8Array[];
}

/**
 * A pickle of protocol 5.
 *
 * Integers that are safe become `int`, other numbers `float`; Buffers and ArrayBuffers `bytes`; typed
 * arrays NumPy arrays of their type, which may be written to; arrays `list`; objects and Maps `dict`.
 *
 * @param hasBuffers - large arrays may stay where they are, as buffers
 * @throws NotPortable whatever has no equal in Python
 */
export function writePickle(value: unknown, hasBuffers: boolean): Pickle {
  const writer = new PickleWriter(hasBuffers);
  writer.write(value, 0);
  return writer.end();
}

class PickleWriter {
  private readonly parts: Uint8Array[] = [PROTOCOL_5];
  private readonly buffers: Uint8Array[] = [];

  constructor(private readonly hasBuffers: boolean) {}

  end(): Pickle {
    return { bytes: Buffer.concat([...this.parts, STOP]), buffers: this.buffers };
  }

  write(value: unknown, depth: number): void {
    switch (typeof value) {
      case 'string':
        this.text(value);
        return;
      case 'number':
        this.number(value);
        return;
      case 'bigint':
        this.bigint(value);
        return;
      case 'boolean':
        this.code(value ? 0x88 : 0x89);
        return;
      case 'undefined':
        this.code(0x4e);
        return;
      case 'object':
        if (value === null) this.code(0x4e);
        else this.object(value, depth);
        return;
      case 'function':
      case 'symbol':
        throw new NotPortable(`a ${typeof value}`);
    }
  }

  private object(value: object, depth: number): void {
    if (depth > DEPTH_MAX) throw new NotPortable('a value nested too deeply, or within itself');
    if (Array.isArray(value)) this.sequence(0x5d, value, depth);
    else if (value instanceof Call) this.call(value, depth);
    else if (value instanceof Name) this.name(value);
    else if (value instanceof Tuple) this.tuple(value.items, depth);
    else if (Buffer.isBuffer(value)) this.blob(0x8e, value);
    else if (value instanceof ArrayBuffer) this.blob(0x8e, new Uint8Array(value));
    else if (ArrayBuffer.isView(value)) this.typedArray(value, depth);
    else if (isMarked(value, 'ndarray')) this.array(value.data, value.dtype, value.shape, depth);
    else if (isMarked(value, 'arrow')) this.table(value.bytes, depth);
    else if (value instanceof Map) this.dict([...(value as Map<unknown, unknown>)], depth);
    else if (isPlainObject(value)) this.dict(Object.entries(value), depth);
    else throw new NotPortable(`a ${typeName(value)}`);
  }

  private typedArray(value: ArrayBufferView, depth: number): void {
    const dtype = dtypeOf(value);
    if (dtype === undefined) throw new NotPortable(`a ${typeName(value)}`);
    const data = value as TypedArray;
    this.array(data, dtype, [data.length], depth);
  }

  private array(data: TypedArray, dtype: DType, shape: readonly number[], depth: number): void {
    const size = new Tuple(shape);
    const type = codeOf(dtype);
    // NumPy takes no memory of no bytes.
    if (data.byteLength === 0) this.call(new Call(ZEROS, [size, type]), depth);
    else this.call(new Call(NDARRAY, [size, type, new Memory(data)]), depth);
  }

  /** `methodcaller('read_all')(open_stream(bytes))`: a pickle calls functions, not methods. */
  private table(bytes: Uint8Array, depth: number): void {
    const stream = new Call(OPEN_STREAM, [
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    ]);
    this.call(new Call(new Call(METHOD_CALLER, ['read_all']), [stream]), depth);
  }

  private call({ called, args, attributes }: Call, depth: number): void {
    if (called instanceof Name) this.name(called);
    else this.call(called, depth);
    this.tuple(args, depth);
    this.code(0x52);
    if (attributes === undefined) return;
    this.dict(Object.entries(attributes), depth);
    this.code(0x62);
  }

  private name({ module, name }: Name): void {
    this.text(module);
    this.text(name);
    this.code(0x93);
  }

  private tuple(items: readonly unknown[], depth: number): void {
    this.code(0x28);
    for (const item of items) {
      if (item instanceof Memory) this.memory(item.bytes);
      else this.write(item, depth + 1);
    }
    this.code(0x74);
  }

  private sequence(empty: number, items: readonly unknown[], depth: number): void {
    this.code(empty);
    if (items.length === 0) return;
    this.code(0x28);
    for (let index = 0; index < items.length; index++) {
      within(index, () => this.write(items[index], depth + 1));
    }
    this.code(0x65);
  }

  private dict(entries: readonly (readonly [unknown, unknown])[], depth: number): void {
    this.code(0x7d);
    if (entries.length === 0) return;
    this.code(0x28);
    for (const [key, value] of entries) {
      if (typeof key === 'object' && key !== null) {
        throw new NotPortable('a Map with a key that is neither a text nor a number');
      }
      this.write(key, depth + 1);
      within(String(key), () => this.write(value, depth + 1));
    }
    this.code(0x75);
  }

  /** Memory that may be written to. */
  private memory(bytes: Uint8Array): void {
    if (this.hasBuffers && bytes.byteLength >= BUFFER_BYTES_MIN) {
      this.buffers.push(bytes);
      this.code(0x97);
    } else this.blob(0x96, bytes);
  }

  private text(text: string): void {
    if (!isWellFormed(text))
      throw new NotPortable('a text with half a character (a lone surrogate)');
    this.blob(0x58, Buffer.from(text, 'utf8'));
  }

  private number(value: number): void {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
      if (Math.abs(value) < 2 ** 31) {
        const bytes = this.head(0x4a, 4);
        bytes.writeInt32LE(value, 1);
      } else this.bigint(BigInt(value));
      return;
    }
    const bytes = this.head(0x47, 8);
    bytes.writeDoubleBE(value, 1);
  }

  /** Little-endian, two's complement. */
  private bigint(value: bigint): void {
    const length = Math.ceil((value < 0n ? ~value : value).toString(2).length / 8 + 1 / 8);
    if (length > 255) throw new NotPortable(`an integer of ${length} bytes`);
    const bytes = this.head(0x8a, 1 + length);
    bytes[1] = length;
    let left = BigInt.asUintN(8 * length, value);
    for (let index = 0; index < length; index++) {
      bytes[2 + index] = Number(left & 0xffn);
      left >>= 8n;
    }
  }

  /** Texts have a length of 32 bits, binary data one of 64. */
  private blob(code: number, bytes: Uint8Array): void {
    if (code === 0x58) this.head(code, 4).writeUInt32LE(bytes.byteLength, 1);
    else this.head(code, 8).writeBigUInt64LE(BigInt(bytes.byteLength), 1);
    this.parts.push(bytes);
  }

  private head(code: number, nbytes: number): Buffer {
    const bytes = Buffer.alloc(1 + nbytes);
    bytes[0] = code;
    this.parts.push(bytes);
    return bytes;
  }

  private code(code: number): void {
    this.parts.push(CODES[code] as Uint8Array);
  }
}

/** The memory of an array. */
class Memory {
  readonly bytes: Uint8Array;

  constructor({ buffer, byteOffset, byteLength }: ArrayBufferView) {
    this.bytes = new Uint8Array(buffer, byteOffset, byteLength);
  }
}

/** Each code as bytes, so that none is made anew. */
const CODES = Array.from({ length: 256 }, (_, code) => Uint8Array.of(code));
const PROTOCOL_5 = Uint8Array.of(0x80, 5);
const STOP = Uint8Array.of(0x2e);
const ZEROS = new Name('numpy', 'zeros');
const NDARRAY = new Name('numpy', 'ndarray');
const OPEN_STREAM = new Name('pyarrow.ipc', 'open_stream');
const METHOD_CALLER = new Name('operator', 'methodcaller');
