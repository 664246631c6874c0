import { SchedulerKernel } from '../../core/kernel/kernel.ts';
import type { ActiveMemoryManagerPolicy, MoveReplicas } from '../../core/api/index.ts';
import { trust } from '../../core/shared/read-only.ts';
import { MemoryManager } from '../../plugins/amm/memory-manager.ts';
import { ReduceReplicas } from '../../policies/amm/reduce-replicas.ts';
import { RetireWorker } from '../../policies/amm/retire-worker.ts';
import { makePorts } from '../kit/ports.ts';

/** What rounds cost on average, with all that the kernel does and says because of them. */
export interface RoundMeasurement {
  readonly tasks: number;
  readonly workers: number;
  readonly rounds: number;
  /** Copies that were dropped, or keys that were given to others, in one round. */
  readonly units: number;
  readonly ms: number;
  readonly usPerUnit: number;
  /** Of a round that finds nothing to do. */
  readonly msNothingToDo: number;
  readonly messages: number;
}

export type AmmBenchKind = 'reduce' | 'retire';

/** The policies that a round has, by what is measured. */
interface RoundPolicies {
  readonly ReduceReplicas: new (options: Record<string, never>) => ActiveMemoryManagerPolicy;
  readonly RetireWorker: new (options: { readonly address: string }) => ActiveMemoryManagerPolicy<{
    readonly address: string;
  }>;
}

/** As a scheduler loads them: what is part of this package sees the state itself. */
const BUILT_IN: RoundPolicies = {
  ReduceReplicas: trust(ReduceReplicas),
  RetireWorker: trust(RetireWorker),
};

/** The same as policies of a user, which see views of the state. */
const OF_ONES_OWN: RoundPolicies = {
  ReduceReplicas: class OwnReduceReplicas extends ReduceReplicas {},
  RetireWorker: class OwnRetireWorker extends RetireWorker {},
};

const ROUNDS = {
  reduce: { warmUp: 2, measured: 5 },
  retire: { warmUp: 1500, measured: 200 },
} as const;
const RESULT_BYTES = 1000;
const PROCESS_BYTES = 1e9;

/**
 * Rounds of `reduce-replicas` over tasks that have two copies each, or of `retire-worker` for one
 * worker of many. The first rounds are not measured: a scheduler lives for days, and its code is
 * compiled in its first minutes.
 * @param isOwn - the policies are loaded as those of a user
 */
export function measureRound(
  kind: AmmBenchKind,
  taskCount: number,
  workerCount: number,
  isOwn = false,
): RoundMeasurement {
  const policies = isOwn ? OF_ONES_OWN : BUILT_IN;
  const rounds = new Rounds(kind, taskCount, workerCount, policies);
  const { warmUp, measured } = ROUNDS[kind];
  for (let run = 0; run < warmUp; run++) rounds.run(run);
  quieten();
  const runs = Array.from({ length: Math.min(measured, workerCount) }, (_, run) => rounds.run(run));
  const units = sum(runs.map((run) => run.units));
  const us = sum(runs.map((run) => run.us));
  return {
    tasks: taskCount,
    workers: workerCount,
    rounds: runs.length,
    units: units / runs.length,
    ms: round(us / runs.length / 1000),
    usPerUnit: round(us / units),
    msNothingToDo: round(sum(runs.map(({ usNothing }) => usNothing)) / runs.length / 1000),
    messages: sum(runs.map(({ messages }) => messages)) / runs.length,
  };
}

/** What one round took. */
interface Run {
  readonly units: number;
  readonly us: number;
  /** Of a round that finds nothing to do. */
  readonly usNothing: number;
  readonly messages: number;
}

class Rounds {
  private readonly kernel = new SchedulerKernel(
    {},
    makePorts({ queuing: { workerSaturation: Infinity } }),
    0,
  );
  private readonly addresses: readonly string[];
  private readonly manager = new MemoryManager({
    cluster: () => this.kernel.cluster,
    measure: 'optimistic',
    nowMs: () => this.nowMs,
    enact: (moves) => {
      this.dropped = moves.remove;
      this.handle({ op: 'move-replicas', ...moves });
    },
    judge: (_policy, failure) => {
      if (failure !== undefined) throw failure;
    },
  });
  private dropped: MoveReplicas['remove'] = [];
  private nowMs = 0;
  private messages = 0;
  private stimulusCount = 0;

  constructor(
    private readonly kind: AmmBenchKind,
    taskCount: number,
    workerCount: number,
    private readonly policies: RoundPolicies,
  ) {
    this.addresses = Array.from({ length: workerCount }, (_, index) => this.addWorker(index));
    const copies = kind === 'reduce' ? 2 : 1;
    const items = Array.from({ length: taskCount }, (_, index) => ({
      key: `x-${index}`,
      nbytes: RESULT_BYTES,
      workers: Array.from(
        { length: copies },
        (_unused, copy) => this.addresses[(index + copy * 7) % workerCount] as string,
      ),
    }));
    this.handle({ op: 'register-client', client: 'c' });
    this.handle({ op: 'update-data', client: 'c', items });
  }

  /** One round that does it all and one that finds nothing to do; then the state is as before. */
  run(number: number): Run {
    this.nowMs += 1e9; // What was asked for before is late by now.
    const address = this.addresses[number % this.addresses.length] as string;
    const { manager } = this;
    const { ReduceReplicas, RetireWorker } = this.policies;
    manager.policies.clear();
    this.dropped = [];
    if (this.kind === 'reduce') manager.policies.add(new ReduceReplicas({}));
    else {
      this.handle({ op: 'set-worker-status', worker: address, status: 'closing-gracefully' });
      manager.policies.add(new RetireWorker({ address }));
    }
    const expected = this.expectedUnits(address);
    this.messages = 0;
    let units = 0;
    const us = cpuUs(() => (units = manager.runOnce().accepted));
    const { messages } = this;
    if (units !== expected) throw new Error(`${units} instead of ${expected} were accepted`);
    const usNothing = cpuUs(() => manager.runOnce());
    for (const { worker, keys } of this.dropped) this.handle({ op: 'add-keys', worker, keys });
    this.handle({ op: 'set-worker-status', worker: address, status: 'running' });
    return { units, us, usNothing, messages };
  }

  private expectedUnits(address: string): number {
    const { cluster } = this.kernel;
    return this.kind === 'reduce'
      ? cluster.replicated.size
      : (cluster.workers.get(address)?.hasWhat.size ?? 0);
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

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
