import { YardmasterError } from '../../core/api/index.ts';
import { serialise, typeName } from '../tasks/index.ts';
import type { SchedulerIdentity } from './cluster-access.ts';
import { Future } from './future.ts';
import { checkKey, hashOfBytes, uniqueKey } from './keys.ts';
import { allocateWithin, checkFits } from './message-limit.ts';
import { checkNames, checkTime, checkWorkers, refuseOption } from './options.ts';
import type { Session } from './session.ts';

/** How to put values on workers. */
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
/** Values that travel in one message unless one alone has more bytes. */
const BATCH_BYTES_MAX = 32 * 1024 * 1024;

interface Item {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly type: string;
  readonly definition: string;
  readonly workers: string[];
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` naming the option */
function checkScatterOptions(options: ScatterOptions): ScatterOptions {
  checkNames(options, ['workers', 'broadcast', 'hash', 'timeoutMs']);
  const { workers, broadcast = false, timeoutMs } = options;
  const isCount = Number.isSafeInteger(broadcast) && (broadcast as number) >= 1;
  if (typeof broadcast !== 'boolean' && !isCount) {
    refuseOption('broadcast', broadcast, 'true, false, or a whole number of copies, at least 1');
  }
  if (timeoutMs !== undefined && timeoutMs !== Infinity) checkTime('timeoutMs', timeoutMs);
  if (workers !== undefined) checkWorkers(workers);
  return options;
}

/** Puts values of the client on workers. */
export class Scatterer {
  /** Goes on where the last scatter ended, so that many small ones spread too. */
  private dealt = 0;

  constructor(
    private readonly session: Session,
    private readonly identity: () => Promise<SchedulerIdentity>,
  ) {}

  async scatterList(
    values: readonly unknown[],
    options: ScatterOptions,
  ): Promise<Future<unknown>[]> {
    const { hash = true } = checkScatterOptions(options);
    const items = values.map((value, index) => {
      const bytes = this.serialised(value, `values[${index}]`);
      const type = typeName(value);
      const definition = hashOfBytes(bytes);
      const key = hash ? `${type}-${definition}` : uniqueKey(type);
      return { key, bytes, type, definition, workers: [] };
    });
    return this.place(items, options);
  }

  async scatterNamed(
    values: Readonly<Record<string, unknown>>,
    options: ScatterOptions,
  ): Promise<Record<string, Future<unknown>>> {
    checkScatterOptions(options);
    const items = Object.entries(values).map(([name, value]) => {
      const bytes = this.serialised(value, name);
      const key = checkKey(name);
      return { key, bytes, type: typeName(value), definition: hashOfBytes(bytes), workers: [] };
    });
    for (const { key, definition } of items) this.session.table.check(key, definition);
    const futures = await this.place(items, options);
    return Object.fromEntries(futures.map((future) => [future.key, future]));
  }

  /** It has to fit into one message, whose limit at a worker is taken to be that at the scheduler. */
  private serialised(value: unknown, what: string): Uint8Array {
    const { messageBytesMax } = this.session;
    const bytes = serialise(value, what, allocateWithin(messageBytesMax, what));
    checkFits(bytes.byteLength, messageBytesMax, what);
    return bytes;
  }

  private async place(items: readonly Item[], options: ScatterOptions): Promise<Future<unknown>[]> {
    const { table, outgoing } = this.session;
    const unique = new Map<string, Item>();
    for (const item of items) if (table.get(item.key) === undefined) unique.set(item.key, item);
    if (unique.size > 0) {
      const addresses = await this.workers(options);
      const copies = this.deal([...unique.values()], addresses, options.broadcast ?? false);
      // So that the memory manager keeps them; on all workers, if all were meant.
      const isForAll = options.broadcast === true && options.workers === undefined;
      const replicas = isForAll ? Infinity : copies;
      await this.put([...unique.values()]);
      const placed = [...unique.values()].filter(({ key }) => table.get(key) === undefined);
      outgoing.report({
        op: 'update-data',
        items: placed.map(({ key, bytes, type, workers }) => ({
          key,
          nbytes: bytes.byteLength,
          workers,
          type,
          ...(replicas === 1 ? {} : { replicas }),
        })),
      });
      for (const { key, definition, workers, bytes } of placed) {
        table.add(key, definition).finish(workers, bytes.byteLength);
      }
    }
    return items.map(
      ({ key, definition }) =>
        new Future(this.session, table.get(key) ?? table.add(key, definition)),
    );
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

  private async put(items: readonly Item[]): Promise<void> {
    const byWorker = new Map<string, Map<string, Uint8Array>>();
    for (const { key, bytes, workers } of items) {
      for (const address of workers) {
        let values = byWorker.get(address);
        values ??= new Map<string, Uint8Array>();
        byWorker.set(address, values);
        values.set(key, bytes);
      }
    }
    await Promise.all(
      [...byWorker].map(async ([address, values]) => {
        const bytesMax = Math.min(BATCH_BYTES_MAX, this.session.messageBytesMax / 2);
        for (const batch of inBatches(values, bytesMax)) {
          await this.session.peers.putData(address, batch);
        }
      }),
    );
  }

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
          { timeoutMs, ...(workers === undefined ? {} : { workers }) },
        );
      }
      await new Promise<void>((resolve) => void clock.setTimer(POLL_MS, resolve));
    }
  }
}

function* inBatches(
  values: ReadonlyMap<string, Uint8Array>,
  bytesMax: number,
): Iterable<Map<string, Uint8Array>> {
  let batch = new Map<string, Uint8Array>();
  let nbytes = 0;
  for (const [key, bytes] of values) {
    if (batch.size > 0 && nbytes + bytes.byteLength > bytesMax) {
      yield batch;
      batch = new Map();
      nbytes = 0;
    }
    batch.set(key, bytes);
    nbytes += bytes.byteLength;
  }
  if (batch.size > 0) yield batch;
}
