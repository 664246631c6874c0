import type { KernelOptions, KernelPorts } from '../../core/kernel/ports.ts';
import { type Outbox, OutboxWriter } from '../../core/kernel/outbox.ts';
import { RecommendationStack, Work } from '../../core/kernel/agenda.ts';
import { RecordingKernel } from '../../core/log/recording-kernel.ts';
import { NO_LOG } from '../../core/log/replay.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { ClusterState, RefusedTasks, RunTable } from '../../core/state/cluster.ts';
import { StateCounts } from '../../core/state/state-names.ts';
import { TaskLimits } from '../../core/state/task-limits.ts';
import { ProcessingList, ReplicaList } from '../../core/state/relations.ts';
import { TaskQueue } from '../../core/state/task-queue.ts';
import type { TaskState } from '../../core/state/task.ts';
import { WorkerState } from '../../core/state/worker.ts';
import { LazySet, SteadyMap, SteadySet, Tally } from '../../core/util/collections.ts';
import { RankedHeap, RankedSet } from '../../core/util/heaps.ts';

/** What is thrown. */
class PlantedError extends Error {}

/** A kernel may throw after a mutation only while it handles a stimulus. */
let mutated: (() => void) | undefined;

/** Everything by which the kernel changes its state, but for the fields of tasks. */
const MUTATORS: readonly (readonly [prototype: object, names: readonly string[]])[] = [
  [OutboxWriter.prototype, ['toWorker', 'toClient', 'event', 'retractFreeKeys']],
  [RecommendationStack.prototype, ['recommend', 'withdraw']],
  [Work.prototype, ['leave', 'retarget', 'remove']],
  [ClusterState.prototype, ['discardTask', 'removeTask', 'addWorker', 'setResource', 'rerank']],
  [ClusterState.prototype, ['giveRank', 'countWorker', 'removeWorker', 'clearPrefixes']],
  [StateCounts.prototype, ['change']],
  [
    TaskLimits.prototype,
    ['add', 'join', 'setTerms', 'leave', 'enqueue', 'dequeue', 'count', 'start'],
  ],
  [TaskLimits.prototype, ['addEndingRun', 'endRun', 'review', 'dropUnused', 'drop']],
  [Object.getPrototypeOf(ProcessingList.prototype) as object, ['add', 'delete']],
  [ReplicaList.prototype, ['addPlace', 'clearPlace']],
  [RefusedTasks.prototype, ['add', 'delete']],
  [RunTable.prototype, ['add', 'delete']],
  [TaskQueue.prototype, ['add', 'delete', 'reorder']],
  [WorkerState.prototype, ['offer', 'occupyAll', 'occupy']],
  [LazySet.prototype, ['add', 'delete']],
  [RankedHeap.prototype, ['put', 'delete']],
  [RankedSet.prototype, ['add', 'delete']],
  [SteadyMap.prototype, ['set', 'delete']],
  [SteadySet.prototype, ['add', 'delete']],
  [Tally.prototype, ['increment', 'decrement', 'set', 'delete']],
];

const TABLES = [
  ...['groups', 'prefixes', 'workers', 'aliases', 'hosts', 'resources', 'clients', 'languages'],
  ...['translations', 'unrunnable', 'replicated', 'replicasWanted'],
];

function plant(object: object, names: readonly string[]): void {
  for (const name of names) {
    const original = (object as Record<string, unknown>)[name];
    if (typeof original !== 'function') throw new Error(`there is no ${name}`);
    Object.defineProperty(object, name, {
      configurable: true,
      writable: true,
      value: function planted(this: unknown, ...values: unknown[]): unknown {
        const answer: unknown = Reflect.apply(original, this, values);
        mutated?.();
        return answer;
      },
    });
  }
}

for (const [prototype, names] of MUTATORS) plant(prototype, names);

/** A task of which each write to a field is a mutation. */
function observed(task: TaskState): TaskState {
  return new Proxy(task, {
    set: (target, name, value) => {
      const isDone = Reflect.set(target, name, value);
      mutated?.();
      return isDone;
    },
  });
}

/** A kernel that throws once, right after its n-th mutation, and recovers as its host would have it do. */
export class ThrowingKernel extends RecordingKernel {
  mutations = 0;
  /** What was thrown. */
  thrown: PlantedError | undefined;
  readonly sentRuns: number[] = [];

  constructor(
    options: Partial<KernelOptions>,
    ports: KernelPorts,
    nowMs: number,
    /** Infinity: it never throws. */
    private readonly throwsAt: number,
    private readonly recovers: 'itself' | 'with its host' = 'with its host',
  ) {
    super(options, ports, nowMs, NO_LOG);
    const { cluster } = this;
    const make = cluster.newTask.bind(cluster);
    cluster.newTask = (...named) => {
      const task = observed(make(...named));
      cluster.tasks.set(task.key, task);
      mutated?.();
      return task;
    };
    for (const name of TABLES) {
      const table = (cluster as unknown as Record<string, object>)[name] as object;
      plant(table, [table instanceof Set ? 'add' : 'set', 'delete']);
    }
  }

  override handle(stimulus: Stimulus, nowMs: number): Outbox {
    mutated = () => {
      if (++this.mutations !== this.throwsAt) return;
      this.thrown = new PlantedError(`planted after mutation ${this.mutations}`);
      throw this.thrown;
    };
    try {
      return this.note(super.handle(stimulus, nowMs));
    } catch (cause) {
      if (this.recovers === 'with its host') throw cause;
      mutated = undefined;
      return this.recover(stimulus, cause);
    } finally {
      mutated = undefined;
    }
  }

  override recover(stimulus: Stimulus, cause: unknown): Outbox {
    return this.note(super.recover(stimulus, cause));
  }

  private note(outbox: Outbox): Outbox {
    for (const { message } of outbox.toWorkers) {
      if (message.op === 'compute-task') this.sentRuns.push(message.runId);
    }
    return outbox;
  }
}
