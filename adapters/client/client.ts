import { inspect } from 'node:util';
import { YardmasterError } from '../../core/api/index.ts';
import { isPlainObject } from '../../core/util/values.ts';
import { FLAG, oneOf, type Rules } from '../../core/shared/schema.ts';
import { SystemClock } from '../clocks/index.ts';
import {
  checkConnection,
  CONNECT_TIMEOUT_MS,
  type ConnectOptions,
  sessionOptions,
  transportsFor,
} from './connect-options.ts';
import { CoordinationAccess } from './coordination.ts';
import { progress, type Progress, type ProgressOptions } from './progress.ts';
import type { KeyEntry } from './entry.ts';
import type { FetchOptions } from './fetcher.ts';
import { type CancelOptions, type Future, holdingOfFuture } from './future.ts';
import {
  AMOUNT,
  checkOptions,
  checkSubmission,
  checkPriority,
  checkStore,
  type Gathered,
  refuseOption,
  type ResultStoreOption,
  storeSpec,
} from './options.ts';
import { type ScatterOptions, Scatterer } from './scatter.ts';
import { type ComputationReason, explainKept, forgetKept } from './kept-results.ts';
import { Session } from './session.ts';
import { type FirstOptions, firstResult } from './streams.ts';
import { asFutureList, entriesIn, futuresIn, replaceFutures } from './structure.ts';

/** The options of a gathering. */
export interface GatherOptions extends FetchOptions {
  /** `skip` leaves futures that failed out of arrays and Sets. Default `raise`. */
  readonly errors?: 'raise' | 'skip';
}

/** The options of a close. */
export interface CloseOptions {
  /** Milliseconds to wait for what is open; another close without it ends that. Default 0. */
  readonly graceMs?: number;
}

/** Replaces a result that failed. */
const SKIPPED = Symbol('skipped');

/**
 * The way into a cluster: submits tasks, waits for them, fetches their results.
 *
 * Everything that is open when the scheduler goes or the client is closed fails with `ERR_CLOSED`.
 */
export class Client extends CoordinationAccess {
  private readonly scatterer: Scatterer;

  private constructor(
    session: Session,
    /** Its connection serves others after it. */
    private readonly isLent = false,
    resultStore?: ResultStoreOption,
  ) {
    super(session, checkSubmission({ resultStore }));
    this.scatterer = new Scatterer(session, () => this.identity());
  }

  /**
   * @param address - of the scheduler: `tcp://127.0.0.1:8786`
   * @throws YardmasterError `ERR_CONFIG`, `ERR_CONNECT`, `ERR_TIMEOUT`, `ERR_PROTOCOL`, `ERR_REGISTRATION`, `ERR_RESULT_STORE`
   */
  static async connect(address: string, options: ConnectOptions = {}): Promise<Client> {
    checkConnection(address, options);
    checkStore(options.resultStore);
    const { clock = new SystemClock(), name = 'client' } = options;
    const { timeoutMs = CONNECT_TIMEOUT_MS } = options;
    const transports = await transportsFor(address, options, clock);
    const network = { clock, transports, timeoutMs };
    const session = await Session.open(address, name, network, sessionOptions(options));
    return new Client(session, false, options.resultStore);
  }

  /** @internal The client of a task, over a connection that outlives it. */
  static over(session: Session, resultStore?: ResultStoreOption): Client {
    return new Client(session, true, resultStore);
  }

  /** Key under which the scheduler knows this client. */
  get id(): string {
    return this.session.id;
  }

  get isClosed(): boolean {
    return this.session.isClosed;
  }

  /** True when there is a connection at present; a client that reconnects may be without for a while. */
  get isConnected(): boolean {
    return this.session.isConnected;
  }

  [inspect.custom](): string {
    const state = this.isClosed ? 'closed' : this.isConnected ? 'connected' : 'not connected';
    return `<Client ${this.id} ${state}>`;
  }

  /**
   * Reports the progress of futures: at once, after changes, and when all have come to an end; with those that finished, failed
   * and
   * were cancelled apart. Fetches nothing and never rejects.
   * @param futures - also within arrays, objects, Maps and Sets
   */
  progress(futures: unknown, options?: ProgressOptions): AsyncGenerator<Progress, void, undefined> {
    return progress(futuresIn(futures), options);
  }

  /**
   * Fetches the results of all futures inside a structure, many with one request.
   * Fails with the first error unless `errors` is `skip`.
   */
  async gather<T>(structure: T, options: GatherOptions = {}): Promise<Gathered<T>> {
    checkOptions('client.gather', options, GATHER_RULES);
    const list = asFutureList(structure);
    const futures = list ?? futuresIn(structure);
    const results = await this.resultsOf(futures, options);
    if (list !== undefined) {
      const raised = options.errors !== 'skip';
      return (raised ? results : results.filter((each) => each !== SKIPPED)) as Gathered<T>;
    }
    const byFuture = new Map(futures.map((future, index) => [future, results[index]]));
    const gathered = replaceFutures(structure, (future) => byFuture.get(future), SKIPPED);
    return gathered as Gathered<T>;
  }

  /** In order; `SKIPPED` for what failed, unless errors are raised. */
  private async resultsOf(
    futures: readonly Future<unknown>[],
    options: GatherOptions,
  ): Promise<unknown[]> {
    const { session } = this;
    const { errors = 'raise' } = options;
    const entries = futures.map((future) => holdingOfFuture(future).entry);
    const results = new Array<unknown>(futures.length);
    // First all are waited for, so that few requests bring all that is on one worker.
    await session.whenAllSettled(entries, { failFast: errors === 'raise' }, async () => {
      const away: number[] = [];
      for (const [index, entry] of entries.entries()) {
        // Ten thousand results that are here need no promises.
        if (session.isHere(entry)) results[index] = this.resultHere(entry, options);
        else away.push(index);
      }
      const fetching = away.map(async (index) => {
        results[index] = await this.fetched(entries[index] as KeyEntry, options);
      });
      await Promise.all(fetching);
    });
    return results;
  }

  private resultHere(entry: KeyEntry, options: GatherOptions): unknown {
    try {
      return this.session.resultHere(entry);
    } catch (error) {
      this.skip(error, options);
      return SKIPPED;
    }
  }

  private async fetched(entry: KeyEntry, options: GatherOptions): Promise<unknown> {
    try {
      return await this.session.resultOf(entry, options);
    } catch (error) {
      this.skip(error, options);
      return SKIPPED;
    }
  }

  private skip(error: unknown, { errors }: GatherOptions): void {
    if (errors !== 'skip' || this.session.isClosed) throw error;
  }

  /**
   * The result of the first future that is done, or its error, as `Promise.race`.
   * @param futures - at least one
   */
  race<F extends Future<unknown>>(
    futures: Iterable<F>,
    options: FirstOptions = {},
  ): Promise<Gathered<F>> {
    return firstResult('race', futures, options) as Promise<Gathered<F>>;
  }

  /**
   * The first result, as `Promise.any`: errors count only when no future has a result.
   * @throws AggregateError with `errors` in the order of the futures
   */
  any<F extends Future<unknown>>(
    futures: Iterable<F>,
    options: FirstOptions = {},
  ): Promise<Gathered<F>> {
    return firstResult('any', futures, options) as Promise<Gathered<F>>;
  }

  /**
   * Puts values on workers, without going through the scheduler, and gives their futures: of an
   * array in its order, of a plain object under its names, which become the keys.
   *
   * @throws YardmasterError `ERR_NO_WORKER` when no worker came in time, `ERR_NOT_SERIALISABLE`
   */
  scatter<T>(values: readonly T[], options?: ScatterOptions): Promise<Future<T>[]>;
  scatter<T extends Readonly<Record<string, unknown>>>(
    values: T,
    options?: ScatterOptions,
  ): Promise<{ [Name in keyof T]: Future<T[Name]> }>;
  async scatter(
    values: readonly unknown[] | Readonly<Record<string, unknown>>,
    options: ScatterOptions = {},
  ): Promise<unknown> {
    this.session.checkTaking();
    if (Array.isArray(values)) return this.scatterer.scatterList(values, options);
    if (isPlainObject(values)) return this.scatterer.scatterNamed(values, options);
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `scatter wants an array of values, or a plain object with a value for each key, got ${inspect(values, { depth: 0 })}`,
    );
  }

  /** Cancels tasks and their dependents. Callers that wait for one of them get `ERR_CANCELLED`. */
  cancel(futures: unknown, options: CancelOptions = {}): void {
    this.session.cancelEntries(entriesIn(futures), options);
  }

  /**
   * Removes the kept results of futures from the client's store, so that they are computed when they are submitted the
   * next time. Futures that were submitted without `persist` have none.
   *
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the client has no `resultStore`
   */
  async forgetResults(futures: unknown): Promise<void> {
    const { resultStore } = this.options;
    if (resultStore === undefined) refuseOption('resultStore', undefined, 'given when connecting');
    await forgetKept(
      storeSpec(resultStore),
      entriesIn(futures).flatMap(({ contentKey = [] }) => contentKey),
    );
  }

  /**
   * Says why results were computed that could have been kept, of tasks whose keys their author chose: names of a graph,
   * and the option `key`. Ask when they have ended.
   *
   * @param tasks - their futures in any structure, or their keys
   * @throws YardmasterError `ERR_GRAPH_INVALID` when the client has no `resultStore`
   */
  async explain(tasks: unknown): Promise<ComputationReason[]> {
    const { resultStore } = this.options;
    if (resultStore === undefined) refuseOption('resultStore', undefined, 'given when connecting');
    const isKeys = Array.isArray(tasks) && tasks.every((key) => typeof key === 'string');
    const keys = isKeys ? tasks : entriesIn(tasks).map(({ key }) => key);
    return explainKept(storeSpec(resultStore), keys, this.session.id);
  }

  /** Computes failed tasks, and what failed with them, once more. */
  retry(futures: unknown): void {
    this.session.checkOpen();
    this.session.table.retry(entriesIn(futures));
  }

  /**
   * Changes the priority of tasks that have not begun: higher runs earlier, and 0 is the default.
   * Unfinished inputs get at least the priority of the tasks that need them, unless `inputs` is
   * `keep`. Futures that have ended are not changed. For a task that several clients want, the last
   * call wins.
   *
   * @param futures - a future, any structure of them, or a Map with a priority for each
   * @throws YardmasterError `ERR_GRAPH_INVALID` when a priority is not a finite number,
   *   `ERR_CLOSED`
   */
  setPriority(
    futures: unknown,
    priority: number,
    options?: { readonly inputs?: 'raise' | 'keep' },
  ): void;
  setPriority(
    priorities: ReadonlyMap<Future<unknown>, number>,
    options?: { readonly inputs?: 'raise' | 'keep' },
  ): void;
  setPriority(
    futures: unknown,
    priority?: number | { readonly inputs?: 'raise' | 'keep' },
    options?: { readonly inputs?: 'raise' | 'keep' },
  ): void {
    this.session.checkOpen();
    const isForAll = typeof priority === 'number';
    if (!isForAll && !(futures instanceof Map)) {
      refuseOption('priority', priority, 'a finite number, or come in a Map of futures');
    }
    const given = (isForAll ? options : priority) ?? {};
    const { inputs = 'raise' } = checkOptions<{ readonly inputs?: 'raise' | 'keep' }>(
      'client.setPriority',
      given,
      {
        inputs: oneOf('raise', 'keep'),
      },
    );
    const priorities = isForAll
      ? new Map(entriesIn(futures).map((entry) => [entry, checkPriority(priority)]))
      : prioritiesIn(futures as ReadonlyMap<Future<unknown>, number>);
    this.session.table.setPriorities(priorities, inputs === 'raise');
  }

  /**
   * Resolves when all that this client has submitted, cancelled or retried is in the journal of the scheduler, as
   * its durability says.
   * @throws YardmasterError `ERR_JOURNAL` when the scheduler has none, `ERR_CLOSED`
   */
  async committed(): Promise<void> {
    await this.session.connected();
    await this.session.outgoing.whenCommitted();
  }

  /**
   * Releases everything and disconnects. With `graceMs` it takes nothing new, and first waits that long for what is
   * open. What is open then fails with `ERR_CLOSED`, and its tasks are given up. The client of a task releases
   * everything at once, and may be used until the task ends.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const { graceMs } = checkOptions('client.close', options, CLOSE_RULES);
    if (this.isLent) this.session.table.releaseAll();
    else await this.session.close(graceMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const CLOSE_RULES: Rules<CloseOptions> = { graceMs: AMOUNT };
const GATHER_RULES: Rules<GatherOptions> = { errors: oneOf('raise', 'skip'), direct: FLAG };

function prioritiesIn(given: ReadonlyMap<Future<unknown>, number>): Map<KeyEntry, number> {
  const pairs = Array.from(given, ([future, priority]) => {
    return [holdingOfFuture(future).entry, checkPriority(priority)] as const;
  });
  return new Map(pairs);
}
