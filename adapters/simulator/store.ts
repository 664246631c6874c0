import type { Clock } from '../../core/api/index.ts';
import { DEFAULT_MEMORY_THRESHOLDS } from '../../core/worker/memory/memory-options.ts';

/** A result on a simulated worker. */
export interface StoredResult {
  readonly nbytes: number;
  /** See `SimulationOptions.evaluate`. */
  readonly value: number;
  place: 'memory' | 'spilling' | 'disk';
}

/**
 * The results of one worker. Beyond the target of its memory limit the oldest are written to its disk, one after the
 * other; until a result is written, it occupies memory.
 */
export class SimulatedStore {
  readonly items = new Map<string, StoredResult>();
  memoryBytes = 0;
  diskBytes = 0;
  peakBytes = 0;
  /** Bytes that were ever written. */
  spilledBytes = 0;
  private readonly targetBytes: number;
  private spillingBytes = 0;
  /** When the disk has done all that it was asked for. */
  private diskFreeMs = 0;

  /** @param later - calls back after a time, unless the worker has died */
  constructor(
    private readonly clock: Clock,
    private readonly later: (ms: number, callback: () => void) => void,
    limitBytes: number,
    private readonly diskBandwidth: number,
    private readonly onChange: () => void,
  ) {
    this.targetBytes = limitBytes > 0 ? DEFAULT_MEMORY_THRESHOLDS.target * limitBytes : Infinity;
  }

  put(key: string, nbytes: number, value: number): void {
    if (this.items.has(key)) return;
    this.items.set(key, { nbytes, value, place: 'memory' });
    this.grow(nbytes);
    this.spill(this.memoryBytes - this.spillingBytes - this.targetBytes);
  }

  delete(key: string): void {
    const item = this.items.get(key);
    if (item === undefined) return;
    this.items.delete(key);
    if (item.place === 'disk') this.diskBytes -= item.nbytes;
    else this.memoryBytes -= item.nbytes;
    if (item.place === 'spilling') this.spillingBytes -= item.nbytes;
    this.onChange();
  }

  /** Brings results into memory. @returns milliseconds until they are there */
  read(keys: readonly string[]): number {
    if (this.diskBytes === 0) return 0;
    let bytes = 0;
    for (const key of keys) {
      const item = this.items.get(key);
      if (item?.place !== 'disk') continue;
      item.place = 'memory';
      this.diskBytes -= item.nbytes;
      bytes += item.nbytes;
      // The newest in the order of spilling.
      this.items.delete(key);
      this.items.set(key, item);
    }
    if (bytes === 0) return 0;
    this.grow(bytes);
    const readMs = this.useDisk(bytes);
    this.spill(this.memoryBytes - this.spillingBytes - this.targetBytes);
    return readMs;
  }

  /** Writes the oldest results until so many bytes are on their way to the disk. */
  spill(bytes: number): void {
    if (!(bytes > 0)) return;
    let left = bytes;
    for (const [key, item] of this.items) {
      if (left <= 0) return;
      if (item.place !== 'memory' || item.nbytes === 0) continue;
      item.place = 'spilling';
      this.spillingBytes += item.nbytes;
      left -= item.nbytes;
      this.later(this.useDisk(item.nbytes), () => this.written(key, item));
    }
  }

  private written(key: string, item: StoredResult): void {
    if (item.place !== 'spilling' || this.items.get(key) !== item) return;
    item.place = 'disk';
    this.spillingBytes -= item.nbytes;
    this.memoryBytes -= item.nbytes;
    this.diskBytes += item.nbytes;
    this.spilledBytes += item.nbytes;
    this.onChange();
  }

  private grow(nbytes: number): void {
    this.memoryBytes += nbytes;
    this.peakBytes = Math.max(this.peakBytes, this.memoryBytes);
    this.onChange();
  }

  private useDisk(bytes: number): number {
    const nowMs = this.clock.nowMs();
    this.diskFreeMs = Math.max(nowMs, this.diskFreeMs) + (1000 * bytes) / this.diskBandwidth;
    return this.diskFreeMs - nowMs;
  }
}
