import type { DataStore } from '../../api/executor.ts';
import { sharedMemoryOf } from '../../util/shared-memory.ts';

/** Results of this size lie in shared memory, which threads read without a copy. */
export const SHARED_BYTES_MIN = 64 * 1024;

/** The results of one transfer, for which the store reserves space before they arrive. */
export class IncomingResults {
  private readonly releases: (() => void)[] = [];

  constructor(private readonly store: DataStore) {}

  /**
   * Where a large result will stay.
   * @throws RangeError when there is no memory for it
   */
  expect(nbytes: number): Uint8Array {
    const release = this.store.reserve?.(nbytes);
    if (release !== undefined) this.releases.push(release);
    return sharedBytes(nbytes);
  }

  /** All have come, or will not. */
  end(): void {
    for (const release of this.releases.splice(0)) release();
  }
}

/**
 * A value in the form in which it is stored. A large value is in shared memory. A small value has
 * separate memory, because a view would keep alive the whole frame in which it arrived.
 */
export function compact(value: Uint8Array): Uint8Array {
  const { buffer, byteLength } = value;
  if (buffer instanceof SharedArrayBuffer && buffer.byteLength === byteLength) return value;
  if (sharedMemoryOf(value) !== undefined) return value;
  if (byteLength >= SHARED_BYTES_MIN) {
    const shared = sharedBytes(byteLength);
    shared.set(value);
    return shared;
  }
  if (buffer.byteLength - byteLength <= byteLength / 8) return value;
  return Uint8Array.prototype.slice.call(value);
}

function sharedBytes(nbytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(nbytes));
}
