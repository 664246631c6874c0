import { YardmasterError } from '../../api/errors.ts';
import { type Caller, token, type Token } from '../../api/plugin.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { builtin, type BuiltinCommand } from '../commands/builtin-parameters.ts';
import { CLUSTER } from '../tokens.ts';
import { NAMES_BYTES_MAX, tooManyNames } from './names-limit.ts';

export const KEY_CLAIMS: Token<KeyClaims> = token('key-claims');

/** What one client has claimed. */
interface Claims {
  readonly keys: Set<string>;
  /** Of the keys. */
  nbytes: number;
}

/**
 * Keys that one client says are its own, so that two clients which choose keys by the same rule do not get
 * each other's results: the scheduler keeps the first task of a key. A claim ends with its client.
 */
export class KeyClaims {
  readonly commands: readonly BuiltinCommand[];
  private readonly owners = new Map<string, string>();
  private readonly keysOf = new Map<string, Claims>();

  constructor(@inject(CLUSTER) private readonly cluster: ClusterState) {
    this.commands = [
      builtin('claim-keys', ({ keys }, caller) => this.claim(keys, caller)),
      builtin('unclaim-keys', ({ keys }, caller) => this.unclaim(keys, caller)),
    ];
  }

  /**
   * All or none.
   * @throws YardmasterError `ERR_GRAPH_INVALID` naming the first key that another has; `ERR_QUOTA`
   */
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
    const own = this.keysOf.get(client) ?? { keys: new Set(), nbytes: 0 };
    const added = new Set(keys.filter((key) => !own.keys.has(key)));
    let { nbytes } = own;
    for (const key of added) nbytes += key.length;
    if (nbytes > NAMES_BYTES_MAX) throw tooManyNames(client, 'that are claimed');
    this.keysOf.set(client, own);
    own.nbytes = nbytes;
    for (const key of added) {
      this.owners.set(key, client);
      own.keys.add(key);
    }
  }

  private unclaim(keys: readonly string[], { client = '' }: Caller): void {
    const own = this.keysOf.get(client);
    if (own === undefined) return;
    for (const key of keys) {
      if (!own.keys.delete(key)) continue;
      own.nbytes -= key.length;
      this.owners.delete(key);
    }
  }

  /** O(clients with claims + claims of those that have gone). */
  private forgetGone(): void {
    for (const [client, { keys }] of this.keysOf) {
      if (this.cluster.clients.has(client)) continue;
      this.keysOf.delete(client);
      for (const key of keys) this.owners.delete(key);
    }
  }
}
