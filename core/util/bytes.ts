/** The estimated size of an object, an array or a field beside its texts and bytes. */
const ENTRY_BYTES = 16;

/**
 * Bytes that data occupies, roughly, counted up to a limit, which also ends the count of data with circles.
 * O(values, at most limit / 16).
 */
export function approximateBytes(data: unknown, limit: number): number {
  const pending: unknown[] = [data];
  let nbytes = 0;
  while (pending.length > 0 && nbytes <= limit) {
    const value = pending.pop();
    nbytes += ENTRY_BYTES;
    if (typeof value === 'string') nbytes += value.length;
    else if (typeof value !== 'object' || value === null) continue;
    else if (ArrayBuffer.isView(value)) nbytes += value.byteLength;
    else if (Array.isArray(value)) {
      // No more than can count: a list of a hundred million nils is not copied.
      const count = Math.min(value.length, Math.ceil((limit - nbytes) / ENTRY_BYTES) + 1);
      for (let index = 0; index < count; index++) pending.push(value[index]);
    } else if (value instanceof Map) {
      for (const [key, item] of value) pending.push(key, item);
    } else {
      for (const name in value) {
        nbytes += name.length;
        pending.push((value as Readonly<Record<string, unknown>>)[name]);
      }
    }
  }
  return nbytes;
}

/** Reads bytes that lie in memory from their beginning to their end. */
export class BytesReader {
  private at = 0;

  constructor(readonly bytes: Uint8Array) {}

  get nbytes(): number {
    return this.bytes.byteLength;
  }

  /** A view of the next bytes, at most `nbytesMax`. */
  read(nbytesMax: number): Uint8Array {
    const part = this.bytes.subarray(this.at, this.at + nbytesMax);
    this.at += part.byteLength;
    return part;
  }

  close(): void {
    this.at = this.bytes.byteLength;
  }
}

/** Shared memory that serialised bytes refer to, and do not contain. */
interface SharedMemory {
  readonly memories: readonly SharedArrayBuffer[];
  /** Bytes of the value with what it refers to. */
  readonly nbytes: number;
  /**
   * The value with copies of what it refers to, for other processes. What cannot be copied is replaced by an error
   * for the reader.
   */
  copy(): Uint8Array;
}

/**
 * On the buffer of the bytes, so that views of them have it as well. Not in a WeakMap, whose entries only a collection
 * of all garbage removes. Other copies of this package in the thread know it, too.
 */
const SHARED = Symbol.for('yardmaster.shared-memory');

/** First byte of serialised bytes that refer to shared memory. */
export const REFERRING_MARK = 3;

interface Carrier {
  [SHARED]?: SharedMemory;
}

interface Thread {
  [SHARED]?: { isUsed: boolean };
}

/** Of this thread, for all copies: most programs share nothing, and their messages need not be searched. */
const use = useOf(globalThis as Thread);

function useOf(thread: Thread): { isUsed: boolean } {
  return (thread[SHARED] ??= { isUsed: false });
}

/** Keeps shared memory alive as long as the bytes that refer to it. They have a buffer of their own. */
export function attachSharedMemory(bytes: Uint8Array, shared: SharedMemory): void {
  (bytes.buffer as Carrier)[SHARED] = shared;
  use.isUsed = true;
}

/** True when any bytes of this thread have ever referred to shared memory. */
export function usesSharedMemory(): boolean {
  return use.isUsed;
}

/** Memory of zeros that many threads read. */
export function sharedBytes(nbytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(nbytes));
}

/** The shared memory that serialised bytes refer to; undefined: they contain everything. */
export function sharedMemoryOf(bytes: Uint8Array): SharedMemory | undefined {
  // Small bytes have no buffer until it is asked for, and then half a microsecond is gone.
  return bytes[0] === REFERRING_MARK ? (bytes.buffer as Carrier)[SHARED] : undefined;
}

/** Bytes that a serialised value occupies, with the shared memory that it refers to. */
export function valueBytes(bytes: Uint8Array): number {
  return sharedMemoryOf(bytes)?.nbytes ?? bytes.byteLength;
}

/** The bytes as they leave the process: they refer to nothing. */
export function withoutSharedMemory(bytes: Uint8Array): Uint8Array {
  return sharedMemoryOf(bytes)?.copy() ?? bytes;
}
