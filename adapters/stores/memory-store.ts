import type { DataStore } from '../../core/api/index.ts';
import { SteadyMap } from '../../core/util/collections.ts';
import { valueBytes } from '../../core/util/bytes.ts';

/** Keeps all results in memory. */
export class MemoryStore implements DataStore {
  private readonly values = new SteadyMap<string, Uint8Array>();
  private total = 0;

  get nbytes(): number {
    return this.total;
  }

  has(key: string): boolean {
    return this.values.has(key);
  }

  get(key: string): Uint8Array | undefined {
    return this.values.get(key);
  }

  set(key: string, value: Uint8Array): void {
    const before = this.values.get(key);
    this.total += valueBytes(value) - (before === undefined ? 0 : valueBytes(before));
    this.values.set(key, value);
  }

  delete(key: string): boolean {
    const value = this.values.get(key);
    if (value === undefined) return false;
    this.total -= valueBytes(value);
    return this.values.delete(key);
  }

  keys(): Iterable<string> {
    return this.values.keys();
  }
}
