import { createHash, type Hash } from 'node:crypto';
import { types } from 'node:util';

const BLOCK_BYTES = 4096;
/** Bytes that are hashed with one call: above 2 GiB Node refuses, or hashes a part only. */
const HASHED_BYTES_MAX = 2 ** 30;
const HOLE = 'hole';

/**
 * Hashes what a value is made of. The bytes of V8's serialisation would not do: they show how the engine holds a value at
 * this moment. A number that optimised code has computed, an array that was made by `new Array(n)`, and a text that was cut
 * from one with wide characters, have other bytes than equal ones that were written down.
 */
export class ContentHash {
  private readonly hashing: Hash;
  private readonly block = Buffer.allocUnsafe(BLOCK_BYTES);
  private end = 0;
  /** Containers by the order in which they were met: one that is met again is named, which ends cycles. */
  private readonly seen = new Map<object, number>();

  /** @param prefix - hashed before anything else */
  constructor(prefix: Uint8Array) {
    this.hashing = createHash('sha256').update(prefix);
  }

  /**
   * Adds a value that can be serialised. Objects count by their enumerable properties, in order. O(values and bytes).
   * @throws RangeError when it is nested more deeply than the stack is
   */
  add(value: unknown): void {
    if (typeof value === 'number') this.addNumber(value);
    else if (typeof value === 'string') this.addText('s', value);
    else if (typeof value === 'bigint') this.addText('i', value.toString(16));
    else if (typeof value === 'object' && value !== null) this.addObject(value);
    else if (value === null) this.tag('0');
    else if (value === undefined) this.tag('u');
    else this.tag(value === true ? 't' : 'f');
  }

  /** Hexadecimal. */
  digest(): string {
    this.flush();
    return this.hashing.digest('hex');
  }

  private addObject(value: object): void {
    const place = this.seen.get(value);
    if (place !== undefined) {
      this.addText('^', String(place));
      return;
    }
    this.seen.set(value, this.seen.size);
    if (Array.isArray(value)) this.addArray(value);
    else if (ArrayBuffer.isView(value)) this.addView(value);
    else if (types.isAnyArrayBuffer(value)) this.addBytes('A', new Uint8Array(value));
    else if (value instanceof Map) this.addList('M', [...value].flat(1));
    else if (value instanceof Set) this.addList('S', [...value]);
    else if (value instanceof Date) this.addText('D', String(value.getTime()));
    else if (value instanceof RegExp) this.addText('R', String(value));
    else if (types.isNativeError(value)) this.addError(value);
    else if (types.isBoxedPrimitive(value)) {
      this.tag('B');
      this.add(value.valueOf());
    } else this.addProperties('o', value, Object.keys(value));
  }

  private addArray(array: readonly unknown[]): void {
    const { length } = array;
    this.addText('a', String(length));
    for (let index = 0; index < length; index++) {
      if (array[index] === undefined && !Object.hasOwn(array, index)) this.addText('-', HOLE);
      else this.add(array[index]);
    }
    const names = Object.keys(array);
    // Most arrays have nothing but items.
    if (names.length === length && (length === 0 || names[length - 1] === String(length - 1)))
      return;
    const others = names.filter((name) => !(Number(name) < length));
    if (others.length > 0) this.addProperties('p', array, others);
  }

  private addView(view: ArrayBufferView): void {
    const kind = view instanceof Buffer ? 'Buffer' : Object.prototype.toString.call(view);
    this.addText('v', kind);
    this.addBytes('V', new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
  }

  private addError(error: Error): void {
    this.addText('E', error.name);
    this.add(error.message);
    this.add(error.stack);
    this.add(error.cause);
  }

  private addProperties(tag: string, object: object, names: readonly string[]): void {
    this.addText(tag, String(names.length));
    for (const name of names) {
      this.addText('k', name);
      this.add((object as Readonly<Record<string, unknown>>)[name]);
    }
  }

  private addList(tag: string, items: readonly unknown[]): void {
    this.addText(tag, String(items.length));
    for (const item of items) this.add(item);
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
