/**
 * Reads pickles of plain data: nothing is imported, nothing is called. Of all that a pickle can name, it
 * knows NumPy's arrays, numbers and types, and `bytearray`; whatever else is refused by its name.
 */
import { toArray, toScalar } from './arrays.ts';
import { DEPTH_MAX, NotPortable } from './refusal.ts';

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
  private stack: unknown[] = [];
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

  /** Whether it was a code for a value without members. */
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

  private object(code: number): void {
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

  private push(value: unknown): true {
    this.stack.push(value);
    return true;
  }

  private marked(): unknown[] {
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
    const blob = this.blob(length);
    let value = 0n;
    for (let index = length - 1; index >= 0; index--) {
      value = (value << 8n) | BigInt(blob[index] as number);
    }
    if (length > 0 && (blob[length - 1] as number) >= 128) value -= 1n << BigInt(8 * length);
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
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

/** Maps with only texts as keys become objects; what is not finished, or no value, is refused. */
function finished(value: unknown, depth = 0): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (ArrayBuffer.isView(value)) return value;
  if (depth > DEPTH_MAX) throw new NotPortable('a value nested too deeply, or within itself');
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      value[index] = finished(value[index], depth + 1);
    }
    return value;
  }
  if (value instanceof Map) return finishedMap(value, depth);
  if (value instanceof UnfinishedArray) return value.value;
  if (value instanceof Global) throw new NotPortable(`${value.path}, a function or class`);
  if (value instanceof DTypeObject) throw new NotPortable('a dtype');
  return value;
}

function finishedMap(map: Map<unknown, unknown>, depth: number): unknown {
  return mapOrObject([...map].map(([key, value]) => [key, finished(value, depth + 1)] as const));
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
