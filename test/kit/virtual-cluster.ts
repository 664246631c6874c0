// What a cluster imports when it starts: no time shall pass while modules are read.
import '../../adapters/app/adaptive.ts';
import '../../adapters/app/start-local.ts';
import '../../adapters/executors/inline.ts';
import '../../plugins/active-memory-manager.ts';
import '../../plugins/coordination.ts';
import '../../policies/amm/reduce-replicas.ts';
import '../../policies/ordering/depth-first.ts';
import '../../policies/queuing/root-ish.ts';
import '../../policies/worker-selection/earliest-start.ts';
import { LocalCluster, type LocalClusterOptions } from '../../adapters/app/local-cluster.ts';
import type { Client } from '../../adapters/client/index.ts';
import { VirtualClock } from '../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../adapters/transports/memory.ts';
import { MemoryLog } from '../bad-input/memory-log.ts';
import { onTestFinished } from 'vitest';
import type { WorkerView } from '../../core/api/index.ts';

/** Virtual time that a test waits at most. */
const TIME_MS_MAX = 1_000_000;

/** A whole cluster in one thread and in virtual time. Every invariant is checked. */
export class VirtualCluster {
  readonly clock = new VirtualClock(1_000_000);
  readonly log = new MemoryLog();
  readonly transport = new InMemoryTransport(this.clock);
  local!: LocalCluster;
  client!: Client;

  static async start(
    workers?: number,
    options: LocalClusterOptions & { readonly scheduler?: object } = {},
  ): Promise<VirtualCluster> {
    const { scheduler, ...rest } = options;
    const cluster = new VirtualCluster();
    const { clock, log, transport } = cluster;
    cluster.local = await cluster.passing(
      LocalCluster.start({
        mode: 'inline',
        workers,
        clock,
        log,
        transport,
        // Every result is fetched, as large ones are.
        config: { scheduler: { validate: true, sendAlong: 0, ...scheduler } },
        ...rest,
      }),
    );
    cluster.client = await cluster.passing(cluster.local.client());
    return cluster;
  }

  /** Lets time pass until the promise is settled. */
  async passing<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = (): void => void (isSettled = true);
    promise.then(settle, settle);
    await this.until(() => isSettled);
    return promise;
  }

  /** Lets time pass until it is so. Modules and tasks that sleep take real time, too. */
  async until(isSo: () => boolean): Promise<void> {
    const limitMs = this.clock.nowMs() + TIME_MS_MAX;
    while (!isSo()) {
      await new Promise((resolve) => setImmediate(resolve));
      const { nextTimerMs } = this.clock;
      if (isSo() || nextTimerMs === undefined) continue;
      if (nextTimerMs > limitMs) throw new Error('what the test waits for does not happen');
      await this.clock.advanceToAsync(nextTimerMs);
    }
  }

  worker(name: string): WorkerView {
    const { cluster } = this.local.scheduler;
    const address = [...cluster.workers.values()].find((worker) => worker.name === name)?.address;
    const worker = cluster.workers.get(address ?? '');
    if (worker === undefined) throw new Error(`no worker ${name}`);
    return worker;
  }

  get names(): string[] {
    return [...this.local.scheduler.cluster.workers.values()].map(({ name }) => name);
  }

  /** Names of the workers that hold the result, sorted. */
  holders(key: string): string[] {
    const task = this.local.scheduler.cluster.tasks.get(key);
    return (task?.whoHas.items ?? []).map(({ name }) => name).sort();
  }

  async close(): Promise<void> {
    await this.passing(this.local.close());
  }
}

/** A cluster that the end of the test closes. */
export async function startCluster(
  ...given: Parameters<typeof VirtualCluster.start>
): Promise<VirtualCluster> {
  const cluster = await VirtualCluster.start(...given);
  onTestFinished(() => cluster.close());
  return cluster;
}
