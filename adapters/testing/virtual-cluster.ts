import { setTimeout as sleep } from 'node:timers/promises';
import { type Transport, YardmasterError } from '../../core/api/index.ts';
import { loadTransports } from '../../core/plugin-host/load-extensions.ts';
import { resolverIn } from '../../core/plugin-host/module-files.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { lineLog } from '../../core/shared/line-log.ts';
import { checkCall, DURATION, type Rules } from '../../core/shared/schema.ts';
import { show } from '../../core/shared/words.ts';
import { isPromise } from '../../core/util/values.ts';
import '../../plugins/active-memory-manager.ts';
import '../../plugins/coordination.ts';
import '../../plugins/work-stealing.ts';
import '../../policies/amm/reduce-replicas.ts';
import '../../policies/fairness/fifo.ts';
import '../../policies/ordering/depth-first.ts';
import '../../policies/queuing/root-ish.ts';
import '../../policies/stealing/dask.ts';
import '../../policies/worker-selection/earliest-start.ts';
import '../app/adaptive.ts';
import { builtins } from '../app/builtin-extensions.ts';
import { CLUSTER_RULES } from '../app/local-cluster-options.ts';
import { LocalCluster, type LocalClusterOptions } from '../app/local-cluster.ts';
import '../app/start-local.ts';
import { type RunningWorker, startWorker, type StartWorkerOptions } from '../app/start-worker.ts';
import type { Client, ConnectOptions } from '../client/index.ts';
import { VirtualClock } from '../clocks/virtual-clock.ts';
import '../executors/inline.ts';
import { InMemoryTransport } from '../transports/memory.ts';
import { FaultyTransport } from './faulty-transport.ts';
import { isRealWorkPending, watchRealWork } from './real-work.ts';

// What a cluster imports when it starts: no virtual time passes while modules are read.

/** The options of a virtual cluster. Everything has a default; tasks run inline. */
export interface VirtualClusterOptions extends Omit<
  LocalClusterOptions,
  'clock' | 'mode' | 'execArgv' | 'inspect' | 'onStderr'
> {
  /** Milliseconds that a message takes in memory, which is the default `transport`. Default 0. */
  readonly delayMs?: number;
  /** The time at the start. Default 0. */
  readonly nowMs?: number;
}

const RULES: Rules<VirtualClusterOptions> = {
  ...CLUSTER_RULES,
  delayMs: DURATION,
  nowMs: DURATION,
};

/**
 * A whole cluster in one thread and in virtual time: scheduler, workers and clients, over a network
 * in memory that can be made to fail. The same program gives the same run, and an hour takes a
 * moment.
 *
 * ```ts
 * const cluster = await VirtualCluster.start({ workers: 2, config: { scheduler: { plugins: [plugin] } } });
 * const client = await cluster.client();
 * expect(await cluster.drive(client.submit(square, 3).result())).toBe(9);
 * await cluster.close();
 * ```
 */
export class VirtualCluster {
  readonly clock: VirtualClock;
  readonly transport: FaultyTransport;
  /** Warnings and errors, one line each, unless a `log` was given. */
  readonly logged: string[] = [];
  private local!: LocalCluster;
  private readonly stopWatching = watchRealWork();
  private readonly workers: RunningWorker[] = [];
  private readonly networkMs: number;

  private constructor(clock: VirtualClock, delayMs: number, transport: Transport | undefined) {
    this.clock = clock;
    const inner = transport ?? new InMemoryTransport(clock, { delayMs });
    this.transport = new FaultyTransport(inner, clock);
    this.networkMs = transport === undefined ? 0 : NETWORK_MS;
  }

  /** @throws YardmasterError as `LocalCluster.start` */
  static async start(options: VirtualClusterOptions = {}): Promise<VirtualCluster> {
    checkCall('VirtualCluster.start', options, RULES);
    const { nowMs = 0, delayMs = 0, ...rest } = options;
    const clock = new VirtualClock(nowMs);
    const given = rest.transport === undefined ? [] : [rest.transport];
    const made = await loadTransports(given, resolverIn(process.cwd(), builtins), clock);
    const cluster = new VirtualCluster(clock, delayMs, [...made.values()][0]);
    const { transport } = cluster;
    const log = lineLog(cluster.logged);
    try {
      cluster.local = await cluster.drive(
        LocalCluster.start({ log, ...rest, mode: 'inline', clock, transport }),
      );
    } catch (error) {
      cluster.stopWatching();
      throw error;
    }
    return cluster;
  }

  get scheduler(): Scheduler {
    return this.local.scheduler;
  }

  /** Of the scheduler. */
  get address(): string {
    return this.local.address;
  }

  /** The parts that need no driving: `scaleTo`, `adapt`, `workerCount`. Drive what they return. */
  get cluster(): LocalCluster {
    return this.local;
  }

  client(options: Omit<ConnectOptions, 'transports' | 'clock'> = {}): Promise<Client> {
    return this.drive(this.local.client(options));
  }

  /** Starts another worker, with its own options. It is closed together with the cluster. */
  async startWorker(options: Omit<StartWorkerOptions, 'clock'> = {}): Promise<RunningWorker> {
    const worker = await this.drive(
      startWorker(this.address, {
        executor: 'inline',
        isGuest: true,
        log: lineLog(this.logged),
        transports: [this.transport],
        ...options,
        clock: this.clock,
      }),
    );
    this.workers.push(worker);
    return worker;
  }

  /**
   * Lets virtual time pass, timer by timer, until a promise is settled, and returns what it resolves to. Real
   * time passes as well where something takes it: modules that are imported, files, sockets. While a task waits
   * for a timer, file or connection of its own, virtual time stands still, for `idleMs` at most.
   *
   * @throws what the promise rejects with; YardmasterError `ERR_CONFIG` when it is none, `ERR_TIMEOUT` when the time is
   *   over, or when no timer is left and nothing happens any more
   */
  drive<T>(promise: PromiseLike<T>, options?: DriveOptions): Promise<T> {
    return drive(this.clock, promise, options, this.networkMs);
  }

  /** As {@link drive}, until a predicate holds. @throws YardmasterError `ERR_TIMEOUT` */
  until(holds: () => boolean, options?: DriveOptions): Promise<void> {
    return driveUntil(this.clock, holds, options, this.networkMs);
  }

  /** Advances the virtual time by this duration. */
  async pass(durationMs: number): Promise<void> {
    await this.clock.advanceAsync(durationMs);
  }

  async close(): Promise<void> {
    this.transport.restore();
    await this.drive(Promise.all(this.workers.splice(0).map((worker) => worker.close())));
    await this.drive(this.local.close());
    this.stopWatching();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The end of {@link VirtualCluster.drive}. */
export interface DriveOptions {
  /** Virtual milliseconds that may pass. Default 1 000 000. */
  readonly maxMs?: number;
  /**
   * Real milliseconds for which nothing may happen when no timer is left, and for which virtual time stands
   * still while tasks wait in real time. Default 5000.
   */
  readonly idleMs?: number;
}

const MAX_MS = 1_000_000;
const IDLE_MS = 5000;
/** Real milliseconds, before virtual time goes on, for messages of a transport that has sockets. */
const NETWORK_MS = 1;

/** {@link VirtualCluster.drive} for what is made of parts. @param networkMs - real time before each step */
export async function drive<T>(
  clock: VirtualClock,
  promise: PromiseLike<T>,
  options?: DriveOptions,
  networkMs?: number,
): Promise<T> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  checkPromise(promise);
  promise.then(settle, settle);
  await driveUntil(clock, () => isSettled, options, networkMs);
  return promise;
}

/** {@link VirtualCluster.until} for what is made of parts. */
export async function driveUntil(
  clock: VirtualClock,
  holds: () => boolean,
  { maxMs = MAX_MS, idleMs = IDLE_MS }: DriveOptions = {},
  networkMs = 0,
): Promise<void> {
  const stopWatching = watchRealWork();
  const limitMs = clock.nowMs() + maxMs;
  let idleSinceMs: number | undefined;
  let standingSinceMs: number | undefined;
  try {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (holds()) return;
      if (isRealWorkPending()) {
        standingSinceMs ??= performance.now();
        if (performance.now() - standingSinceMs <= idleMs) {
          await sleep(1);
          continue;
        }
      } else standingSinceMs = undefined;
      if (networkMs > 0) {
        await sleep(networkMs);
        if (holds()) return;
      }
      const { nextTimerMs } = clock;
      if (nextTimerMs === undefined) {
        idleSinceMs ??= performance.now();
        if (performance.now() - idleSinceMs > idleMs) {
          throw stuck('no timer is left', clock, idleMs);
        }
        continue;
      }
      idleSinceMs = undefined;
      if (nextTimerMs > limitMs) {
        throw stuck(`${maxMs} ms of virtual time are over`, clock, idleMs);
      }
      await clock.advanceToAsync(nextTimerMs);
    }
  } finally {
    stopWatching();
  }
}

function checkPromise(promise: unknown): void {
  if (isPromise(promise)) return;
  throw new YardmasterError(
    'ERR_CONFIG',
    `drive wants the promise that virtual time shall settle, such as future.result(), got ${show(promise)}`,
  );
}

function stuck(why: string, clock: VirtualClock, idleMs: number): YardmasterError {
  const advice = isRealWorkPending()
    ? `; a task waits for a timer, file or connection for more than ${idleMs} ms of real time: give a larger idleMs`
    : '';
  return new YardmasterError(
    'ERR_TIMEOUT',
    `what drive waits for did not happen: ${why}; the virtual clock stands at ${clock.nowMs()} ms${advice}`,
    { nowMs: clock.nowMs() },
  );
}
