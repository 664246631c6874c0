// What a cluster imports when it starts: no virtual time passes while modules are read.
import '../app/adaptive.ts';
import '../app/start-local.ts';
import '../executors/inline/index.ts';
import '../../plugins/active-memory-manager.ts';
import '../../plugins/coordination.ts';
import '../../plugins/work-stealing.ts';
import '../../policies/amm/reduce-replicas.ts';
import '../../policies/fairness/fifo.ts';
import '../../policies/ordering/baselines/depth-first.ts';
import '../../policies/queuing/root-ish.ts';
import '../../policies/stealing/dask.ts';
import '../../policies/worker-selection/earliest-start.ts';
import { checkCallOptions, DURATION, type OptionRules } from '../../core/shared/call-options.ts';
import type { Scheduler } from '../../core/scheduler-host/scheduler.ts';
import { LocalCluster, type LocalClusterOptions } from '../app/local-cluster.ts';
import { CLUSTER_RULES } from '../app/local-cluster-options.ts';
import { type RunningWorker, startWorker } from '../app/start-worker.ts';
import type { StartWorkerOptions } from '../app/start-worker-options.ts';
import type { Client, ConnectOptions } from '../client/index.ts';
import { VirtualClock } from '../clocks/virtual-clock.ts';
import { InMemoryTransport } from '../transports/memory/index.ts';
import { drive, driveUntil, type DriveOptions } from './drive.ts';
import { FaultyTransport } from './faulty-transport.ts';
import { watchRealWork } from './real-work.ts';
import { lineLog } from './line-log.ts';

/** What to start. Everything has a default; tasks run inline. */
export interface VirtualClusterOptions extends Omit<
  LocalClusterOptions,
  'clock' | 'mode' | 'nanny' | 'transport' | 'execArgv' | 'inspect' | 'onStderr'
> {
  /** Milliseconds that a message takes. Default 0. */
  readonly delayMs?: number;
  /** Where time starts. Default 0. */
  readonly nowMs?: number;
}

const RULES: OptionRules<VirtualClusterOptions> = {
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

  private constructor(delayMs: number, nowMs: number) {
    this.clock = new VirtualClock(nowMs);
    this.transport = new FaultyTransport(new InMemoryTransport(this.clock, { delayMs }));
  }

  /** @throws YardmasterError as `LocalCluster.start` */
  static async start(options: VirtualClusterOptions = {}): Promise<VirtualCluster> {
    checkCallOptions('VirtualCluster.start', options, RULES);
    const { delayMs = 0, nowMs = 0, ...rest } = options;
    const cluster = new VirtualCluster(delayMs, nowMs);
    const { clock, transport } = cluster;
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

  /** See {@link drive}. */
  drive<T>(promise: PromiseLike<T>, options?: DriveOptions): Promise<T> {
    return drive(this.clock, promise, options);
  }

  /** Lets time pass until it is so. */
  until(holds: () => boolean, options?: DriveOptions): Promise<void> {
    return driveUntil(this.clock, holds, options);
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
