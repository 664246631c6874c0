import type { KeyEntry } from './entry.ts';

/** Bytes of results that a client keeps because they came along; others are fetched when asked for. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** What a small array of bytes occupies besides them. */
const OVERHEAD_BYTES = 200;

/** Small results that came with the news of them, as long as their keys are held. */
export class KeptValues {
  private keptBytes = 0;

  /** Keeps the value if it fits. */
  keep(entry: KeyEntry, value: Uint8Array | undefined): void {
    this.drop(entry);
    if (value === undefined) return;
    const nbytes = value.byteLength + OVERHEAD_BYTES;
    if (this.keptBytes + nbytes > KEPT_BYTES_MAX) return;
    this.keptBytes += nbytes;
    entry.value = value;
  }

  /** The result is needed no more, or is not to be trusted any more. */
  drop(entry: KeyEntry): void {
    if (entry.value === undefined) return;
    this.keptBytes -= entry.value.byteLength + OVERHEAD_BYTES;
    entry.value = undefined;
  }
}
