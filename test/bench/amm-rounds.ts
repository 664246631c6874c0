import { noHooks } from '../../core/kernel/ports.ts';
import { SchedulerKernel } from '../../core/kernel/scheduler-kernel.ts';
import type { ActiveMemoryManagerPolicy } from '../../core/api/index.ts';
import { MemoryManager } from '../../plugins/amm/memory-manager.ts';
import { ReduceReplicas } from '../../policies/amm/reduce-replicas.ts';
import { RetireWorker } from '../../policies/amm/retire-worker.ts';
import { fifo } from '../../policies/fairness/fifo.ts';
import { depthFirst } from '../../policies/ordering/depth-first.ts';
import { rootish } from '../../policies/queuing/root-ish.ts';
import { earliestStart } from '../../policies/worker-selection/earliest-start.ts';

/** What one round cost, with all that the kernel does and says because of it. */
export interface RoundMeasurement {
  readonly tasks: number;
  readonly workers: number;
  /** Copies that were dropped, or keys that were given to others. */
  readonly units: number;
  readonly msFirst: number;
  readonly usPerUnit: number;
  /** Median of the rounds that follow and find nothing to do. */
  readonly msNothingToDo: number;
  readonly messages: number;
}

export type AmmBenchKind = 'reduce' | 'retire';

const RESULT_BYTES = 1000;
const PROCESS_BYTES = 1e9;

/**
 * One round of `reduce-replicas` over tasks that have two copies each, or of `retire-worker` for one
 * worker of many.
 */
export function measureRound(
  kind: AmmBenchKind,
  taskCount: number,
  workerCount: number,
): RoundMeasurement {
  // A scheduler lives for days; its code is compiled in its first minutes.
  for (let run = 0; run < 10; run++) new Rounds(kind, 20_000, Math.min(workerCount, 20)).measure();
  return new Rounds(kind, taskCount, workerCount).measure();
}

class Rounds {
  private readonly kernel = makeKernel();
  private messages = 0;
  private stimulusCount = 0;

  constructor(
    private readonly kind: AmmBenchKind,
    private readonly taskCount: number,
    private readonly workerCount: number,
  ) {
    const addresses = Array.from({ length: workerCount }, (_, index) => this.addWorker(index));
    const copies = kind === 'reduce' ? 2 : 1;
    const items = Array.from({ length: taskCount }, (_, index) => ({
      key: `x-${index}`,
      nbytes: RESULT_BYTES,
      workers: Array.from(
        { length: copies },
        (_, copy) => addresses[(index + copy * 7) % workerCount] as string,
      ),
    }));
    this.handle({ op: 'register-client', client: 'c' });
    this.handle({ op: 'update-data', client: 'c', items });
    if (kind === 'retire') {
      const status = 'closing-gracefully';
      this.handle({ op: 'set-worker-status', worker: addresses[0] as string, status });
    }
    this.messages = 0;
  }

  measure(): RoundMeasurement {
    const { cluster } = this.kernel;
    const manager = new MemoryManager({
      cluster: () => cluster,
      measure: 'optimistic',
      nowMs: () => 0,
      enact: (moves) => this.handle({ op: 'move-replicas', ...moves }),
      report: (error) => {
        throw error;
      },
    });
    manager.policies.add(this.policy());
    quieten();
    let units = 0;
    const usFirst = cpuUs(() => (units = manager.runOnce().accepted));
    const { messages } = this;
    const expected = this.kind === 'reduce' ? this.taskCount : this.keysOfFirst;
    if (units !== expected) throw new Error(`${units} instead of ${expected} were accepted`);
    const rest = Array.from({ length: 5 }, () => cpuUs(() => void manager.runOnce()));
    rest.sort((a, b) => a - b);
    return {
      tasks: this.taskCount,
      workers: this.workerCount,
      units,
      msFirst: round(usFirst / 1000),
      usPerUnit: round(usFirst / units),
      msNothingToDo: round((rest[2] ?? 0) / 1000),
      messages,
    };
  }

  private get keysOfFirst(): number {
    return Math.ceil(this.taskCount / this.workerCount);
  }

  private policy(): ActiveMemoryManagerPolicy<unknown> {
    const [first] = this.kernel.cluster.workersByRank;
    return this.kind === 'reduce'
      ? new ReduceReplicas({})
      : new RetireWorker({ address: first?.address ?? '' });
  }

  private addWorker(index: number): string {
    const address = `tcp://10.0.${Math.floor(index / 250)}.${(index % 250) + 1}:4000`;
    const identity = {
      address,
      serverId: address,
      name: address,
      host: address,
      threadCount: 2,
      memoryLimitBytes: 2 ** 33,
      resources: {},
    };
    const metrics = {
      memoryBytes: PROCESS_BYTES,
      spilledMemoryBytes: 0,
      spilledDiskBytes: 0,
      managedBytes: 0,
    };
    this.handle({ op: 'register-worker', identity, status: 'running', metrics });
    return address;
  }

  private handle(stimulus: DistributiveOmit<Parameters<SchedulerKernel['handle']>[0]>): void {
    const stimulusId = `s-${this.stimulusCount++}`;
    this.messages += this.kernel.handle({ ...stimulus, stimulusId }, 0).toWorkers.length;
  }
}

type DistributiveOmit<T> = T extends unknown ? Omit<T, 'stimulusId'> : never;

function makeKernel(): SchedulerKernel {
  const policies = {
    workerSelection: earliestStart.create({}),
    queuing: rootish.create({ workerSaturation: Infinity }),
    ordering: depthFirst.create({}),
    fairness: fifo.create({}),
  };
  return new SchedulerKernel(
    {},
    {
      workerSelection: { name: 'earliest-start', policy: policies.workerSelection },
      queuing: { name: 'root-ish', policy: policies.queuing },
      ordering: { name: 'depth-first', policy: policies.ordering },
      fairness: { name: 'fifo', policy: policies.fairness },
      fallbacks: policies,
      hooks: noHooks(),
      onPolicyFailure: ({ error }) => {
        throw error;
      },
    },
    0,
  );
}

/** The collector's own threads work on after a collection, and count as CPU time of the process. */
function quieten(): void {
  (globalThis as { gc?: () => void }).gc?.();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
}

/** CPU time of the process, user and system, in microseconds. */
function cpuUs(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
