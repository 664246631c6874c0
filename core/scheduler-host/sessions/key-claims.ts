import { YardmasterError } from '../../api/errors.ts';
import { type Caller, token, type Token } from '../../api/plugin.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { builtin, type BuiltinCommand } from '../commands/builtin-parameters.ts';
import { CLUSTER } from '../tokens.ts';

export const KEY_CLAIMS: Token<KeyClaims> = token('key-claims');

/**
 * Keys that one client says are its own, so that two clients which choose keys by the same rule do not get
 * each other's results: the scheduler keeps the first task of a key. A claim ends with its client.
 */
export class KeyClaims {
  readonly commands: readonly BuiltinCommand[];
  private readonly owners = new Map<string, string>();
  private readonly keysOf = new Map<string, Set<string>>();

  constructor(@inject(CLUSTER) private readonly cluster: ClusterState) {
    this.commands = [
      builtin('claim-keys', ({ keys }, caller) => this.claim(keys, caller)),
      builtin('unclaim-keys', ({ keys }, caller) => this.unclaim(keys, caller)),
    ];
  }

  /** All or none. @throws YardmasterError `ERR_GRAPH_INVALID` naming the first key that another has */
  private claim(keys: readonly string[], { client }: Caller): void {
    const { cluster } = this;
    this.forgetGone();
    for (const key of keys) {
      const owner = this.owners.get(key);
      const isKnown = owner === undefined && cluster.tasks.get(key)?.isNeeded === true;
      if ((owner === undefined || owner === client) && !isKnown) continue;
      throw new YardmasterError(
        'ERR_GRAPH_INVALID',
        `the key "${key}" belongs to ${owner === undefined ? 'a task that is there already' : `the client ${owner}`}; choose another key, or another session`,
        { key, ...(owner === undefined ? {} : { owner }) },
      );
    }
    if (client === undefined) return;
    const own = this.keysOf.get(client) ?? new Set();
    this.keysOf.set(client, own);
    for (const key of keys) {
      this.owners.set(key, client);
      own.add(key);
    }
  }

  private unclaim(keys: readonly string[], { client = '' }: Caller): void {
    const own = this.keysOf.get(client);
    for (const key of keys) if (own?.delete(key) === true) this.owners.delete(key);
  }

  /** O(clients with claims + claims of those that have gone). */
  private forgetGone(): void {
    for (const [client, keys] of this.keysOf) {
      if (this.cluster.clients.has(client)) continue;
      this.keysOf.delete(client);
      for (const key of keys) this.owners.delete(key);
    }
  }
}
