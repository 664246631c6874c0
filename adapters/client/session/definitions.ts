import { YardmasterError } from '../../../core/api/index.ts';

/** Keys of one graph, held as long as one of its requested results is. */
interface GraphLease {
  readonly definitions: ReadonlyMap<string, string>;
  /** Requested keys that are still held. */
  remaining: number;
}

/**
 * Records what each key of the active graphs computes, so that one key cannot stand for two
 * computations. The scheduler would silently keep the first one.
 */
export class Definitions {
  private readonly known = new Map<string, { definition: string; leases: number }>();
  private readonly leasesByKey = new Map<string, GraphLease[]>();

  /** @throws YardmasterError `ERR_KEY_TAKEN` when the key computes something else already */
  check(key: string, definition: string): void {
    if (this.known.size === 0) return;
    const other = this.known.get(key);
    if (other !== undefined && other.definition !== definition) throw duplicateKey(key);
  }

  /** Whether a graph that is in play defines it. */
  has(key: string): boolean {
    return this.known.has(key);
  }

  /** @param keys - the requested ones */
  add(definitions: ReadonlyMap<string, string>, keys: readonly string[]): void {
    const lease: GraphLease = { definitions, remaining: keys.length };
    for (const key of keys) {
      const leases = this.leasesByKey.get(key);
      if (leases === undefined) this.leasesByKey.set(key, [lease]);
      else leases.push(lease);
    }
    for (const [key, definition] of definitions) {
      const other = this.known.get(key);
      if (other === undefined) this.known.set(key, { definition, leases: 1 });
      else other.leases++;
    }
  }

  /** The client does not hold a requested key any more. */
  release(key: string): void {
    if (this.leasesByKey.size === 0) return;
    const leases = this.leasesByKey.get(key);
    if (leases === undefined) return;
    this.leasesByKey.delete(key);
    for (const lease of leases) {
      lease.remaining--;
      if (lease.remaining === 0) this.drop(lease);
    }
  }

  clear(): void {
    this.known.clear();
    this.leasesByKey.clear();
  }

  private drop(lease: GraphLease): void {
    for (const key of lease.definitions.keys()) {
      const known = this.known.get(key);
      if (known === undefined) continue;
      known.leases--;
      if (known.leases === 0) this.known.delete(key);
    }
  }
}

/** The error for a key that is taken. */
export function duplicateKey(key: string): YardmasterError {
  return new YardmasterError(
    'ERR_KEY_TAKEN',
    `the key "${key}" is taken by another value, or by a task with another function or other arguments; choose another key, or release the futures of the first`,
    { key },
  );
}

/** The error for a key under which another client has submitted something else. */
export function takenElsewhere(key: string, taken: string): YardmasterError {
  const what = key === taken ? '' : `"${key}" was not submitted: `;
  return new YardmasterError(
    'ERR_KEY_TAKEN',
    `${what}the key "${taken}" is taken by a value, or by a task with another function or other arguments, of another client; choose another key or a namespace, or have that client release it`,
    { key, taken },
  );
}
