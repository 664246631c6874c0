import type { NewStimulus } from '../../core/api/index.ts';

/**
 * Keeps results alive by wanting them in the name of service clients, one for each owner:
 * `variable-x`, `queue-jobs`. A key that an owner has twice is released when it has been released
 * twice.
 */
export class ResultKeeper {
  private readonly owners = new Map<string, Map<string, number>>();

  constructor(private readonly enqueue: (stimulus: NewStimulus) => void) {}

  keep(owner: string, keys: readonly string[]): void {
    if (keys.length === 0) return;
    const counts = this.owners.get(owner) ?? new Map<string, number>();
    this.owners.set(owner, counts);
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    // Includes keys that are wanted already, because a restart of the cluster forgets what clients
    // want.
    this.enqueue({ op: 'client-desires-keys', client: owner, keys });
  }

  release(owner: string, keys: readonly string[]): void {
    const counts = this.owners.get(owner);
    if (counts === undefined) return;
    const released: string[] = [];
    for (const key of keys) {
      const left = (counts.get(key) ?? 0) - 1;
      if (left > 0) counts.set(key, left);
      else if (counts.delete(key)) released.push(key);
    }
    if (counts.size === 0) {
      this.owners.delete(owner);
      this.enqueue({ op: 'remove-client', client: owner });
    } else if (released.length > 0) {
      this.enqueue({ op: 'client-releases-keys', client: owner, keys: released });
    }
  }

  releaseAll(): void {
    for (const owner of this.owners.keys()) this.enqueue({ op: 'remove-client', client: owner });
    this.owners.clear();
  }
}
