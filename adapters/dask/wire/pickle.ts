import { YardmasterError } from '../../../core/api/index.ts';
import { isPlainObject } from '../../../core/util/values.ts';
import { isWellFormed } from '../../codecs/msgpack.ts';
import { typeName } from '../../tasks/index.ts';
import { type DType, dtypeOf, isMarked, MARK, type NdArray, type TypedArray } from './python.ts';

// Reads pickles of plain data: nothing is imported, nothing is called. Of all that a pickle can name, it
// knows NumPy's arrays, numbers and types, and `bytearray`; whatever else is refused by its name.

/** A name in a module, which a pickle would have imported. */
class Global {
  constructor(readonly path: string) {}
}

/** A NumPy type under construction; its state contains the byte order. */
class DTypeObject {
  order = '|';
  constructor(readonly code: string) {}
}

/** A NumPy array in the making, as protocols before 5 have it. */
class UnfinishedArray {
  value: unknown;
}

const MARKER = Symbol('mark');

/** Longer integers are refused. */
const INTEGER_BYTES_MAX = 2 ** 20;

/**
 * @param buffers - memory that the pickle refers to, in its order
 * @throws NotPortable what is no plain data
 */
export function readPickle(bytes: Uint8Array, buffers: readonly Uint8Array[] = []): unknown {
  return finished(new PickleReader(bytes, buffers).read());
}

class PickleReader {
  private at = 0;
  private readonly view: DataView;
  protected readonly stack: unknown[] = [];
  private readonly memo = new Map<number, unknown>();
  private nextBuffer = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly buffers: readonly Uint8Array[],
  ) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): unknown {
    try {
      for (;;) {
        const code = this.byte();
        if (code === 0x2e) return this.stack.pop();
        this.step(code);
      }
    } catch (thrown) {
      if (thrown instanceof RangeError) throw new NotPortable('a pickle that cannot be read');
      throw thrown;
    }
  }

  private step(code: number): void {
    const { stack } = this;
    switch (code) {
      case 0x80: // PROTO
        this.byte();
        return;
      case 0x95: // FRAME
        this.at += 8;
        return;
      case 0x28: // MARK
        stack.push(MARKER);
        return;
      case 0x30: // POP
        stack.pop();
        return;
      case 0x32: // DUP
        stack.push(stack.at(-1));
        return;
      case 0x94: // MEMOIZE
        this.memo.set(this.memo.size, stack.at(-1));
        return;
      case 0x71: // BINPUT
        this.memo.set(this.byte(), stack.at(-1));
        return;
      case 0x72: // LONG_BINPUT
        this.memo.set(this.uint32(), stack.at(-1));
        return;
      case 0x68: // BINGET
        this.push(this.memo.get(this.byte()));
        return;
      case 0x6a: // LONG_BINGET
        this.push(this.memo.get(this.uint32()));
        return;
      default:
        if (!this.scalar(code) && !this.container(code)) this.object(code);
    }
  }

  /** True when it was a code for a value without members. */
  private scalar(code: number): boolean {
    switch (code) {
      case 0x4e:
        return this.push(null);
      case 0x88:
        return this.push(true);
      case 0x89:
        return this.push(false);
      case 0x4b:
        return this.push(this.byte());
      case 0x4d:
        this.at += 2;
        return this.push(this.view.getUint16(this.at - 2, true));
      case 0x4a:
        this.at += 4;
        return this.push(this.view.getInt32(this.at - 4, true));
      case 0x8a:
        return this.push(this.long(this.byte()));
      case 0x8b:
        return this.push(this.long(this.uint32()));
      case 0x47:
        this.at += 8;
        return this.push(this.view.getFloat64(this.at - 8));
      case 0x8c:
        return this.push(this.text(this.byte()));
      case 0x58:
        return this.push(this.text(this.uint32()));
      case 0x8d:
        return this.push(this.text(this.uint64()));
      case 0x43:
        return this.push(this.blob(this.byte()));
      case 0x42:
        return this.push(this.blob(this.uint32()));
      case 0x8e:
      case 0x96: // BYTEARRAY8
        return this.push(this.blob(this.uint64()));
      case 0x97: {
        const buffer = this.buffers[this.nextBuffer++];
        if (buffer === undefined) throw new RangeError('a buffer lacks');
        return this.push(Buffer.from(buffer));
      }
      case 0x98: // READONLY_BUFFER
        return true;
      default:
        return false;
    }
  }

  private container(code: number): boolean {
    const { stack } = this;
    switch (code) {
      case 0x5d:
        return this.push([]);
      case 0x29:
        return this.push([]);
      case 0x7d:
        return this.push(new Map());
      case 0x61: {
        const item = stack.pop();
        (stack.at(-1) as unknown[]).push(item);
        return true;
      }
      case 0x65: {
        const items = this.marked();
        const list = stack.at(-1) as unknown[];
        for (const item of items) list.push(item);
        return true;
      }
      case 0x73: {
        const [key, value] = stack.splice(-2);
        (stack.at(-1) as Map<unknown, unknown>).set(key, value);
        return true;
      }
      case 0x75: {
        const items = this.marked();
        const map = stack.at(-1) as Map<unknown, unknown>;
        for (let index = 0; index < items.length; index += 2)
          map.set(items[index], items[index + 1]);
        return true;
      }
      case 0x74:
        return this.push(this.marked());
      case 0x85:
      case 0x86:
      case 0x87:
        return this.push(stack.splice(0x84 - code));
      case 0x6c:
        return this.push(this.marked());
      default:
        return false;
    }
  }

  protected object(code: number): void {
    const { stack } = this;
    if (code === 0x93) {
      const [module, name] = stack.splice(-2);
      this.push(new Global(`${String(module)}.${String(name)}`));
    } else if (code === 0x63) {
      const module = this.line();
      this.push(new Global(`${module}.${this.line()}`));
    } else if (code === 0x52) {
      const [called, args] = stack.splice(-2);
      this.push(call(called, args as unknown[]));
    } else if (code === 0x62) {
      const state = stack.pop();
      build(stack.at(-1), state);
    } else if (code === 0x8f || code === 0x91) throw new NotPortable('a set');
    else if (code === 0x81 || code === 0x92) {
      const made = stack.at(code === 0x81 ? -2 : -3);
      throw new NotPortable(made instanceof Global ? objectOf(made) : 'an object');
    } else
      throw new NotPortable(`a value that is pickled in an unusual way (0x${code.toString(16)})`);
  }

  protected push(value: unknown): true {
    this.stack.push(value);
    return true;
  }

  protected marked(): unknown[] {
    const start = this.stack.lastIndexOf(MARKER);
    if (start < 0) throw new RangeError('a mark lacks');
    const items = this.stack.splice(start);
    items.shift();
    return items;
  }

  private byte(): number {
    return this.view.getUint8(this.at++);
  }

  private uint32(): number {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }

  private uint64(): number {
    this.at += 8;
    return Number(this.view.getBigUint64(this.at - 8, true));
  }

  private blob(length: number): Buffer {
    const end = this.at + length;
    if (end > this.bytes.byteLength) throw new RangeError('bytes lack');
    const blob = Buffer.from(this.bytes.subarray(this.at, end));
    this.at = end;
    return blob;
  }

  private text(length: number): string {
    return this.blob(length).toString('utf8');
  }

  private line(): string {
    const end = this.bytes.indexOf(10, this.at);
    if (end < 0) throw new RangeError('a line lacks its end');
    const text = Buffer.from(this.bytes.subarray(this.at, end)).toString('utf8');
    this.at = end + 1;
    return text;
  }

  /** Little-endian, two's complement. */
  private long(length: number): number | bigint {
    if (length > INTEGER_BYTES_MAX) throw new NotPortable(`an integer of ${length} bytes`);
    const digits = this.blob(length).reverse().toString('hex');
    const value = BigInt.asIntN(8 * length, BigInt(`0x0${digits}`));
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
}

/** An object that Python would make by a call. */
class Made {
  constructor(
    readonly path: string,
    readonly args: readonly unknown[],
  ) {}
}

/** Reads which calls a pickle would make, for texts about them: what is unknown is no mistake. */
class OutlineReader extends PickleReader {
  protected override object(code: number): void {
    const { stack } = this;
    if (code === 0x52 || code === 0x81 || code === 0x92) {
      const [called, args] = stack.splice(code === 0x92 ? -3 : -2);
      this.push(new Made(called instanceof Global ? called.path : '', args as unknown[]));
    } else if (code === 0x62)
      stack.pop(); // A state.
    else if (code === 0x8f) this.push([]);
    else if (code === 0x90) this.marked();
    else if (code === 0x91) this.push(this.marked());
    else super.object(code);
  }
}

/** Exceptions that are named after one. */
const CAUSES_MAX = 5;
/** Longer pickles are not searched: a task may have put anything into its exception. */
const SEARCHED_BYTES_MAX = 1 << 20;
const CHAINED = 'tblib.pickling_support.unpickle_exception';

/**
 * The exceptions from which a pickled one was raised, the nearest first: `ValueError: no number`. None when Python did not
 * send them along, which tblib does, or when they cannot be read.
 */
export function causesIn(bytes: Uint8Array): readonly string[] {
  const causes: string[] = [];
  if (bytes.length > SEARCHED_BYTES_MAX) return causes;
  try {
    let outline = new OutlineReader(bytes, []).read();
    // Some releases send the pickle within another one.
    if (outline instanceof Uint8Array) outline = new OutlineReader(outline, []).read();
    let cause = causeOf(outline);
    while (cause instanceof Made && causes.push(exceptionText(cause)) < CAUSES_MAX) {
      cause = causeOf(cause);
    }
  } catch {
    // The exception itself is named all the same.
  }
  return causes;
}

/** As Python shows it: what it was raised from, else what was being handled then. */
function causeOf(exception: unknown): unknown {
  if (!(exception instanceof Made) || !exception.path.startsWith(CHAINED)) return undefined;
  const [, , cause, , context, isContextHidden] = exception.args;
  return cause ?? (isContextHidden === true ? undefined : context);
}

function exceptionText({ path, args }: Made): string {
  const [type, given] = args;
  const isChained = path.startsWith(CHAINED) && type instanceof Global;
  const name = (isChained ? type.path : path).replace(/^.*\./, '');
  const its = given instanceof Map ? (given.get('args') as unknown) : given;
  const list = isChained ? its : args;
  if (!Array.isArray(list) || list.length === 0) return name;
  const texts = list.map((one: unknown) => {
    return typeof one === 'string' || typeof one === 'number' ? String(one) : '…';
  });
  return texts.length === 1 ? `${name}: ${texts.join('')}` : `${name}(${texts.join(', ')})`;
}

/** NumPy moved its inner modules in 2.0. */
function call(called: unknown, args: readonly unknown[]): unknown {
  if (!(called instanceof Global)) throw new NotPortable('an object');
  const path = called.path.replace(/^numpy\._core\./, 'numpy.core.');
  switch (path) {
    case 'numpy.dtype':
      return new DTypeObject(String(args[0]));
    case 'numpy.core.multiarray.scalar':
      return toScalar(describe(args[0]), args[1] as Uint8Array);
    case 'numpy.core.multiarray._reconstruct':
      if ((args[0] as Global).path === 'numpy.ndarray') return new UnfinishedArray();
      throw new NotPortable(objectOf(args[0] as Global));
    case 'numpy.core.numeric._frombuffer': {
      const [bytes, dtype, shape, order] = args;
      return arrayFrom(shape, dtype, bytes, order === 'F');
    }
    case 'builtins.bytearray':
    case 'builtins.bytes':
      return args.length === 0 ? Buffer.alloc(0) : args[0];
    case '_codecs.encode':
      return Buffer.from(String(args[0]), 'latin1');
    case 'copyreg._reconstructor':
    case 'copy_reg._reconstructor':
      throw new NotPortable(objectOf(args[0] as Global));
    case 'cloudpickle.cloudpickle._make_skeleton_class':
      throw new NotPortable(`an object of a class ${String(args[1])}`);
    default:
      throw new NotPortable(objectOf(called));
  }
}

function build(made: unknown, state: unknown): void {
  if (made instanceof DTypeObject && Array.isArray(state)) {
    made.order = String(state[1]);
    return;
  }
  if (made instanceof UnfinishedArray && Array.isArray(state)) {
    const [, shape, dtype, isFortran, bytes] = state as unknown[];
    made.value = arrayFrom(shape, dtype, bytes, isFortran === true);
    return;
  }
  throw new NotPortable('an object with a state');
}

function arrayFrom(shape: unknown, dtype: unknown, bytes: unknown, isFortran: boolean): unknown {
  const description = describe(dtype);
  if (!(bytes instanceof Uint8Array))
    throw new NotPortable(`a NumPy array whose dtype is ${description}`);
  const lengths = shape as readonly number[];
  return toArray({
    description,
    shape: lengths,
    bytes,
    strides: isFortran
      ? fortranStrides(lengths, Number(/\d+$/.exec(description)?.[0] ?? 1))
      : undefined,
  });
}

function fortranStrides(shape: readonly number[], itemBytes: number): number[] {
  let stride = itemBytes;
  return shape.map((length) => {
    const its = stride;
    stride *= length;
    return its;
  });
}

function describe(dtype: unknown): string {
  if (!(dtype instanceof DTypeObject)) throw new NotPortable('a NumPy value of an unusual type');
  return dtype.order + dtype.code;
}

function objectOf({ path }: Global): string {
  return `an object of ${path}`;
}

/**
 * Maps with only texts as keys become objects; what is not finished, or no value, is refused.
 * @param known - what has been finished: a value may be in many places, and stays the same one there
 */
function finished(value: unknown, depth = 0, known = new Map<unknown, unknown>()): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value)) return value;
  if (known.has(value)) return known.get(value);
  if (depth > DEPTH_MAX) throw new NotPortable('a value nested too deeply, or within itself');
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      value[index] = finished(value[index], depth + 1, known);
    }
    known.set(value, value);
    return value;
  }
  if (value instanceof Map) {
    const entries = [...(value as Map<unknown, unknown>)].map(
      ([key, item]) => [key, finished(item, depth + 1, known)] as const,
    );
    known.set(value, mapOrObject(entries));
    return known.get(value);
  }
  if (value instanceof UnfinishedArray) return value.value;
  if (value instanceof Global) throw new NotPortable(`${value.path}, a function or class`);
  if (value instanceof DTypeObject) throw new NotPortable('a dtype');
  return value;
}

/**
 * A dict: an object when all its keys are texts, else a Map.
 * @throws NotPortable when a key is neither text nor number, boolean or None
 */
export function mapOrObject(entries: readonly (readonly [unknown, unknown])[]): unknown {
  if (entries.every(([key]) => typeof key === 'string')) {
    const object = {};
    for (const [key, value] of entries) {
      // Not an assignment: that would take `__proto__` for the prototype.
      Object.defineProperty(object, key as string, {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    return object;
  }
  for (const [key] of entries) {
    if (typeof key === 'object' && key !== null) {
      throw new NotPortable('a dict with a key that is neither a text nor a number');
    }
  }
  return new Map(entries);
}

// Writes pickles for Python: plain data, arrays, tables, and calls.

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
  /** Numbers of the objects that were written: one that is in many places is written once. */
  private readonly memo = new Map<object, number>();

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
        else this.once(value, depth);
        return;
      case 'function':
      case 'symbol':
        throw new NotPortable(`a ${typeof value}`);
    }
  }

  private once(value: object, depth: number): void {
    const known = this.memo.get(value);
    if (known !== undefined) {
      this.head(0x6a, 4).writeUInt32LE(known, 1);
      return;
    }
    this.object(value, depth);
    this.code(0x94);
    this.memo.set(value, this.memo.size);
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

// Arrays of NumPy and of JavaScript.

type ArrayMaker = new (buffer: ArrayBuffer) => TypedArray;

interface Kind {
  readonly dtype: DType;
  /** As NumPy describes it, for little-endian memory. */
  readonly code: string;
  readonly itemBytes: number;
  readonly make: ArrayMaker;
}

const KINDS: readonly Kind[] = [
  { dtype: 'bool', code: 'b1', itemBytes: 1, make: Uint8Array },
  { dtype: 'int8', code: 'i1', itemBytes: 1, make: Int8Array },
  { dtype: 'uint8', code: 'u1', itemBytes: 1, make: Uint8Array },
  { dtype: 'int16', code: 'i2', itemBytes: 2, make: Int16Array },
  { dtype: 'uint16', code: 'u2', itemBytes: 2, make: Uint16Array },
  { dtype: 'int32', code: 'i4', itemBytes: 4, make: Int32Array },
  { dtype: 'uint32', code: 'u4', itemBytes: 4, make: Uint32Array },
  { dtype: 'int64', code: 'i8', itemBytes: 8, make: BigInt64Array },
  { dtype: 'uint64', code: 'u8', itemBytes: 8, make: BigUint64Array },
  { dtype: 'float32', code: 'f4', itemBytes: 4, make: Float32Array },
  { dtype: 'float64', code: 'f8', itemBytes: 8, make: Float64Array },
];

const BY_CODE = new Map(KINDS.map((kind) => [kind.code, kind]));
const BY_DTYPE = new Map(KINDS.map((kind) => [kind.dtype, kind]));

/** The description of a type in NumPy's array protocol: `<f8`. */
function codeOf(dtype: DType): string {
  const { code, itemBytes } = BY_DTYPE.get(dtype) as Kind;
  return (itemBytes === 1 ? '|' : '<') + code;
}

/** @throws NotPortable when it is a type without an equal here: text, objects, times, big-endian numbers */
function kindOf(description: string): Kind {
  const kind = BY_CODE.get(description.replace(/^[<|=]/, ''));
  if (kind !== undefined) return kind;
  throw new NotPortable(`a NumPy array whose dtype is ${description}`);
}

/** An array of NumPy as it lies in memory. */
interface ArrayInMemory {
  /** `<f8`. */
  readonly description: string;
  readonly shape: readonly number[];
  /** Bytes from one element to the next of each dimension. Default: the last one varies fastest. */
  readonly strides?: readonly number[];
  readonly bytes: Uint8Array;
}

/**
 * An array of one dimension as a typed array, others as {@link NdArray}. Copies.
 * @throws NotPortable
 */
export function toArray({
  description,
  shape,
  strides,
  bytes,
}: ArrayInMemory): TypedArray | NdArray {
  const kind = kindOf(description);
  const { itemBytes, dtype } = kind;
  const nbytes = shape.reduce((product, length) => product * length, itemBytes);
  const isWhole = strides === undefined || isDense(shape, strides, itemBytes);
  if (isWhole && nbytes > bytes.byteLength) throw new NotPortable(INCOMPLETE);
  const memory = new Uint8Array(nbytes);
  if (isWhole) memory.set(bytes.subarray(0, nbytes));
  else copyStrided({ from: bytes, to: memory, shape, strides, itemBytes });
  const data = new kind.make(memory.buffer);
  if (shape.length === 1 && dtype !== 'bool') return data;
  return { [MARK]: 'ndarray', dtype, shape: [...shape], data };
}

/** @throws NotPortable when JavaScript has no such type of number */
function toScalar(description: string, bytes: Uint8Array): number | bigint | boolean {
  const { data, dtype } = toArray({ description, shape: [], bytes }) as NdArray;
  const value = data[0] as number | bigint;
  if (dtype === 'bool') return value !== 0;
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

const INCOMPLETE = 'a NumPy array without all of its bytes';

/** True when the elements lie as they shall: one after the other, the last dimension varying fastest. */
function isDense(shape: readonly number[], strides: readonly number[], itemBytes: number): boolean {
  let expected = itemBytes;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const length = shape[axis] as number;
    if (length !== 1 && strides[axis] !== expected) return false;
    expected *= length;
  }
  return true;
}

function copyStrided({
  from,
  to,
  shape,
  strides,
  itemBytes,
}: {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly itemBytes: number;
}): void {
  const place = shape.map(() => 0);
  let source = 0;
  for (let target = 0; target < to.byteLength; target += itemBytes) {
    if (!(source + itemBytes <= from.byteLength)) throw new NotPortable(INCOMPLETE);
    for (let byte = 0; byte < itemBytes; byte++) to[target + byte] = from[source + byte] as number;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const stride = strides[axis] as number;
      source += stride;
      place[axis] = (place[axis] as number) + 1;
      if ((place[axis] as number) < (shape[axis] as number)) break;
      source -= stride * (shape[axis] as number);
      place[axis] = 0;
    }
  }
}

/** The values that pass between the languages, for people. */
const PORTABLE =
  'None, booleans, numbers, texts, bytes, lists, dicts with plain keys, NumPy arrays of numbers or booleans, and Arrow tables';

/** Thrown on the way into a value: says what it is that cannot pass, and where in the value it is. */
export class NotPortable extends Error {
  constructor(
    /** `an object of module.Class`, `a Set`. */
    readonly what: string,
    /** Way to it within the value: `[0].name`. Empty: the value itself. */
    readonly path = '',
  ) {
    super(what);
    this.name = 'NotPortable';
  }
}

/** Nesting beyond which a value is refused: Python's own limit is not far above it. */
const DEPTH_MAX = 400;

/** Runs a step into a value; a refusal in it then names this step in its path. */
export function within<T>(place: string | number, step: () => T): T {
  try {
    return step();
  } catch (thrown) {
    if (!(thrown instanceof NotPortable)) throw thrown;
    const name = typeof place === 'number' ? `[${place}]` : `.${place}`;
    throw new NotPortable(thrown.what, name + thrown.path);
  }
}

/** From which language to which. */
export type Way = readonly [from: string, to: string];

/** The refusal of a result, as users see it. */
export function resultRefused(cause: NotPortable, result: string, way: Way): YardmasterError {
  return refused(cause, `the result of "${result}"`, way, { result });
}

/** The refusal of the arguments of a task. */
export function argumentRefused(cause: NotPortable, task: string, way: Way): YardmasterError {
  return refused(cause, `an argument of "${task}"`, way, {});
}

function refused(
  { what, path }: NotPortable,
  subject: string,
  [from, to]: Way,
  data: Readonly<Record<string, unknown>>,
): YardmasterError {
  const where = path === '' ? 'is' : `has at ${path}`;
  return new YardmasterError(
    'ERR_NOT_PORTABLE',
    `${subject} ${where} ${what}, which cannot pass from ${from} to ${to}; what can: ${PORTABLE}. Convert it in a task of ${from}`,
    { ...data, type: what, path, from, to, allowed: PORTABLE },
  );
}
