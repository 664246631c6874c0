import type { DataStore } from '../../core/api/index.ts';
import { SteadyMap } from '../../core/util/collections/steady-map.ts';

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
    this.total += value.byteLength - (this.values.get(key)?.byteLength ?? 0);
    this.values.set(key, value);
  }

  delete(key: string): boolean {
    const value = this.values.get(key);
    if (value === undefined) return false;
    this.total -= value.byteLength;
    return this.values.delete(key);
  }

  keys(): Iterable<string> {
    return this.values.keys();
  }
}
