import { YardmasterError } from '../../api/errors.ts';
import { type Caller, token, type Token } from '../../api/plugin.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { isOtherData } from '../../kernel/events/on-data.ts';
import type { Stimulus } from '../../messages/stimulus.ts';
import type { Config } from '../../config/types.ts';
import { CONFIG } from '../../plugin-host/injection/tokens.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { builtin, type BuiltinCommand, type Given } from '../commands/builtin-parameters.ts';
import { CLUSTER } from '../tokens.ts';
import { ScatteredData } from './scattered-data.ts';
import { SESSIONS, type Sessions } from './sessions.ts';

export const DATA_RESERVATIONS: Token<DataReservations> = token('data-reservations');

/**
 * Names under which clients are about to put data on workers. A client reserves them before the
 * first byte leaves, so that no worker ever has other data under the name of a result that tasks
 * may read. The reservation ends when the scheduler learns of the data, and otherwise with the
 * client or when it gives up; then workers free data that they may have stored.
 */
export class DataReservations {
  readonly commands: readonly BuiltinCommand[];
  /** Fingerprint by client, by key. */
  private readonly byKey = new Map<string, Map<string, string>>();
  private readonly keysOf = new Map<string, Set<string>>();
  private readonly scattered: ScatteredData;

  constructor(
    @inject(CONFIG) { scheduler }: Config,
    @inject(CLUSTER) private readonly cluster: ClusterState,
    @inject(SESSIONS) private readonly sessions: Sessions,
  ) {
    this.scattered = new ScatteredData(scheduler.limits.scattered);
    this.commands = [
      builtin('reserve-data', (given, caller) => this.reserve(given, caller)),
      builtin('release-data', ({ keys }, { client = '' }) => this.giveUp(client, keys)),
    ];
  }

  /** A client's data has become known, or it is gone. O(keys; when data may be left: workers). */
  handled(stimulus: Stimulus): void {
    if (stimulus.op === 'update-data') {
      for (const { key } of stimulus.items) this.end(stimulus.client, key);
    } else if (stimulus.op === 'client-releases-keys') {
      this.scattered.release(stimulus.client, stimulus.keys);
    } else if (stimulus.op === 'restart') this.scattered.clear();
    else if (stimulus.op === 'remove-client') {
      this.scattered.leave(stimulus.client);
      this.giveUp(stimulus.client, [...(this.keysOf.get(stimulus.client) ?? [])]);
    }
  }

  /**
   * All or none.
   * @throws YardmasterError `ERR_KEY_TAKEN` naming the first key that stands for other data; `ERR_QUOTA`
   */
  private reserve(
    { keys, fingerprints, nbytes = [] }: Given<'reserve-data'>,
    caller: Caller,
  ): void {
    const { client } = caller;
    if (client === undefined) return;
    keys.forEach((key, index) => this.check(key, fingerprints[index] ?? '', client));
    this.scattered.reserve(client, keys, fingerprints, nbytes);
    const own = this.keysOf.get(client) ?? new Set();
    this.keysOf.set(client, own);
    keys.forEach((key, index) => {
      const clients = this.byKey.get(key) ?? new Map<string, string>();
      this.byKey.set(key, clients);
      clients.set(client, fingerprints[index] ?? '');
      own.add(key);
    });
  }

  private check(key: string, fingerprint: string, client: string): void {
    const task = this.cluster.tasks.get(key);
    if (task?.state === 'memory' && isOtherData(task, { key, workers: [], fingerprint })) {
      throw keyTaken(key, 'other data, or the result of a task, is there under this key');
    }
    for (const [other, its] of this.byKey.get(key) ?? []) {
      if (other === client || its === fingerprint) continue;
      throw keyTaken(key, `the client ${other} is putting other data under this key`);
    }
  }

  private giveUp(client: string, keys: readonly string[]): void {
    const { cluster, sessions } = this;
    this.scattered.release(client, keys);
    const ended = keys.filter((key) => this.end(client, key) && !this.byKey.has(key));
    // What is in memory is the same data: other data was refused.
    const left = ended.filter((key) => cluster.tasks.get(key)?.state !== 'memory');
    if (left.length === 0) return;
    for (const worker of cluster.workersByRank) {
      if (worker.language !== 'javascript') continue;
      const toFree = left.filter((key) => cluster.tasks.get(key)?.processingOn !== worker);
      const message = { op: 'free-keys', keys: toFree, stimulusId: `release-data of ${client}` };
      sessions.workers.get(worker.address)?.send(message);
    }
  }

  /** Returns whether the client had reserved the key. */
  private end(client: string, key: string): boolean {
    const own = this.keysOf.get(client);
    if (own?.delete(key) !== true) return false;
    if (own.size === 0) this.keysOf.delete(client);
    const clients = this.byKey.get(key);
    clients?.delete(client);
    if (clients?.size === 0) this.byKey.delete(key);
    return true;
  }
}

function keyTaken(key: string, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_KEY_TAKEN',
    `"${key}" cannot be put on workers: ${what}; choose another key, or wait until it is released`,
    { key },
  );
}
