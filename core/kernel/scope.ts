import type { CancelledKeys } from '../messages/to-client.ts';
import { byRegistration, ClusterState, RefusedTasks, type WorkerOrder } from '../state/cluster.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { ClientState, TaskState, WorkerState } from '../state/task.ts';
import type { Watcher } from './insight.ts';
import type { Recovery } from './on-recovery.ts';
import { OutboxWriter } from './outbox.ts';
import { InputLocations, InputTable } from './placement.ts';
import type { KernelOptions, KernelPorts } from './ports.ts';
import { DeferredVisits, RecommendationStack } from './recommendations.ts';
import { Story } from './story.ts';

/** The reason why keys were cancelled: a short one for programs, and one for people. */
export type CancellationCause = Pick<CancelledKeys, 'reason' | 'message'>;

/** Transitions of a task that fails or starts again: it is released in between. */
const STEPS_OF_DEPENDENT = 2;

/** A large graph that is submitted in slices, as the rest of the kernel sees it. */
export interface PendingIntake {
  readonly client: ClientState;
  readonly stimulusId: string;
  /** Requested. */
  readonly keys: readonly string[];
  /** The pseudo-client that keeps alive all that the graph names, if it is taken in by slices. */
  readonly holder: ClientState | undefined;
  /** Processes one more slice. Returns whether it was the last one. */
  advance(): boolean;
  /** Every client has to give these up, so this client does not get them. */
  cancel(tasks: Iterable<TaskState>, cause: CancellationCause): void;
  /** The client is gone, or everything is: what nothing else needs is forgotten. O(tasks). */
  drop(): void;
  /** A stimulus failed: nothing of it is continued. What it has begun is seen to elsewhere. */
  abandon(): void;
}

/**
 * The scope of the kernel's functions: the state, the outbox, and the present stimulus.
 * It belongs to one kernel and is never seen outside of `core/kernel`.
 */
export class KernelScope {
  readonly cluster: ClusterState;
  readonly outbox = new OutboxWriter();
  readonly recommendations = new RecommendationStack();
  /** Dependents that fail or start again at later stimuli. */
  readonly visits = new DeferredVisits();
  readonly story: Story;
  /** Inputs of the task that is being placed. */
  readonly inputs = new InputTable();
  /** The places of the inputs of the task that is being sent. */
  readonly locations = new InputLocations();
  /** Observers of the decisions of policies; usually none. */
  watchers: readonly Watcher[] = [];
  /** For candidates of a policy that bounds its reach; reused. */
  readonly reached: WorkerState[] = [];

  /** The present stimulus and its time. */
  stimulusId = '';
  nowMs: number;

  /** Large graphs that are being submitted, the oldest first; only that one advances. */
  readonly intakes: PendingIntake[] = [];

  /** The work that long stimuli have left to later ones, the oldest first: each advances to its next pause. */
  readonly continuations: Generator<void, void>[] = [];

  /** Tasks whose result has come, and whose dependents count it as missing until a continuation starts them. */
  readonly startingLater: TaskState[] = [];

  /** Tasks that started before they were needed; their dependents may still start, or fail. */
  readonly unproven: TaskState[] = [];

  /** Milliseconds that runs have to stop which this stimulus gives up; undefined: the worker says. */
  killTimeoutMs: number | undefined = undefined;
  /** True when a worker has got less to do in this stimulus. */
  hasFreedWorker = false;
  /** True when this stimulus brought measurements of a worker. */
  hasNewMetrics = false;
  /** Tasks in `no-worker` because a policy refused them. */
  readonly refused = new RefusedTasks();
  /** The queuing policy left a slot open in this stimulus although tasks are queued. */
  isQueueRefused = false;
  /** Set while workers are awaited that a journal knows. */
  recovery: Recovery | undefined = undefined;
  /** Open slots are kept for tasks that start at a later stimulus. */
  holdsQueue = false;

  /** The task that is making a step. */
  stepping: TaskState | undefined = undefined;
  /** {@link nextRunId} when the present stimulus came. */
  firstRunId = 0;
  /** True when the stimulus itself has been handled, and the kernel follows what it recommends. */
  isHandled = false;

  /** Assignments are numbered, so that late answers to an older one are recognised. */
  nextRunId = 0;
  /** Submissions are numbered, so that of tasks with equal priorities the older ones run first. */
  nextArrival = 0;
  transitionCounter = 0;
  /** The value of {@link transitionCounter} at which this stimulus leaves the rest of its work. */
  sliceEnd = Infinity;
  /** Queued tasks are left for open slots, or for limits with room. */
  isRefillLeft = false;

  constructor(
    readonly options: KernelOptions,
    public ports: KernelPorts,
    nowMs: number,
  ) {
    this.nowMs = nowMs;
    this.story = new Story(options.transitionLogLength);
    this.cluster = new ClusterState(
      {
        bandwidth: options.bandwidth,
        unknownTaskDurationS: options.unknownTaskDurationS,
        slotWorkS: options.slotWorkS,
        defaultDataSize: options.defaultDataSize,
        defaultTaskDurationsS: options.defaultTaskDurationsS,
      },
      options.workerOrder === 'address' ? byAddress : byRegistration,
      nowMs,
    );
  }

  /** Moves a task on, as soon as its turn comes; the newest recommendation comes first. */
  recommend(task: TaskState, target: TaskStateName): void {
    this.story.note(task.key, target);
    this.recommendations.recommend(task, target);
  }

  /** The task is not needed any more: it makes this transition now or at a later stimulus. */
  deferRelease(task: TaskState, target: 'released' | 'forgotten'): void {
    this.story.note(task.key, target);
    this.recommendations.deferRelease(task, target);
  }

  /** The number of these dependents that fail or start again in this slice. They count from now on. */
  shareOf(dependentCount: number): number {
    const room = Math.floor((this.sliceEnd - this.transitionCounter) / STEPS_OF_DEPENDENT);
    const share = Math.max(0, Math.min(dependentCount, room));
    this.sliceEnd -= STEPS_OF_DEPENDENT * share;
    return share;
  }

  /** True when this stimulus has done its share: what can wait is left to `continue-settling`. */
  get isSliceOver(): boolean {
    return this.transitionCounter >= this.sliceEnd;
  }
}

/** By address as text, as Dask sorts workers: port 10 comes before port 9. */
const byAddress: WorkerOrder = ({ address: one }, { address: other }) =>
  one < other ? -1 : Number(one > other);
