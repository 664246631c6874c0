import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  type DecisionSink,
  type MemoryMeasure,
  type Suggestion,
  type SuggestionGenerator,
  type WorkerView,
  type YardmasterError,
} from '../../../core/api/index.ts';
import { original, trust } from '../../../core/shared/read-only.ts';
import { ClusterState } from '../../../core/state/cluster.ts';
import { SlotSharing } from '../../../core/state/groups.ts';
import {
  addReplica,
  addToProcessing,
  linkDependencies,
  removeReplica,
  setNbytes,
  setTaskState,
  startWaiting,
} from '../../../core/state/relations.ts';
import type { TaskState } from '../../../core/state/task.ts';
import { type WorkerStatus, WorkerState } from '../../../core/state/worker.ts';
import { MemoryManager, type ReplicaMoves } from '../../../plugins/amm/memory-manager.ts';
import { identityOf } from '../../kit/test-host.ts';

/** A cluster of real state objects, without a scheduler. */
export class AmmBench {
  readonly cluster = new ClusterState({
    bandwidthSamples: 0,
    threadSpeed: NaN,
    bandwidth: 1e8,
    unknownTaskDurationS: 0.5,
    slotWorkS: 0,
    firstOfName: SlotSharing.ofFirstTasks(0),
    defaultDataSize: 1024,
    defaultTaskDurationsS: new Map(),
  });
  readonly moves: ReplicaMoves[] = [];
  readonly errors: YardmasterError[] = [];
  nowMs = 0;

  /** @param memoryBytes - resident set of its process */
  worker(
    name: string,
    memoryBytes = 0,
    status: WorkerStatus = 'running',
    memoryLimitBytes = 1e9,
  ): WorkerState {
    const { cluster } = this;
    const identity = identityOf(name, { memoryLimitBytes });
    const worker = new WorkerState(identity, cluster.nextSequence(), cluster.costs, 0);
    worker.status = status;
    worker.metrics = {
      memoryBytes,
      spilledMemoryBytes: 0,
      spilledDiskBytes: 0,
      managedBytes: 0,
    };
    cluster.addWorker(worker);
    if (status === 'running') cluster.running.add(worker);
    return worker;
  }

  /** A result of this size on these workers; without workers it is released. */
  task(key: string, holders: readonly WorkerState[] = [], nbytes = 10): TaskState {
    const task = this.cluster.newTask(key);
    if (holders.length === 0) return task;
    setTaskState(task, 'memory');
    setNbytes(this.cluster, task, nbytes);
    for (const holder of holders) {
      addReplica(this.cluster, task, holder);
      // Its process was measured with the result in it.
      holder.measuredNbytes = holder.nbytes;
    }
    return task;
  }

  /** A task that will read these results; it is processing there, or waiting for something else. */
  reader(key: string, inputs: TaskState[], worker?: WorkerState): TaskState {
    const task = this.cluster.newTask(key);
    linkDependencies(task, inputs);
    startWaiting(task);
    setTaskState(task, worker === undefined ? 'waiting' : 'processing');
    if (worker !== undefined) addToProcessing(this.cluster, task, worker);
    return task;
  }

  manager(
    policies: readonly ActiveMemoryManagerPolicy<unknown>[],
    measure: MemoryMeasure = 'process',
    decisions?: DecisionSink,
  ): MemoryManager {
    const manager = new MemoryManager({
      cluster: () => this.cluster,
      measure,
      nowMs: () => this.nowMs,
      enact: (moves) => this.moves.push(moves),
      judge: (_policy, failure) => {
        if (failure !== undefined) this.errors.push(failure);
      },
      decisions,
    });
    for (const policy of policies) manager.policies.add(policy);
    return manager;
  }

  /** Whether it is running, as the kernel keeps it. */
  setStatus(worker: WorkerState, status: WorkerStatus): void {
    worker.status = status;
    if (status === 'running') this.cluster.running.add(worker);
    else this.cluster.running.delete(worker);
  }

  /** Does what was accepted: copies arrive at once. */
  enactAll(): void {
    for (const { acquire, remove } of this.moves.splice(0)) {
      for (const { worker, keys } of acquire) this.each(worker, keys, addReplica);
      for (const { worker, keys } of remove) this.each(worker, keys, removeReplica);
    }
  }

  private each(
    address: string,
    keys: readonly string[],
    change: (cluster: ClusterState, task: TaskState, worker: WorkerState) => void,
  ): void {
    const worker = this.cluster.workers.get(address)!;
    for (const key of keys) change(this.cluster, this.cluster.tasks.get(key)!, worker);
  }

  /** Names of the workers that were chosen for these suggestions, in one round. */
  ask(...suggestions: readonly Suggestion[]): (string | undefined)[] {
    const policy = new Scripted(suggestions);
    this.manager([policy]).runOnce();
    return policy.chosen.map((worker) => worker?.name);
  }
}

/** Yields what it was given, and keeps the answers. */
export class Scripted extends ActiveMemoryManagerPolicy<readonly Suggestion[]> {
  readonly chosen: (WorkerView | undefined)[] = [];

  override *run(): SuggestionGenerator {
    for (const suggestion of this.options) this.chosen.push(original(yield suggestion));
  }
}

/** A policy of one function, for tests. */
export function policyOf(
  run: (amm: AmmView) => SuggestionGenerator,
): ActiveMemoryManagerPolicy<unknown> {
  class Policy extends ActiveMemoryManagerPolicy<unknown> {
    override run(amm: AmmView): SuggestionGenerator {
      return run(amm);
    }
  }
  trust(Policy); // It compares the state itself.
  return new Policy({});
}
