import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import {
  type Clock,
  type Logger,
  type RecordingInfo,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { InTurn } from '../../core/util/steps.ts';
import { show } from '../../core/shared/words.ts';
import { countOf } from '../../core/util/values.ts';
import { Client, type CloseOptions, type ConnectOptions } from '../client/index.ts';
import { SystemClock } from '../clocks/index.ts';
import {
  type Adaptive,
  type AdaptiveCluster,
  type AdaptOptions,
  keptError,
  type KeptWorker,
  retireSurplus,
  surplusOf,
} from './adaptive.ts';
import { importingTaskModule } from '../tasks/index.ts';
import type { LocalClusterOptions } from './local-cluster-options.ts';
import type { LocalParts } from './start-local.ts';
import type { RunningScheduler } from './start-scheduler.ts';
import type { ClusterWorker, WorkerStarter } from './lifetime.ts';

export type { ClusterMode, LocalClusterOptions } from './local-cluster-options.ts';

const DEFAULT_WORKERS = 2;
const START_TIMEOUT_MS = 30_000;

/**
 * A scheduler with workers on this machine: the quickest way to a cluster, and the one for tests.
 *
 * ```ts
 * await using cluster = await LocalCluster.start({ workers: 4 });
 * const client = await cluster.client();
 * ```
 */
export class LocalCluster {
  private readonly workers: ClusterWorker[] = [];
  private readonly clients = new Set<Client>();
  private readonly clock: Clock;
  private readonly timeoutMs: number;
  private workersMade = 0;
  private readonly scaling = new InTurn();
  private closing: Promise<void> | undefined;
  private isDraining = false;
  /** Ends what waits for workers when the cluster closes. */
  private readonly stop = new AbortController();
  private adaptive: Adaptive | undefined;
  /** Counts the calls that say how many workers there are to be: the last one holds. */
  private scalings = 0;
  private readonly log: Logger | undefined;
  private readonly codeRoot: string | undefined;

  private readonly running: RunningScheduler;
  private readonly starter: WorkerStarter;

  private constructor(
    private readonly parts: LocalParts,
    options: LocalClusterOptions,
  ) {
    this.running = parts.running;
    this.starter = parts.starter;
    this.clock = options.clock ?? new SystemClock();
    this.timeoutMs = options.timeoutMs ?? START_TIMEOUT_MS;
    this.log = options.log;
    this.codeRoot = options.codeRoot;
  }

  /**
   * Starts scheduler and workers, and waits until the workers are there.
   *
   * @throws YardmasterError `ERR_CONFIG`, `ERR_PLUGIN_LOAD` and so on from the scheduler;
   *   `ERR_NO_WORKER` when a worker ends before it is there, with what it wrote; `ERR_TIMEOUT`
   */
  static async start(options: LocalClusterOptions = {}): Promise<LocalCluster> {
    refuseInsideTask();
    const { startLocal } = await import('./start-local.ts');
    const cluster = new LocalCluster(await startLocal(options), options);
    try {
      const { adapt, workers = adapt === undefined ? DEFAULT_WORKERS : (adapt.minimum ?? 0) } =
        options;
      await cluster.scaleTo(workers);
      if (adapt !== undefined) await cluster.adapt(adapt);
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** The address at which clients and further workers reach the scheduler. */
  get address(): string {
    return this.running.address;
  }

  get scheduler(): Scheduler {
    return this.running.scheduler;
  }

  /** The address that a browser opens; undefined without a dashboard. */
  get dashboardUrl(): string | undefined {
    const { scheduler } = this;
    if (!scheduler.plugins.some(({ name }) => name === 'dashboard')) return undefined;
    return scheduler.command('dashboard.url') as string;
  }

  [inspect.custom](): string {
    const dashboard = this.closing === undefined ? this.dashboardUrl : undefined;
    const shown = dashboard === undefined ? '' : `, dashboard ${dashboard}`;
    const state = this.closing === undefined ? countOf(this.workerCount, 'worker') : 'closed';
    return `<LocalCluster ${this.address} ${state}${shown}>`;
  }

  /** Workers that were started and have not ended; one whose process is being replaced counts. */
  get workerCount(): number {
    return this.workers.length;
  }

  /** Ids of the running worker processes, for mode `processes`. */
  get pids(): readonly number[] {
    return this.workers.flatMap((worker) => worker.pid ?? []);
  }

  /** A new client, closed together with the cluster. */
  async client(options: Omit<ConnectOptions, 'transports' | 'clock'> = {}): Promise<Client> {
    this.checkOpen();
    if (this.isDraining) throw closedError();
    const { transports, clientAddress } = this.parts;
    const { clock } = this;
    const { resultStore } = this.parts;
    const own = {
      ...(this.codeRoot !== undefined && { codeRoot: this.codeRoot }),
      ...(resultStore && { resultStore }),
    };
    const client = await Client.connect(clientAddress, { ...own, ...options, transports, clock });
    for (const other of this.clients) if (other.isClosed) this.clients.delete(other);
    this.clients.add(client);
    return client;
  }

  /**
   * Starts or retires workers until there are `count`. The youngest leave first; what only they hold moves
   * to others before. What no other worker takes is computed again when it is needed. A worker stays when
   * it holds an actor, or data that cannot be computed again and that no other worker takes. Ends
   * {@link adapt}.
   *
   * @throws YardmasterError as {@link start}; `ERR_RETIRE` when workers stay, which it names
   */
  async scaleTo(count: number): Promise<void> {
    this.scalings++;
    await this.stopAdapting();
    await this.scaling.run(() => this.scale(count));
  }

  /**
   * From now on starts workers when there is more work than they can do in time, and retires them,
   * their data first, when there is less. Replaces an earlier `adapt`; `scaleTo` ends it.
   *
   * @throws YardmasterError `ERR_CONFIG`, `ERR_CLOSED`
   */
  async adapt(options: AdaptOptions = {}): Promise<void> {
    const call = ++this.scalings;
    const { Adaptive } = await import('./adaptive.ts');
    const { textLogger } = await import('./text-log.ts');
    await this.stopAdapting();
    this.checkOpen();
    if (call !== this.scalings) return;
    const log = this.log ?? textLogger('cluster');
    this.adaptive = new Adaptive(this.adaptiveCluster(), this.clock, log, options);
    this.running.expectWorkers(true);
  }

  /**
   * Records all that happens to the scheduler from here on, for `yardmaster replay`.
   * @param file - path of the recording; it must not exist yet
   * @throws YardmasterError `ERR_LOG` when it cannot be written, or when there is another one; `ERR_CLOSED`
   */
  record(file: string): Promise<RecordingInfo> {
    this.checkOpen();
    return this.running.record(file);
  }

  /** Ends the recording. @throws YardmasterError `ERR_LOG` when there is none, or when its end cannot be written */
  stopRecording(): Promise<RecordingInfo> {
    return this.running.stopRecording();
  }

  /**
   * Closes clients, workers and the scheduler. With `graceMs` the clients take nothing new, and what is open has that long to
   * end; another call without it ends the wait.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    if (options.graceMs !== undefined && this.closing === undefined) {
      this.isDraining = true;
      await this.closeClients(options);
    }
    this.closing ??= this.shutDown();
    await this.closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private async stopAdapting(): Promise<void> {
    const { adaptive } = this;
    this.adaptive = undefined;
    if (adaptive !== undefined) this.running.expectWorkers(false);
    await adaptive?.stop();
  }

  private adaptiveCluster(): AdaptiveCluster {
    const { scheduler, workers } = this;
    const own = (names: readonly string[]): readonly string[] =>
      names.filter((name) => workers.some((worker) => worker.name === name));
    return {
      get workerCount() {
        return workers.length;
      },
      target: (targetDurationMs) =>
        scheduler.command('amm.adaptiveTarget', { targetDurationMs }) as number,
      closable: (leave) => {
        const chosen = scheduler.command('amm.workersToClose', { target: leave });
        return own((chosen as readonly { name: string }[]).map(({ name }) => name));
      },
      start: (count) => this.scaling.run(() => this.scale(workers.length + count)),
      retire: async (names) => {
        await (scheduler.command('amm.retireWorkers', { names }) as Promise<unknown>);
      },
    };
  }

  private async scale(count: number): Promise<void> {
    this.checkOpen();
    if (!Number.isInteger(count) || count < 0) {
      const message = `the number of workers must be a whole number from 0 (got ${show(count)})`;
      throw new YardmasterError('ERR_CONFIG', message, { count });
    }
    const kept = await this.shrink(count);
    const missing = Math.max(0, count - this.workers.length);
    const started = await Promise.allSettled(
      Array.from({ length: missing }, () => this.startWorker()),
    );
    const failed = started.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    if (kept.length > 0) throw keptError(kept, count);
  }

  /** Ends at once when the cluster closes. */
  private async shrink(count: number): Promise<readonly KeptWorker[]> {
    if (this.workers.length <= count) return [];
    const surplus = surplusOf(this.workers, count, this.scheduler);
    return this.untilStopped(retireSurplus(surplus, this.scheduler));
  }

  /** @throws YardmasterError `ERR_CLOSED` when the cluster closes before */
  private async untilStopped<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.stop;
    let onStop = (): void => undefined;
    const stopped = new Promise<never>((_, reject) => {
      onStop = () => reject(closedError());
      signal.addEventListener('abort', onStop);
    });
    try {
      return await Promise.race([work, stopped]);
    } finally {
      signal.removeEventListener('abort', onStop);
    }
  }

  private async startWorker(): Promise<void> {
    const worker = await this.starter(`worker-${this.workersMade++}`);
    this.workers.push(worker);
    const removed = worker.ended.then(() => {
      const index = this.workers.indexOf(worker);
      if (index >= 0) this.workers.splice(index, 1);
    });
    inBackground(removed, 'the end of a worker of a local cluster could not be followed');
    const isThere = this.registration(worker.name);
    const died = worker.ended.then(() => {
      throw worker.deathError();
    });
    try {
      await Promise.race([isThere.done, died]);
    } finally {
      isThere.cancel();
      died.catch(() => undefined);
    }
  }

  private registration(name: string): { readonly done: Promise<void>; cancel(): void } {
    const { events, cluster } = this.scheduler;
    let cancel = (): void => undefined;
    const done = new Promise<void>((resolve, reject) => {
      const check = (): void => {
        for (const worker of cluster.workers.values()) if (worker.name === name) resolve();
      };
      const { signal } = this.stop;
      const onStop = (): void => reject(closedError());
      signal.addEventListener('abort', onStop);
      const timer = this.clock.setTimer(this.timeoutMs, () => {
        reject(
          new YardmasterError(
            'ERR_TIMEOUT',
            `the worker "${name}" did not register within ${this.timeoutMs} ms; see its log, or give timeoutMs`,
            { worker: name, timeoutMs: this.timeoutMs },
          ),
        );
      });
      cancel = () => {
        timer.cancel();
        signal.removeEventListener('abort', onStop);
        events.off('worker-added', check);
      };
      events.on('worker-added', check);
      check();
    });
    return { done, cancel: () => cancel() };
  }

  private checkOpen(): void {
    if (this.closing === undefined) return;
    throw closedError();
  }

  private async closeClients(options?: CloseOptions): Promise<void> {
    await Promise.all([...this.clients].map((client) => client.close(options)));
  }

  private async shutDown(): Promise<void> {
    this.stop.abort();
    this.running.expectEnd();
    const adapting = this.stopAdapting();
    await this.closeClients();
    await this.scaling.settled();
    await Promise.all([...this.workers].map((worker) => worker.close()));
    await this.running.close(); // Ends a retirement that is under way, too.
    await adapting;
  }
}

function closedError(): YardmasterError {
  return new YardmasterError('ERR_CLOSED', 'the cluster is closed; start another one');
}

/** A module of tasks that starts a cluster would start one in each worker that imports it. */
function refuseInsideTask(): void {
  const module = importingTaskModule();
  if (isMainThread || module === undefined) return;
  throw new YardmasterError(
    'ERR_CONFIG',
    `${module} starts a cluster at its top level, and workers import it for its tasks; move the tasks into a separate module`,
    { module },
  );
}
