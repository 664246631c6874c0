import {
  type Channel,
  type Logger,
  type PluginContext,
  YardmasterError,
} from '../../../core/api/index.ts';
import { fetchData } from '../../../core/shared/fetch-data.ts';
import { sayHello } from '../../../core/shared/open-channel.ts';
import { deserialise } from '../../tasks/index.ts';
import type { Opaque } from '../codec/index.ts';
import { openChannel } from '../connection/own-channel.ts';
import { NotPortable, resultRefused } from './refusal.ts';
import { writeValue } from './write-value.ts';

/** A worker that sends nothing for this long counts as gone. */
const ANSWER_TIMEOUT_MS = 60_000;

/** A Dask worker that waits for results of another language. */
export interface WaitingWorker {
  readonly address: string;
  /** Fails a task that was sent there, and has the worker forget it. */
  failTask(key: string, runId: number, error: YardmasterError): void;
}

/** The outcome of a request for results. */
export interface Relayed {
  /** As workers of Dask read them. */
  readonly values: ReadonlyMap<string, Opaque>;
  /** Those that have no equal in Python. */
  readonly refused: ReadonlyMap<string, YardmasterError>;
}

/**
 * Gives results of Node workers to Dask's workers and clients, which reach it where they reach the
 * scheduler: it fetches them, and writes them anew for Python. What cannot be written fails the tasks
 * that wait for it.
 */
export class Relay {
  private channel: Promise<Channel> | undefined;
  /** By worker and key of the result: the runs that wait for it. */
  private readonly waiting = new Map<string, Map<string, Map<string, number>>>();

  constructor(
    private readonly plugin: PluginContext,
    private readonly log: Logger,
    private readonly isDaskWorker: (address: string) => boolean,
    private readonly address: () => string,
  ) {}

  /** Where a peer of Dask finds what these workers hold. */
  sourcesOf(holders: readonly string[]): readonly string[] {
    return this.isForeign(holders) ? [this.address()] : holders;
  }

  /** Whether only workers of another language hold it. */
  isForeign(holders: readonly string[]): boolean {
    const [first] = holders;
    return first !== undefined && !this.isDaskWorker(first);
  }

  /** A task was sent to a worker that has to fetch these. */
  expect(worker: WaitingWorker, task: string, runId: number, keys: readonly string[]): void {
    let ofWorker = this.waiting.get(worker.address);
    if (ofWorker === undefined)
      this.waiting.set(worker.address, (ofWorker = new Map<string, Map<string, number>>()));
    for (const key of keys) {
      const runs = ofWorker.get(key);
      if (runs === undefined) ofWorker.set(key, new Map([[task, runId]]));
      else runs.set(task, runId);
    }
  }

  /** Whether tasks on the worker wait for the result. */
  isAwaited(worker: string, key: string): boolean {
    return this.waiting.get(worker)?.has(key) === true;
  }

  /** The task is not there any more. O(results that the worker waits for). */
  forget(worker: string, task: string): void {
    const ofWorker = this.waiting.get(worker);
    if (ofWorker === undefined) return;
    for (const [key, runs] of ofWorker) {
      if (runs.delete(task) && runs.size === 0) ofWorker.delete(key);
    }
    if (ofWorker.size === 0) this.waiting.delete(worker);
  }

  /** Fails what waits there for results that cannot come. */
  refuse(worker: WaitingWorker, refused: ReadonlyMap<string, YardmasterError>): void {
    for (const [key, error] of refused) {
      const runs = [...(this.waiting.get(worker.address)?.get(key) ?? [])];
      for (const [task, runId] of runs) worker.failTask(task, runId, error);
    }
  }

  /**
   * Fetches results. Results without a holder are left out.
   * @throws YardmasterError `ERR_CLOSED`
   */
  async fetch(keys: readonly string[]): Promise<Relayed> {
    const channel = await this.open();
    const options = { method: 'gather', timeoutMs: ANSWER_TIMEOUT_MS } as const;
    const found = await fetchData(channel, keys, options);
    const values = new Map<string, Opaque>();
    const refused = new Map<string, YardmasterError>();
    for (const [key, bytes] of found.values) {
      try {
        values.set(key, writeValue(deserialise(bytes)));
      } catch (thrown) {
        refused.set(key, refusalOf(thrown, key));
        this.log.debug({ err: thrown, key }, `"${key}" cannot pass to Python`);
      }
    }
    return { values, refused };
  }

  close(): void {
    const reason = new YardmasterError('ERR_CLOSED', 'the scheduler closes');
    this.channel?.then(
      (channel) => channel.abort(reason),
      () => undefined, // The caller of `open` has received the error.
    );
  }

  /** A connection to the own scheduler, which fetches on behalf of those that cannot. */
  private open(): Promise<Channel> {
    this.channel ??= this.connect();
    return this.channel;
  }

  private async connect(): Promise<Channel> {
    const channel = openChannel(this.plugin, {
      onMessage: () => undefined,
      onRequest: (method) => {
        throw new YardmasterError('ERR_PROTOCOL', `the relay does not answer "${method}"`);
      },
      onClose: () => (this.channel = undefined),
    });
    await sayHello(channel, 'peer');
    return channel;
  }
}

function refusalOf(thrown: unknown, key: string): YardmasterError {
  if (thrown instanceof NotPortable) {
    return resultRefused(thrown, key, ['JavaScript', 'Python']);
  }
  if (YardmasterError.is(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new YardmasterError(
    'ERR_NOT_PORTABLE',
    `the result of "${key}" is unreadable: ${message}`,
    { key },
    { cause: thrown },
  );
}
