import { createHash, type Hash, randomUUID } from 'node:crypto';
import { types } from 'node:util';
import { isHollow } from './serialise.ts';

const BLOCK_BYTES = 4096;
/** Bytes that are hashed with one call: above 2 GiB Node refuses, or hashes a part only. */
const HASHED_BYTES_MAX = 2 ** 30;

/** Names of shared memories: what is in one may be different at any time. */
const memoryNames = new WeakMap<SharedArrayBuffer, string>();

/** The members of a container, and the progress of adding them. */
interface Members {
  readonly list: readonly unknown[];
  next: number;
}

/**
 * Hashes what a value is made of. The bytes of V8's serialisation would not do: they show how the engine holds a value at
 * this moment. A number that optimised code has computed, an array that was made by `new Array(n)`, and a text that was cut
 * from one with wide characters, have other bytes than equal ones that were written down.
 */
export class ContentHash {
  private readonly hashing: Hash;
  private readonly block = Buffer.allocUnsafe(BLOCK_BYTES);
  private end = 0;
  /** True when a part of what was added would arrive empty. */
  hasHollow = false;
  /** Containers by the order in which they were met: one that is met again is named, which ends cycles. */
  private readonly seen = new Map<object, number>();

  /**
   * @param prefix - hashed before anything else
   * @param isSharing - whether shared memory counts by what it is, not by what is in it. Default false
   */
  constructor(
    prefix: Uint8Array,
    private readonly isSharing = false,
  ) {
    this.hashing = createHash('sha256').update(prefix);
  }

  /**
   * Adds a value that can be serialised, however deeply it is nested. Objects count by their enumerable properties, in
   * order. O(values and bytes).
   */
  add(value: unknown): void {
    const path: Members[] = [{ list: [value], next: 0 }];
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const { list } = top;
      const index = top.next++;
      if (index >= list.length) path.pop();
      else if (list[index] === undefined && !Object.hasOwn(list, index)) this.tag('-');
      else {
        const members = this.begin(list[index]);
        if (members !== undefined) path.push({ list: members, next: 0 });
      }
    }
  }

  /** Hexadecimal. */
  digest(): string {
    this.flush();
    return this.hashing.digest('hex');
  }

  /** Adds what is not a container, or how a container begins, and returns what is in that. */
  private begin(value: unknown): readonly unknown[] | undefined {
    if (typeof value === 'object' && value !== null) return this.beginObject(value);
    if (typeof value === 'number') this.addNumber(value);
    else if (typeof value === 'string') this.addText('s', value);
    else if (typeof value === 'bigint') this.addText('i', value.toString(16));
    else if (value === null) this.tag('0');
    else if (value === undefined) this.tag('u');
    else this.tag(value === true ? 't' : 'f');
    return undefined;
  }

  private beginObject(value: object): readonly unknown[] | undefined {
    const place = this.seen.get(value);
    if (place !== undefined) {
      this.addText('^', String(place));
      return undefined;
    }
    this.seen.set(value, this.seen.size);
    if (Array.isArray(value)) return this.beginArray(value);
    if (value instanceof Map) return this.beginList('M', [...value].flat(1));
    if (value instanceof Set) return this.beginList('S', [...value]);
    if (types.isNativeError(value)) {
      return this.beginList('E', [value.name, value.message, value.stack, value.cause]);
    }
    if (types.isBoxedPrimitive(value)) return this.beginList('B', [value.valueOf()]);
    if (ArrayBuffer.isView(value)) this.addView(value);
    else if (this.isSharing && types.isSharedArrayBuffer(value)) this.addMemory(value);
    else if (types.isAnyArrayBuffer(value)) this.addBytes('A', new Uint8Array(value));
    else if (value instanceof Date) this.addText('D', String(value.getTime()));
    else if (value instanceof RegExp) this.addText('R', String(value));
    else {
      this.hasHollow ||= isHollow(value);
      return this.beginProperties('o', value, Object.keys(value));
    }
    return undefined;
  }

  private beginArray(array: readonly unknown[]): readonly unknown[] {
    const { length } = array;
    this.addText('a', String(length));
    // Indices come first.
    const names = Object.keys(array);
    const others = names.slice(names.findLastIndex((name) => isIndex(name)) + 1);
    if (others.length === 0) return array;
    const rest = this.beginProperties('p', array, others);
    // With the holes that it has.
    return array.slice().concat(rest);
  }

  private beginProperties(tag: string, object: object, names: readonly string[]): unknown[] {
    this.addText(tag, String(names.length));
    for (const name of names) this.addText('k', name);
    return names.map((name) => (object as Readonly<Record<string, unknown>>)[name]);
  }

  private beginList(tag: string, items: readonly unknown[]): readonly unknown[] {
    this.addText(tag, String(items.length));
    return items;
  }

  private addView(view: ArrayBufferView): void {
    const kind = view instanceof Buffer ? 'Buffer' : Object.prototype.toString.call(view);
    this.addText('v', kind);
    if (this.isSharing && types.isSharedArrayBuffer(view.buffer)) {
      this.addMemory(view.buffer);
      this.addNumber(view.byteOffset);
      this.addNumber(view.byteLength);
      return;
    }
    this.addBytes('V', new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  }

  private addMemory(memory: SharedArrayBuffer): void {
    const name = memoryNames.get(memory) ?? randomUUID();
    memoryNames.set(memory, name);
    this.addText('m', name);
  }

  private addNumber(value: number): void {
    this.room(9);
    this.block[this.end] = 0x6e;
    this.block.writeDoubleLE(value, this.end + 1);
    this.end += 9;
  }

  /** Two bytes for each character: halves of surrogate pairs count as what they are. */
  private addText(tag: string, text: string): void {
    this.addBytes(tag, Buffer.from(text, 'utf16le'));
  }

  private addBytes(tag: string, bytes: Uint8Array): void {
    const { byteLength } = bytes;
    this.room(9);
    this.block[this.end] = tag.charCodeAt(0);
    this.block.writeDoubleLE(byteLength, this.end + 1);
    this.end += 9;
    if (byteLength <= BLOCK_BYTES - this.end) {
      this.block.set(bytes, this.end);
      this.end += byteLength;
      return;
    }
    this.flush();
    for (let at = 0; at < byteLength; at += HASHED_BYTES_MAX) {
      this.hashing.update(bytes.subarray(at, at + HASHED_BYTES_MAX));
    }
  }

  private tag(tag: string): void {
    this.room(1);
    this.block[this.end++] = tag.charCodeAt(0);
  }

  private room(nbytes: number): void {
    if (this.end + nbytes > BLOCK_BYTES) this.flush();
  }

  private flush(): void {
    if (this.end > 0) this.hashing.update(this.block.subarray(0, this.end));
    this.end = 0;
  }
}

/** True when the name of a property of an array is that of an item. */
function isIndex(name: string): boolean {
  return String(Number(name) >>> 0) === name;
}
