import { type WhoHasReply, YardmasterError } from '../../core/api/index.ts';
import { valueBytes } from '../../core/util/bytes.ts';
import { either, FLAG, type Rules, wholeNumber } from '../../core/shared/schema.ts';
import type { Peers } from '../peers/peers.ts';
import { serialise, typeName } from '../tasks/index.ts';
import type { SchedulerIdentity } from './cluster-access.ts';
import type { KeyEntry } from './entry.ts';
import { Future } from './future.ts';
import { checkKey, hashOfValue, uniqueKey } from './keys.ts';
import { allocateWithin, checkFits } from './message-limit.ts';
import { AMOUNT, checkOptions, WORKERS } from './options.ts';
import type { Session } from './session.ts';

/** The options of putting values on workers. */
export interface ScatterOptions {
  /** Addresses or names of the workers to choose from. Default: all that are running. */
  readonly workers?: readonly string[];
  /**
   * True: a copy on each of the workers, and when none are named, also on those that come later; a
   * number: on that many. The cluster keeps these copies. Default: one.
   */
  readonly broadcast?: boolean | number;
  /** The same value has the same key. Default true. Without effect on named values. */
  readonly hash?: boolean;
  /** Milliseconds to wait for a worker to be there. Default 10 000. */
  readonly timeoutMs?: number;
}

const WORKER_TIMEOUT_MS = 10_000;
const POLL_MS = 100;
/** Values of which the scheduler is told in one message: others have their turn after it. */
const ITEMS_PER_REPORT = 1000;
/** Times that data is put on a worker which holds other data under the key for the time being. */
const ATTEMPTS = 5;

const SCATTER_RULES: Rules<ScatterOptions> = {
  workers: WORKERS,
  broadcast: either(FLAG, wholeNumber(1)),
  hash: FLAG,
  timeoutMs: either(AMOUNT, { const: Infinity }),
};

/** An item on its way, and what the client knows of its key. */
interface Placing {
  readonly item: Item;
  readonly entry: KeyEntry;
  /** The client did not hold the key before. */
  readonly isNew: boolean;
}

/** Puts values of the client on workers. */
export class Scatterer {
  /**
   * The position at which the last scatter ended. The next one begins there, so that many small ones spread too.
   */
  private dealt = 0;
  /** The values that are being put on workers, by key. */
  private readonly underWay = new Map<string, Promise<unknown>>();

  constructor(
    private readonly session: Session,
    private readonly identity: () => Promise<SchedulerIdentity>,
  ) {}

  async scatterList(
    values: readonly unknown[],
    options: ScatterOptions,
  ): Promise<Future<unknown>[]> {
    const { hash = true } = checkOptions('client.scatter', options, SCATTER_RULES);
    const items = values.map((value, index) => {
      const bytes = this.serialised(value, `values[${index}]`);
      const type = typeName(value);
      const definition = hashOfValue(value, `values[${index}]`, this.session.sharesMemory);
      const key = hash ? `${type}-${definition}` : uniqueKey(type);
      return { key, bytes, type, definition, workers: [] };
    });
    return this.place(items, options);
  }

  async scatterNamed(
    values: Readonly<Record<string, unknown>>,
    options: ScatterOptions,
  ): Promise<Record<string, Future<unknown>>> {
    checkOptions('client.scatter', options, SCATTER_RULES);
    const items = Object.entries(values).map(([name, value]) => {
      const bytes = this.serialised(value, name);
      const key = checkKey(name);
      const definition = hashOfValue(value, name, this.session.sharesMemory);
      return { key, bytes, type: typeName(value), definition, mark: definition, workers: [] };
    });
    const futures = await this.place(items, options);
    return Object.fromEntries(futures.map((future) => [future.key, future]));
  }

  /** It has to fit into one message, whose limit at a worker is taken to be that at the scheduler. */
  private serialised(value: unknown, what: string): Uint8Array {
    const { messageBytesMax, sharesMemory } = this.session;
    // Where the store of a worker of this process would copy it to.
    const allocate = allocateWithin(messageBytesMax, what, sharesMemory);
    const bytes = serialise(value, what, allocate, sharesMemory);
    checkFits(bytes.byteLength, messageBytesMax, what);
    return bytes;
  }

  /** Puts on workers what is not held, and more copies of what is, if the options ask for these. */
  private async place(items: readonly Item[], options: ScatterOptions): Promise<Future<unknown>[]> {
    const { table } = this.session;
    // One of them at a time: when it ends well, the scheduler knows the key; and when not, this one is on its own.
    for (let key = this.busyKey(items); key !== undefined; key = this.busyKey(items)) {
      await this.underWay.get(key);
    }
    for (const { key, definition } of items) table.check(key, definition);
    const asksForCopies = options.workers !== undefined || options.broadcast !== undefined;
    const toPut = new Map<string, Placing>();
    // Held from now on, so that another value under the same name is rejected meanwhile.
    const futures = items.map((item) => {
      const held = table.get(item.key);
      const isKnown = held?.definition === item.definition;
      const entry = table.add(item.key, item.definition, item.mark);
      if (held === undefined) entry.contentKey = item.definition;
      if ((!isKnown || asksForCopies) && !toPut.has(item.key)) {
        toPut.set(item.key, { item, entry, isNew: held === undefined });
      }
      return new Future(this.session, entry);
    });
    if (toPut.size === 0) return futures;
    const placings = [...toPut.values()];
    const failed = this.put(placings, options);
    for (const key of toPut.keys()) this.underWay.set(key, failed);
    const error = await failed;
    if (error === undefined) return futures;
    for (const future of futures) future.release();
    throw error;
  }

  private busyKey(items: readonly Item[]): string | undefined {
    if (this.underWay.size === 0) return undefined;
    return items.find(({ key }) => this.underWay.has(key))?.key;
  }

  /** Never rejects. @returns why it failed; then all is as before */
  private async put(
    placings: readonly Placing[],
    options: ScatterOptions,
  ): Promise<Error | undefined> {
    try {
      await this.send(placings, options);
      return undefined;
    } catch (error) {
      this.giveUp(placings, error as Error);
      // Without a connection there is nothing to release: the scheduler notices that the client is gone.
      await this.release(placings.map(({ item }) => item)).catch(() => undefined);
      return error as Error;
    } finally {
      for (const { item } of placings) this.underWay.delete(item.key);
    }
  }

  /** @throws YardmasterError `ERR_KEY_TAKEN` when there is other data under one of the keys */
  private async send(placings: readonly Placing[], options: ScatterOptions): Promise<void> {
    const items = placings.map(({ item }) => item);
    // Before the first byte leaves: no worker shall have other data under a name that tasks may read.
    const [addresses, first] = await Promise.all([this.workers(options), this.reserve(items)]);
    const copies = this.deal(items, addresses, options.broadcast ?? false);
    // So that the memory manager keeps them; on all workers, if all were meant.
    const isForAll = options.broadcast === true && options.workers === undefined;
    const replicas = isForAll ? Infinity : copies;
    const { peers, messageBytesMax, clock } = this.session;
    let left: readonly Item[] = items;
    let reservation = first;
    for (let attempt = 1; left.length > 0; attempt++) {
      const outcome = await putItems(peers, left, reservation, messageBytesMax);
      const { placed, failed } = outcome;
      // Also after a failure: copies of which the scheduler does not know would stay for ever.
      this.report(placed, reservation, replicas);
      // What is there was released, or refused, or else the next reservation is.
      const mayPass = attempt < ATTEMPTS && YardmasterError.is(failed, 'ERR_KEY_TAKEN');
      if (failed !== undefined && !mayPass) throw failed;
      const arrived = new Set(placed.filter(isSomewhere).map(({ key }) => key));
      await this.confirm(placings.filter(({ item }) => arrived.has(item.key)));
      if (failed === undefined) return;
      left = outcome.left;
      // Where a client was lost in the middle, what it has left is freed with this.
      await this.release(left);
      await new Promise<void>((resolve) => void clock.setTimer(POLL_MS, resolve));
      reservation = await this.reserve(left);
    }
  }

  /** @throws RemoteError `ERR_KEY_TAKEN` when one of the keys stands for other data */
  private async reserve(items: readonly Item[]): Promise<number> {
    const keys = items.map(({ key }) => key);
    const fingerprints = items.map(({ definition }) => definition);
    const nbytes = items.map(({ bytes }) => valueBytes(bytes));
    const parameters = { keys, fingerprints, nbytes };
    const { reservation } = await this.session.request<{ readonly reservation: number }>(
      'command',
      { command: 'reserve-data', parameters },
    );
    return reservation;
  }

  /** Makes workers free data that they have stored and the scheduler does not know. */
  private async release(items: readonly Item[]): Promise<void> {
    const keys = items.map(({ key }) => key);
    const parameters = { keys };
    await this.session.request('command', { command: 'release-data', parameters });
  }

  private report(items: readonly Item[], reservation: number, replicas: number): void {
    const placed = items.filter(isSomewhere);
    const { outgoing, table } = this.session;
    for (let from = 0; from < placed.length; from += ITEMS_PER_REPORT) {
      const told = placed.slice(from, from + ITEMS_PER_REPORT);
      // Of an earlier call, which did not ask for them any more.
      for (const { key } of told) table.takeRefusal(key);
      outgoing.report({
        op: 'update-data',
        items: told.map(({ key, bytes, type, definition, workers }) => ({
          key,
          nbytes: valueBytes(bytes),
          workers,
          type,
          fingerprint: definition,
          reservation,
          ...(replicas === 1 ? {} : { replicas }),
        })),
      });
      table.noteAsked(told.map(({ key }) => key));
    }
  }

  /** The answer comes after all that the scheduler has to say about the data. */
  private async confirm(placings: readonly Placing[]): Promise<void> {
    const keys = placings.map(({ item }) => item.key);
    const { whoHas } = await this.session.request<WhoHasReply>('who-has', { keys });
    for (const key of keys) {
      const reason = this.session.table.takeRefusal(key);
      if (reason !== undefined) throw keyTaken(key, reason);
    }
    placings.forEach(({ item, entry }, index) => {
      const error = entry.error();
      if (error !== undefined) throw error;
      entry.finish(whoHas[index] ?? item.workers, valueBytes(item.bytes));
    });
  }

  /** Releases what the scheduler may have taken for data of this client. */
  private giveUp(placings: Iterable<Placing>, error: Error): void {
    const { outgoing, table } = this.session;
    for (const { item, entry, isNew } of placings) {
      if (!isNew || entry.detached) continue;
      table.abandon(entry, () => error);
      outgoing.releaseKey(item.key);
    }
  }

  private deal(
    items: readonly Item[],
    addresses: readonly string[],
    broadcast: boolean | number,
  ): number {
    const wanted = broadcast === true ? addresses.length : broadcast === false ? 1 : broadcast;
    const copies = Math.max(1, Math.min(wanted, addresses.length));
    for (const item of items) {
      for (let copy = 0; copy < copies; copy++) {
        item.workers.push(addresses[(this.dealt + copy) % addresses.length] as string);
      }
      this.dealt++;
    }
    return copies;
  }

  /**
   * The addresses of suitable workers; waits until there is one.
   * @throws YardmasterError `ERR_NO_WORKER` when there is none in time
   */
  private async workers({
    workers,
    timeoutMs = WORKER_TIMEOUT_MS,
  }: ScatterOptions): Promise<string[]> {
    const { clock } = this.session;
    const deadlineMs = clock.nowMs() + timeoutMs;
    for (;;) {
      const identity = await this.identity();
      const suitable = identity.workers.filter(
        ({ address, name, host, status, language = 'javascript' }) =>
          status === 'running' &&
          language === 'javascript' &&
          (workers === undefined || [address, name, host].some((each) => workers.includes(each))),
      );
      if (suitable.length > 0) return suitable.map(({ address }) => address);
      if (clock.nowMs() >= deadlineMs) {
        const which =
          workers === undefined
            ? 'no worker is running'
            : `none of ${workers.join(', ')} is running`;
        throw new YardmasterError(
          'ERR_NO_WORKER',
          `${which} after ${timeoutMs} ms, so there is nowhere to put the values; start workers first`,
          { timeoutMs, workers },
        );
      }
      await new Promise<void>((resolve) => void clock.setTimer(POLL_MS, resolve));
    }
  }
}

function keyTaken(key: string, reason: string): YardmasterError {
  return new YardmasterError('ERR_KEY_TAKEN', `"${key}" cannot be scattered: ${reason}`, {
    key,
    reason,
  });
}

/** Values that travel in one message unless one alone has more bytes. */
const BATCH_BYTES_MAX = 32 * 1024 * 1024;

/** A value that is to be put on workers. */
interface Item {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly definition: string;
  /** Its definition where the caller chose the key, which does not stand for it then. */
  readonly mark?: string;
  /** Addresses. */
  readonly workers: string[];
}

function isSomewhere({ workers }: Item): boolean {
  return workers.length > 0;
}

/** The outcome of putting items on workers. */
interface PutOutcome {
  /** The items, each with the workers that have taken it. */
  readonly placed: readonly Item[];
  /** The items that were refused somewhere, each with the workers that have not taken it. */
  readonly left: readonly Item[];
  /** The error of one worker; undefined: all have taken everything. */
  readonly failed: Error | undefined;
}

/** Puts each item on its workers, which are tried independently. Never rejects. */
async function putItems(
  peers: Peers,
  items: readonly Item[],
  reservation: number,
  messageBytesMax: number,
): Promise<PutOutcome> {
  const byWorker = new Map<string, Map<string, Uint8Array>>();
  for (const { key, bytes, workers } of items) {
    for (const address of workers) {
      let values = byWorker.get(address);
      values ??= new Map<string, Uint8Array>();
      byWorker.set(address, values);
      values.set(key, bytes);
    }
  }
  const bytesMax = Math.min(BATCH_BYTES_MAX, messageBytesMax / 2);
  let failed: Error | undefined;
  await Promise.all(
    [...byWorker].map(async ([address, values]) => {
      try {
        for (const batch of inBatches(values, bytesMax)) {
          await peers.putData(address, batch, reservation);
          for (const key of batch.keys()) values.delete(key);
        }
      } catch (error) {
        failed ??= error as Error;
      }
    }),
  );
  const isLeft = (key: string, address: string): boolean =>
    byWorker.get(address)?.has(key) === true;
  const placed = items.map((item) => ({
    ...item,
    workers: item.workers.filter((address) => !isLeft(item.key, address)),
  }));
  const left = items.map((item) => ({
    ...item,
    workers: item.workers.filter((address) => isLeft(item.key, address)),
  }));
  return { placed, left: left.filter(isSomewhere), failed };
}

/** Splits the values into messages of at most this many bytes. */
function inBatches(
  values: ReadonlyMap<string, Uint8Array>,
  bytesMax: number,
): Map<string, Uint8Array>[] {
  const batches: Map<string, Uint8Array>[] = [];
  let batch = new Map<string, Uint8Array>();
  let nbytes = 0;
  for (const [key, bytes] of values) {
    if (batch.size > 0 && nbytes + bytes.byteLength > bytesMax) {
      batches.push(batch);
      batch = new Map();
      nbytes = 0;
    }
    batch.set(key, bytes);
    nbytes += bytes.byteLength;
  }
  if (batch.size > 0) batches.push(batch);
  return batches;
}
