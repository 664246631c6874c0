import { YardmasterError } from '../api/errors.ts';
import { type Caller } from '../api/plugin.ts';
import type { Config } from '../config/types.ts';
import { standsForOther } from '../kernel/on-data.ts';
import type { GraphPart, GraphTask, Stimulus, SubmittedGraph } from '../messages/stimulus.ts';
import type { Clock } from '../api/clock.ts';
import { CLOCK, CONFIG } from '../host/tokens.ts';
import type { FreeKeys, RemoveReplicas, ToWorkerMessage } from '../messages/to-worker.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import type { WorkerState } from '../state/task.ts';
import { ClusterState } from '../state/cluster.ts';
import { approximateBytes } from '../util/bytes.ts';
import { builtin, type BuiltinCommand, type Given } from './commands.ts';
import { Sessions } from './sessions.ts';

/**
 * Names under which clients are about to put data on workers. A client reserves them before the
 * first byte leaves, so that no worker ever has other data under the name of a result that tasks
 * may read. The reservation ends when the scheduler learns of the data, and otherwise with the
 * client or when it gives up; then workers free data that they may have stored.
 *
 * Data goes to workers directly, so it may overtake an order of the scheduler to free what was there before, or be
 * overtaken by one that is about what the scheduler does not know yet. Therefore reservations have numbers, which rise:
 * orders say the latest, and workers spare data that was put under a later one. Orders about keys that are reserved wait
 * for the end of the reservation.
 */
@collaborator
export class DataReservations {
  readonly commands: readonly BuiltinCommand[];
  /** Fingerprint by client, by key. */
  private readonly byKey = new Map<string, Map<string, string>>();
  private readonly keysOf = new Map<string, Set<string>>();
  /** Addresses of workers whose orders to free the key wait, by key. */
  private readonly waiting = new Map<string, Set<string>>();
  /** Number of the latest reservation; 0: there was none. */
  private latest = 0;
  private readonly scattered: ScatteredData;

  constructor(
    @inject(CONFIG) { scheduler }: Config,
    private readonly cluster: ClusterState,
    private readonly sessions: Sessions,
    @inject(CLOCK) private readonly clock: Clock,
  ) {
    this.scattered = new ScatteredData(scheduler.limits.scattered, (client, key) => {
      const task = cluster.tasks.get(key);
      const wants = cluster.clients.get(client)?.wantsWhat;
      return this.keysOf.get(client)?.has(key) === true || (task && wants?.has(task)) === true;
    });
    this.commands = [
      builtin('reserve-data', (given, caller) => this.reserve(given, caller)),
      builtin('release-data', ({ keys }, { client = '' }) => this.giveUp(client, keys)),
    ];
  }

  /** A client's data has become known, or it is gone. O(keys; when data may be left: workers). */
  handled(stimulus: Stimulus): void {
    if (stimulus.op === 'update-data') {
      const ended = stimulus.items.filter(({ key }) => this.end(stimulus.client, key));
      if (this.waiting.size === 0) return;
      this.freeUnknown(
        ended.map(({ key }) => key),
        ({ address }, key) => this.waiting.get(key)?.has(address) === true,
        stimulus.stimulusId,
      );
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
  ): { readonly reservation: number } {
    const { client } = caller;
    if (client === undefined) return { reservation: 0 };
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
    // By the time, so that they rise from one scheduler to the next.
    this.latest = Math.max(this.latest + 1, Math.floor(this.clock.nowMs()));
    return { reservation: this.latest };
  }

  /** The order as it may leave now; undefined: all of it has to wait. O(1) unless keys are reserved. */
  order<Message extends ToWorkerMessage>(
    worker: WorkerState,
    message: Message,
  ): Message | undefined {
    const { latest, byKey } = this;
    if (latest === 0 || !isOrderToFree(message)) return message;
    const keys =
      byKey.size === 0
        ? message.keys
        : message.keys.filter((key) => !byKey.has(key) || !this.makeWait(key, worker));
    return keys.length === 0 ? undefined : { ...message, keys, reservation: latest };
  }

  private makeWait(key: string, { address, language }: WorkerState): boolean {
    if (language !== 'javascript') return false;
    const workers = this.waiting.get(key) ?? new Set();
    this.waiting.set(key, workers.add(address));
    return true;
  }

  private check(key: string, fingerprint: string, client: string): void {
    const task = this.cluster.tasks.get(key);
    if (task !== undefined && standsForOther(task, { key, workers: [], fingerprint })) {
      throw keyTaken(
        key,
        task.state === 'memory'
          ? 'other data, or the result of a task, is there under this key'
          : 'a task of this key is wanted, whose result it would replace',
      );
    }
    for (const [other, its] of this.byKey.get(key) ?? []) {
      if (other === client || its === fingerprint) continue;
      throw keyTaken(key, `the client ${other} is putting other data under this key`);
    }
  }

  private giveUp(client: string, keys: readonly string[]): void {
    this.scattered.release(client, keys);
    const ended = keys.filter((key) => this.end(client, key));
    this.freeUnknown(ended, () => true, `release-data of ${client}`);
  }

  /** Makes workers free copies of which the scheduler does not know, unless a client has reserved the key still. */
  private freeUnknown(
    ended: readonly string[],
    isMeant: (worker: WorkerState, key: string) => boolean,
    stimulusId: string,
  ): void {
    const { cluster, sessions, byKey, latest: reservation } = this;
    const free = ended.filter((key) => !byKey.has(key));
    if (free.length === 0) return;
    for (const worker of cluster.workersByRank) {
      if (worker.language !== 'javascript') continue;
      const keys = free.filter((key) => {
        const task = cluster.tasks.get(key);
        const isKnown = task?.processingOn === worker || task?.whoHas.has(worker) === true;
        return !isKnown && isMeant(worker, key);
      });
      if (keys.length === 0) continue;
      sessions.workers
        .get(worker.address)
        ?.send({ op: 'free-keys', keys, reservation, stimulusId });
    }
    for (const key of free) this.waiting.delete(key);
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

/** Runs that are taken back have numbers of their own. */
function isOrderToFree(message: ToWorkerMessage): message is FreeKeys | RemoveReplicas {
  if (message.op === 'free-keys') return message.runIds === undefined;
  return message.op === 'remove-replicas';
}

function keyTaken(key: string, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_KEY_TAKEN',
    `"${key}" cannot be put on workers: ${what}; choose another key, or wait until it is released`,
    { key },
  );
}

interface Claims {
  readonly keys: Set<string>;
  /** Of the keys. */
  nbytes: number;
}

/**
 * Keys that one client says are its own, so that two clients which choose keys by the same rule do not get
 * each other's results: the scheduler keeps the first task of a key. A claim ends with its client.
 */
@collaborator
export class KeyClaims {
  readonly commands: readonly BuiltinCommand[];
  private readonly owners = new Map<string, string>();
  private readonly keysOf = new Map<string, Claims>();

  constructor(private readonly cluster: ClusterState) {
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
        { key, owner },
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

interface Size {
  /** Of the data. */
  readonly nbytes: number;
  /** Of its key and fingerprint. */
  readonly namesBytes: number;
}

/** The share of one client, and its sums. */
interface Share {
  readonly sizes: Map<string, Size>;
  nbytes: number;
  namesBytes: number;
}

/** The data that each client has put on workers or is about to put there, by the sizes that it states. */
export class ScatteredData {
  private readonly shares = new Map<string, Share>();

  /**
   * @param bytesMax - for each client
   * @param isKept - false: the data was cancelled or lost, which no message of the client says
   */
  constructor(
    private readonly bytesMax: number,
    private readonly isKept: (client: string, key: string) => boolean,
  ) {}

  /**
   * All or none. Data that the client has there already is not counted twice. O(keys); at the limit: its keys so far.
   * @throws YardmasterError `ERR_QUOTA`
   */
  reserve(
    client: string,
    keys: readonly string[],
    fingerprints: readonly string[],
    sizes: readonly number[],
  ): void {
    const share: Share = this.shares.get(client) ?? { sizes: new Map(), nbytes: 0, namesBytes: 0 };
    const added = new Map<string, Size>();
    let [nbytes, namesBytes] = [0, 0];
    keys.forEach((key, index) => {
      if (share.sizes.has(key) || added.has(key)) return;
      const fingerprint = fingerprints[index] ?? '';
      const size = { nbytes: sizes[index] ?? 0, namesBytes: key.length + fingerprint.length };
      added.set(key, size);
      nbytes += size.nbytes;
      namesBytes += size.namesBytes;
    });
    const isTooMuch = (): boolean => share.nbytes + nbytes > this.bytesMax;
    const areTooMany = (): boolean => share.namesBytes + namesBytes > NAMES_BYTES_MAX;
    if (isTooMuch() || areTooMany()) {
      const gone = [...share.sizes.keys()].filter((key) => !this.isKept(client, key));
      this.release(client, gone);
    }
    if (isTooMuch()) throw tooMuch(client, share, nbytes, this.bytesMax);
    if (areTooMany()) throw tooManyNames(client, 'of data that was scattered');
    if (added.size === 0) return;
    this.shares.set(client, share);
    for (const [key, size] of added) share.sizes.set(key, size);
    share.nbytes += nbytes;
    share.namesBytes += namesBytes;
  }

  /** The client does not keep it any more. Keys of other things do no harm. O(keys). */
  release(client: string, keys: readonly string[]): void {
    const share = this.shares.get(client);
    if (share === undefined) return;
    for (const key of keys) {
      const size = share.sizes.get(key);
      if (size === undefined) continue;
      share.nbytes -= size.nbytes;
      share.namesBytes -= size.namesBytes;
      share.sizes.delete(key);
    }
    if (share.sizes.size === 0) this.shares.delete(client);
  }

  leave(client: string): void {
    this.shares.delete(client);
  }

  /** Nothing is stored any more. */
  clear(): void {
    this.shares.clear();
  }
}

function tooMuch(
  client: string,
  { nbytes: usedBytes }: Share,
  nbytes: number,
  limitBytes: number,
): YardmasterError {
  return new YardmasterError(
    'ERR_QUOTA',
    `the client ${client} cannot put another ${nbytes} bytes on workers: it has ${usedBytes} of ${limitBytes} bytes there; release what is not needed, have tasks load the data, or raise scheduler.limits.scattered`,
    { client, nbytes, usedBytes, limitBytes },
  );
}

/** A graph of which all parts are together. */
interface Assembled extends Pick<SubmittedGraph, 'tasks' | 'keys'> {
  /** The reason why it cannot be computed: a part is missing, or it was too large. Then only the keys count. */
  readonly refusal?: string;
}

/** Tasks that the parts of a graph may have together. */
const TASKS_MAX = 10_000_000;

/** The parts of a large graph that a client has sent so far. */
export class GraphParts {
  private tasks: GraphTask[] = [];
  private keys: string[] = [];
  private count = 0;
  private nbytes = 0;
  private isTooLarge = false;

  /** @param bytesMax - what the parts of one graph may occupy */
  constructor(private readonly bytesMax: number) {}

  /** Returns the keys that are refused, because with this part the graph is too large. O(values of the part). */
  add({ tasks, keys }: Pick<GraphPart, 'tasks' | 'keys'>): readonly string[] {
    this.count++;
    if (this.isTooLarge) return keys;
    this.nbytes += approximateBytes([tasks, keys], this.bytesMax);
    for (const key of keys) this.keys.push(key);
    if (this.nbytes > this.bytesMax || this.tasks.length + tasks.length > TASKS_MAX) {
      this.isTooLarge = true;
      const refused = this.keys;
      this.tasks = [];
      this.keys = [];
      return refused;
    }
    for (const task of tasks) this.tasks.push(task);
    return [];
  }

  /** For people. */
  get tooLarge(): string {
    return `its graph is larger than ${this.bytesMax} bytes or ${TASKS_MAX} tasks; submit it in several graphs, or raise scheduler.limits.graph`;
  }

  /** The last part has come. Returns the tasks and keys of all, in their order. */
  end({ tasks, keys, parts = 0 }: Pick<SubmittedGraph, 'tasks' | 'keys' | 'parts'>): Assembled {
    const missing =
      parts === this.count
        ? {}
        : { refusal: 'parts of its graph were lost with a connection; submit it again' };
    if (this.count === 0) return { tasks, keys, ...missing };
    const refused = this.add({ tasks, keys });
    const all = this.isTooLarge
      ? { tasks: [], keys: refused, refusal: this.tooLarge }
      : { tasks: this.tasks, keys: this.keys, ...missing };
    this.tasks = [];
    this.keys = [];
    this.count = 0;
    this.nbytes = 0;
    this.isTooLarge = false;
    return all;
  }
}

/** The memory for the names that the scheduler remembers for one client, of each kind. */
const NAMES_BYTES_MAX = 64 * 1024 * 1024;

/** @param what - for people: `of what the client has scattered` */
function tooManyNames(client: string, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_QUOTA',
    `the names ${what} by the client ${client} occupy more than ${NAMES_BYTES_MAX} bytes; release what is not needed, or use fewer or shorter names`,
    { client, limitBytes: NAMES_BYTES_MAX },
  );
}
