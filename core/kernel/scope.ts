import type { Stimulus } from '../messages/stimulus.ts';
import type { CancelledKeys } from '../messages/to-client.ts';
import { byRegistration, ClusterState, RefusedTasks, type WorkerOrder } from '../state/cluster.ts';
import { SlotSharing } from '../state/groups.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type { TaskFailure, TaskState, WorkerState } from '../state/task.ts';
import {
  canBeLeft,
  isLeft,
  isRelease,
  RecommendationStack,
  targetOfSuperfluous,
  Work,
  workOn,
} from './agenda.ts';
import type { GraphIntake } from './graph-intake.ts';
import type { Watcher } from './insight.ts';
import type { Recovery } from './on-recovery.ts';
import { OutboxWriter } from './outbox.ts';
import { InputLocations, InputTable } from './placement.ts';
import type { KernelOptions, KernelPorts } from './ports.ts';
import { RuleBook } from './rules.ts';
import { Story } from './story.ts';

/** The reason why keys were cancelled: a short one for programs, and one for people. */
export type CancellationCause = Pick<CancelledKeys, 'reason' | 'message'>;

/** The operations whose starts may be left to `continue`; others look at what they start, or tell of it. */
const LEAVES_STARTS: ReadonlySet<Stimulus['op']> = new Set([
  'update-graph',
  'task-finished',
  'task-erred',
  'retry',
  'continue',
]);

/**
 * The scope of the kernel's functions: the state, the outbox, and the present stimulus.
 * It belongs to one kernel and is never seen outside of `core/kernel`.
 */
export class KernelScope {
  readonly cluster: ClusterState;
  readonly outbox = new OutboxWriter();
  readonly recommendations = new RecommendationStack();
  readonly story: Story;
  /** Inputs of the task that is being placed. */
  readonly inputs = new InputTable();
  /** The places of the inputs of the task that is being sent. */
  readonly locations = new InputLocations();
  /** Observers of the decisions of policies; usually none. */
  watchers: readonly Watcher[] = [];
  /** For candidates of a policy that bounds its reach; reused. */
  readonly reached: WorkerState[] = [];

  stimulusId = '';

  /** The stimulus that is being handled. */
  stimulus: Stimulus | undefined = undefined;
  /** The work that stimuli have left to later ones. */
  agenda: Work[] = [];
  /** Work that the present stimulus leaves, or continues. */
  present: Work | undefined = undefined;
  /** The handler looks at what has come of what it starts, so only releases and failures may be left. */
  startsAtOnce = false;
  /** Large graphs that are being taken in, the oldest first; only that one advances. */
  readonly intakes: GraphIntake[] = [];

  /** Tasks that started before they were needed; their dependents may still start, or fail, while any are left. */
  readonly unproven: TaskState[] = [];

  /** Milliseconds that runs have to stop which this stimulus gives up; undefined: the worker says. */
  killTimeoutMs: number | undefined = undefined;
  /** True when a worker has got less to do in this stimulus. */
  hasFreedWorker = false;
  /** True when this stimulus brought measurements of a worker. */
  hasNewMetrics = false;
  /** The last worker that one of these two is about. */
  changedWorker: WorkerState | undefined = undefined;
  /** Tasks in `no-worker` because a policy refused them. */
  readonly refused = new RefusedTasks();
  /** Tasks in `no-worker` that a rule holds back, or to which rules refuse all workers; those asked about last come last. */
  readonly ruled = new Set<TaskState>();
  rules!: RuleBook;
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
  /** The number of the newest failure: see `Blame.failureNumber`. */
  failureNumber = 0;
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
    this.story = new Story(options.transitionLogLength);
    this.cluster = new ClusterState(
      {
        bandwidth: options.bandwidth,
        bandwidthSamples: 0,
        threadSpeed: NaN,
        unknownTaskDurationS: options.unknownTaskDurationS,
        slotWorkS: options.slotWorkS,
        firstOfName: SlotSharing.ofFirstTasks(options.slotWorkS),
        defaultDataSize: options.defaultDataSize,
        defaultTaskDurationsS: options.defaultTaskDurationsS,
      },
      options.workerOrder === 'address' ? byAddress : byRegistration,
      nowMs,
    );
    this.takeRules();
  }

  /** Asks the rules of the ports from here on. */
  takeRules(): void {
    this.rules = new RuleBook(this);
    this.cluster.rules = this.rules;
  }

  /** The task fails by itself; what cannot be computed without it shares this. */
  blame(task: TaskState, failure: TaskFailure): void {
    task.blame = { task, failure, failureNumber: ++this.failureNumber };
  }

  /** The time of the present stimulus, in milliseconds of the scheduler's clock. */
  get nowMs(): number {
    return this.cluster.nowMs;
  }

  begin(stimulus: Stimulus, nowMs: number): void {
    this.outbox.clear();
    this.cluster.nowMs = nowMs;
    this.stimulus = stimulus;
    this.stimulusId = stimulus.stimulusId;
    this.story.begin(stimulus.stimulusId);
    this.startsAtOnce = !LEAVES_STARTS.has(stimulus.op);
    this.firstRunId = this.nextRunId;
    this.stepping = undefined;
    this.isHandled = false;
    this.killTimeoutMs = undefined;
    // What has become free is offered when the queue is not held any more.
    if (!this.holdsQueue) this.hasFreedWorker = false;
    this.hasNewMetrics = false;
    this.isQueueRefused = false;
    this.holdsQueue = false;
    this.isRefillLeft = false;
    this.sliceEnd = this.transitionCounter + this.options.sliceTransitions;
  }

  /** The stimulus is handled. */
  end(): void {
    this.stimulus = undefined;
    this.present = undefined;
    this.startsAtOnce = false;
    if (this.agenda.length > 0) this.agenda = this.agenda.filter(({ isOver }) => !isOver);
  }

  /** True when recommendations are left to later stimuli. O(works of the agenda). */
  get hasLeft(): boolean {
    return this.agenda.some(({ leftCount }) => leftCount > 0);
  }

  /** Returns the work to which everything belongs that the present stimulus leaves. */
  work(): Work {
    if (this.present === undefined) {
      const { client } = (this.stimulus ?? {}) as { readonly client?: string };
      this.present = new Work(this.stimulusId, client);
      this.agenda.push(this.present);
    }
    return this.present;
  }

  /** From here on, everything follows from the stimulus that has left this work. */
  continueWork(work: Work): void {
    if (this.present === work) return;
    this.present = work;
    this.stimulusId = work.stimulusId;
    this.story.begin(work.stimulusId);
  }

  /** Moves a task on, as soon as its turn comes; the newest recommendation comes first. */
  recommend(task: TaskState, target: TaskStateName): void {
    this.story.note(task.key, target);
    const work = workOn(task);
    // What is recommended for a task that the present work comes to anyway keeps its place.
    if (work === undefined || work !== this.present || !canBeLeft(this.cluster, task, target)) {
      this.recommendations.recommend(task, target);
      return;
    }
    const isSuperfluous = isRelease(work.targetOf(task)) && !task.isNeeded;
    work.retarget(task, isSuperfluous ? targetOfSuperfluous(task, target) : target);
  }

  /**
   * Recommends the same for many tasks, the last to be followed first. More than this stimulus may follow are left at
   * once: a million tasks are not gone through twice.
   */
  recommendAll(tasks: readonly TaskState[], target: TaskStateName): void {
    const mayBeLeft = !this.startsAtOnce || !isStart(target);
    const isLong = tasks.length > this.options.sliceTransitions && mayBeLeft;
    if (!isLong || !this.recommendations.isEmpty || this.present?.hasUnturned === true) {
      for (const task of tasks) this.recommend(task, target);
      return;
    }
    this.holdsQueue ||= isStart(target);
    const work = this.work();
    for (const task of tasks) {
      if (!isLeft(task) && canBeLeft(this.cluster, task, target)) work.leave(task, target);
      else this.recommend(task, target);
    }
    work.keepOrder();
  }

  /** The task is not needed any more: it makes this transition now, or when its turn comes if it was left. */
  recommendRelease(task: TaskState, target: 'released' | 'forgotten'): void {
    const work = workOn(task);
    if (work === undefined || !isRelease(work.targetOf(task))) {
      this.recommend(task, target);
      return;
    }
    this.story.note(task.key, target);
    work.retarget(task, target);
  }

  /** Takes a recommendation back; the release of what is not needed stays left. No-op when there is none. */
  withdraw(task: TaskState): void {
    const { recommendations } = this;
    if (recommendations.withdraw(task)) this.work().leave(task, 'released');
  }

  /** Leaves the step to a later stimulus if this one has done its share, and it can be left. */
  leaves(task: TaskState, target: TaskStateName): boolean {
    if (!this.isSliceOver || (this.startsAtOnce && isStart(target))) return false;
    if (!canBeLeft(this.cluster, task, target)) return false;
    if (target === 'erred') task.blame = undefined;
    this.holdsQueue ||= isStart(target);
    this.work().leave(task, target);
    return true;
  }

  /** True when this stimulus has done its share: what can wait is left to `continue`. */
  get isSliceOver(): boolean {
    return this.transitionCounter >= this.sliceEnd;
  }
}

function isStart(target: TaskStateName): boolean {
  return target === 'waiting' || target === 'processing';
}

/** By address as text, as Dask sorts workers: port 10 comes before port 9. */
const byAddress: WorkerOrder = ({ address: one }, { address: other }) =>
  one < other ? -1 : Number(one > other);
