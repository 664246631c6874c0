import type { GraphTask } from '../messages/stimulus.ts';
import type { Steps } from '../util/steps.ts';
import {
  type ApiVersion,
  checkDefinition,
  type NoOptions,
  type OnlyMembers,
  type OptionsOf,
  SILENT,
} from './definition.ts';
import { briefly, YardmasterError } from './errors.ts';
import type { Logger } from './plugin.ts';
import type { ClusterView, TaskView, WorkerView } from './views.ts';

// The policy slots: questions with exactly one answerer each. The kernel asks all of them but `stealing`,
// which the plugin `work-stealing` asks.
//
// A policy must answer at once, without side effects outside of itself, and the same for the same state.
// When it throws or gives an unusable answer the built-in policy of the slot decides that one time, and the
// error is logged and counted (`ERR_POLICY`).

/**
 * Which worker computes a task: a policy that scores each candidate, or one that selects among all of
 * them. Exactly one of `score` and `select`; the other arguments have the same order in both.
 */
export type WorkerSelection = ScoringSelection | SelectingSelection;

/**
 * The memory of a policy between its answers, so that a recording can begin while it is in charge: a replay
 * makes a new instance and gives it what this one remembered. A policy that remembers nothing needs neither.
 */
export interface PolicyMemory {
  /**
   * Optional. What the policy remembers, as plain data; tasks by `id`, workers by address. Called rarely, and never
   * while a graph is being submitted. O(tasks) at most.
   */
  snapshot?(cluster: ClusterView): unknown;
  /** Optional. Takes over what another instance has remembered; called before anything else. */
  restore?(memory: unknown, cluster: ClusterView): void;
}

/** The members that both forms of {@link WorkerSelection} may have. */
export interface SelectionRules extends PolicyMemory {
  /**
   * Optional: which workers are candidates. Without it they are all running workers that hold inputs,
   * and all valid ones when none does. `all`: every valid worker, whether it holds inputs or not; each
   * decision is then O(workers). A {@link Reach} bounds them to a handful in a large cluster.
   * Restrictions hold in any case; for an actor every valid worker is a candidate.
   */
  readonly reach?: Reach | 'all';
  /**
   * Optional, for a policy without `reach`. True: every valid worker is a candidate for a task that asks for resources when
   * they are free on none of the workers that hold its inputs, so that the policy weighs the wait there against a transfer.
   * Default false.
   */
  readonly weighsResources?: boolean;
  /**
   * True when the policy also places root-ish tasks, among the workers with an open slot, when the queuing
   * policy leaves that to it ({@link Queuing.leavesPlacement}). Default true. `false` sends each of them to
   * the worker that the queuing policy names: the least busy one, for `root-ish`.
   */
  readonly placesRootish?: boolean;
  /**
   * Optional: sees the tasks of a graph, dependencies first, after they were linked and before any of
   * them is placed. Tasks that were there before the policy are given in the same way.
   */
  prepare?(tasks: readonly TaskView[], cluster: ClusterView): void;
  /**
   * Narrows the workers that restrictions and replicas allow. Called once for each candidate. A task
   * that is admitted nowhere waits in `no-worker`. It is offered again when a worker has less to do, and
   * when a heartbeat brings new measurements.
   */
  admits?(task: TaskView, worker: WorkerView): boolean;
}

/** A {@link WorkerSelection} that gives each candidate a number. */
export interface ScoringSelection extends SelectionRules {
  /**
   * Lower is better. Called once for each candidate; must be finite. Ties go to the worker with the
   * fewest stored bytes, then to the one with the lowest rank. An actor goes to the worker with the
   * fewest actors first. For a task without inputs, ties go to the least busy worker before that, unless
   * the policy has `pickFromPool`.
   * @param missingBytes - bytes of the task's dependencies that this worker does not hold
   */
  score(task: TaskView, worker: WorkerView, missingBytes: number, cluster: ClusterView): number;
  readonly select?: never;
  /**
   * Optional shortcut for large clusters: places a task without dependencies and restrictions by a look
   * at a few idle workers, instead of `score` for each running worker. The built-in policies have it.
   * `undefined` means that none will do now; the task then waits in `no-worker` as with `admits`.
   * @param pool - the idle workers, or all running ones when none is idle; those with an open slot for
   *   a root-ish task; never empty
   */
  pickFromPool?(task: TaskView, pool: WorkerPool, cluster: ClusterView): WorkerView | undefined;
}

/** A {@link WorkerSelection} that sees all candidates at once. */
export interface SelectingSelection extends SelectionRules {
  /**
   * Chooses among the candidates. `undefined` means that none will do; the task then waits in
   * `no-worker` as with `admits`.
   * @param candidates - by ascending rank, never empty
   * @param missingBytes - bytes of the task's dependencies that a worker does not hold; O(1)
   */
  select(
    task: TaskView,
    candidates: readonly WorkerView[],
    missingBytes: (worker: WorkerView) => number,
    cluster: ClusterView,
  ): WorkerView | undefined;
  readonly score?: never;
  readonly pickFromPool?: never;
}

/**
 * Bounds the candidates. With both numbers small the cost of a decision does not grow with the
 * cluster.
 */
export interface Reach {
  /**
   * Of the workers that hold inputs, those with the most bytes of them; the least busy ones of equals.
   * Inputs with more than 32 copies are left out of this, and of `missingBytes`: they are everywhere.
   */
  readonly holders: number;
  /** Besides, the least busy valid workers. Those where the task's resources are free come first. */
  readonly others: number;
}

/** A pool of workers that can be indexed by ascending rank. */
export interface WorkerPool extends Iterable<WorkerView> {
  readonly size: number;
  at(k: number): WorkerView | undefined;
}

/** Which tasks start collections (root-ish), when they are held back, and where they go. */
export interface Queuing extends PolicyMemory {
  /** True when root-ish tasks for which there is no worker now wait in `queued`, not in `no-worker`. */
  readonly holdsBack: boolean;
  /**
   * True when this policy only decides when a root-ish task starts, and the worker selection policy decides
   * where, among the workers with an open slot. `selectRootish` is then asked only when the worker
   * selection policy declines with `placesRootish: false`, as the built-in ones do. Default false.
   */
  readonly leavesPlacement?: boolean;
  /** Optional: as {@link SelectionRules.prepare}; called before that. */
  prepare?(tasks: readonly TaskView[], cluster: ClusterView): void;
  isRootish(task: TaskView, cluster: ClusterView): boolean;
  /**
   * Root-ish tasks that a worker may have at once, at least 1; Infinity: nothing is held back.
   * Asked when a worker registers and when the policy is replaced.
   */
  slotLimit(worker: WorkerView): number;
  /**
   * Called in priority order, once for each root-ish task that becomes ready or leaves the queue.
   * `undefined`: the task waits, in `queued` when anything is held back and in `no-worker` otherwise.
   */
  selectRootish(task: TaskView, cluster: ClusterView): WorkerView | undefined;
  /**
   * Optional. Which queued task leaves the queue next; `undefined`: the first by priority. The policy
   * is then asked where it goes. Called as long as tasks are queued and a slot is open.
   * @param worker - the least busy worker with an open slot
   */
  nextQueued?(worker: WorkerView, cluster: ClusterView): TaskView | undefined;
  /** Optional. A client has changed the priority of a queued task. */
  priorityChanged?(task: TaskView, cluster: ClusterView): void;
}

/** The static order of the tasks of one graph. */
export interface Ordering extends PolicyMemory {
  /**
   * @param tasks - the graph, in the order of submission
   * @param keys - the requested keys
   * @param links - the same dependencies as positions; the kernel gives them, as it has looked all keys
   *   up already
   * @returns rank of each task, aligned with `tasks`: distinct numbers, dependencies lower than
   *   their dependents. A generator returns them at its end and yields every few milliseconds; while a
   *   large graph is taken in, the scheduler serves its peers at each `yield`.
   */
  order(
    tasks: readonly GraphTask[],
    keys: readonly string[],
    links?: GraphLinks,
  ): ArrayLike<number> | Steps<ArrayLike<number>>;
}

/** Dependencies of a list of tasks, by position in the list. */
export interface GraphLinks {
  /** The index in {@link targets} at which the dependencies of each task begin; one more than there are tasks. */
  readonly offsets: Int32Array;
  /** Aligned with the dependencies of each task; -1 for one that is not in the list. */
  readonly targets: Int32Array;
  /** Position of a key, or -1 when it is not in the list. */
  positionOf(key: string): number;
}

/** Tasks that a client submits, for {@link Fairness}. */
export interface Submission {
  readonly client: string;
  /** The new tasks in the order in which they will run; empty unless the policy `isPerTask`. */
  readonly tasks: readonly TaskView[];
  /**
   * Number of the submission: older ones have lower ones, and those closer together than the client's
   * `fifoTimeoutMs` share one. Tasks that a task submitted are numbered below 1.
   */
  readonly generation: number;
  /** The task from inside which these were submitted. */
  readonly parent: TaskView | undefined;
  /** Milliseconds of the scheduler's clock. */
  readonly nowMs: number;
}

/** In which order the work of several submissions and clients runs. */
export interface Fairness extends PolicyMemory {
  /**
   * True when each task has a generation. Default false: all tasks of a submission have the same one.
   */
  readonly isPerTask?: boolean;
  /**
   * The generation of the tasks: what decides next to the user's own priority, and before the order
   * of the graph. Smaller runs sooner, on the scheduler and on the workers. Called once for each
   * submission with new tasks.
   * @returns one finite number for all of them, or one for each
   */
  generations(submission: Submission, cluster: ClusterView): number | ArrayLike<number>;
  /**
   * Optional. Called when a task is no longer open: it was computed or failed itself (`isServed`),
   * or its result is not needed any more. May be called again when the result is lost and computed
   * anew.
   * @param seconds - that its run took; undefined when none has told
   */
  taskOver?(
    task: TaskView,
    isServed: boolean,
    cluster: ClusterView,
    seconds: number | undefined,
  ): void;
  /**
   * Optional. Called after each stimulus. Tasks that have not begun are ordered anew by what it returns, also on their
   * workers.
   * @returns other generations for open tasks, by key; undefined: all keep theirs
   */
  revise?(
    cluster: ClusterView,
  ): readonly (readonly [key: string, generation: number])[] | undefined;
}

/** The slots whose policies the kernel asks, with what fills each. */
export interface KernelSlots {
  workerSelection: WorkerSelection;
  queuing: Queuing;
  ordering: Ordering;
  fairness: Fairness;
}

/** All slots by their names in a configuration, with what fills each. */
export interface PolicySlots extends KernelSlots {
  stealing: Stealing;
}

/** Names of the slots whose policies the kernel asks. */
export type KernelSlotName = keyof KernelSlots;

/** Names of the slots. */
export type SlotName = keyof PolicySlots;

/** The slots whose policies the kernel asks; these can have shadows. */
export const KERNEL_SLOT_NAMES = [
  'workerSelection',
  'queuing',
  'ordering',
  'fairness',
] as const satisfies readonly KernelSlotName[];

/** All slots, in the order in which they are loaded. */
export const SLOT_NAMES = [...KERNEL_SLOT_NAMES, 'stealing'] as const satisfies readonly SlotName[];

/** The built-in policies of each slot, the default first. */
export const BUILTIN_POLICIES: Readonly<Record<SlotName, readonly [string, ...string[]]>> = {
  workerSelection: ['locality-first', 'earliest-start', 'balanced'],
  queuing: ['family', 'root-ish', 'co-assign', 'direct', 'mars'],
  ordering: ['depth-first', 'dask', 'mars', 'fifo', 'best'],
  fairness: ['fifo', 'weighted-fair-share'],
  stealing: ['calm', 'dask'],
};

/** Members of every form that a policy of a slot may have. */
type MembersOf<Policy> = Policy extends unknown ? keyof Policy : never;

/** The surroundings in which a policy or a rule is made. The time and the state come with each question. */
export interface PolicyContext {
  /** Writes to the scheduler's log, with the name of the policy; nowhere in a simulation and in a replay. */
  readonly log: Logger;
}

/** For a policy that its author makes in a test. */
export const WITHOUT_LOG: PolicyContext = { log: SILENT };

/** A policy that a config file can name. */
export interface PolicyDefinition<Slot extends SlotName = SlotName, Options = never> {
  readonly kind: 'policy';
  readonly slot: Slot;
  readonly name: string;
  readonly apiVersion: ApiVersion;
  /** JSON schema of the options. */
  readonly optionsSchema?: object;
  create(options: Options, context?: PolicyContext): PolicySlots[Slot];
}

/**
 * Declares a policy for a slot; types its options.
 * @throws YardmasterError `ERR_SLOT` when there is no such slot, `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function definePolicy<
  Slot extends SlotName,
  const Schema extends object = NoOptions,
  Policy extends PolicySlots[Slot] = PolicySlots[Slot],
>(
  slot: Slot,
  definition: Pick<PolicyDefinition, 'name' | 'apiVersion'> & {
    readonly optionsSchema?: Schema;
    readonly create: (
      options: OptionsOf<Schema>,
      context: PolicyContext,
    ) => Policy & OnlyMembers<Policy, 'name' | MembersOf<PolicySlots[Slot]>>;
  },
): PolicyDefinition<Slot, OptionsOf<Schema>> {
  if (!SLOT_NAMES.some((name) => name === slot)) {
    throw new YardmasterError(
      'ERR_SLOT',
      `definePolicy wants the name of a slot first, one of ${SLOT_NAMES.join(', ')}, got ${briefly(slot)}`,
      { slots: SLOT_NAMES },
    );
  }
  checkDefinition('definePolicy', definition, '{ name, apiVersion: 1, create }');
  const { create: given } = definition as { readonly create?: unknown };
  if (typeof given !== 'function') return { kind: 'policy', slot, ...definition }; // Its check says so.
  const create = (options: OptionsOf<Schema>, context = WITHOUT_LOG) =>
    definition.create(options, context);
  return { kind: 'policy', slot, ...definition, create };
}

// The policy slot `stealing`: which tasks move from busy workers to idle ones.

/**
 * The rules of work stealing. What a policy leaves out is decided by the rules of the built-in policy
 * `dask`; it has at least one of `mayTake`, `victims`, `levelOf`, `order` and `pays`.
 *
 * The plugin `work-stealing` asks the policy in rounds, which it divides into slices: tasks may finish and
 * workers may leave between two calls. The policy that is in charge when a round begins decides all of it.
 */
export interface Stealing {
  /** Called first in every round, for a policy that keeps numbers for the length of a round. */
  begin?(cluster: ClusterView): void;
  /**
   * True when an idle worker takes a task. Asked when the round begins, and again after each task that the
   * worker was given in the round (`takenCount`); once false, the worker takes no more in this round.
   */
  mayTake?(thief: WorkerLoad): boolean;
  /**
   * The running workers from which tasks are stolen, in this order. Thieves are left out. Workers that
   * are paused or leaving come first in any case, and stealing from them always pays.
   * @param loadOf - the load of a worker; O(prefixes processing there) for the first call in a round
   */
  victims?(cluster: ClusterView, loadOf: (worker: WorkerView) => WorkerLoad): Iterable<WorkerView>;
  /**
   * The cost level of a task, from 0 (stolen first) to 14; `undefined`: the task is not stolen in this
   * round. Called once for each task of a victim that has not been asked back already.
   * @param level - the level by Dask's rule: the time to transfer the inputs compared with the time to
   *   compute; 0 without inputs, 6 for equal times, each level twice the one below; `undefined` for a task
   *   whose transfer would take more than 256 times as long
   */
  levelOf?(task: TaskView, level: number | undefined): number | undefined;
  /**
   * Which of two tasks of one level on one worker is stolen first, as for a sort. Default, also for
   * equal ones: the task that would run last.
   */
  order?(a: TaskView, b: TaskView): number;
  /** True when the task moves. Called for the thief that could begin the task first. */
  pays?(theft: Theft): boolean;
  /**
   * Optional bound for {@link pays}, which avoids examining tasks in vain: whether stealing a task
   * of at least `computeS` can pay at all. Must be true whenever `pays` is for such a task.
   * @param leastS - seconds until the first of the thieves has no work left
   * @param computeS - seconds of computation; 0 when no task has been examined
   */
  mayPay?(victim: WorkerLoad, leastS: number, computeS: number): boolean;
}

/** The work ahead of a worker, with all tasks that stealing takes from it and brings to it counted. */
export interface WorkerLoad {
  readonly worker: WorkerView;
  /** Seconds of work. */
  readonly workS: number;
  /** Seconds until it has nothing to do: {@link workS} divided by its threads. */
  readonly perThreadS: number;
  /** Tasks that are processing there, seceded ones included. */
  readonly taskCount: number;
  readonly threadCount: number;
  /** True when the worker takes tasks in this round. */
  readonly isThief: boolean;
  /** Tasks that it was given in this round. */
  readonly takenCount: number;
}

/**
 * A task, the worker where it waits, and the worker where it could go. The same object is used for one
 * task after the other: read it, and do not keep it.
 */
export interface Theft {
  readonly task: TaskView;
  readonly victim: WorkerLoad;
  readonly thief: WorkerLoad;
  /** Seconds that the task is expected to compute. */
  readonly computeS: number;
  /** Seconds to bring the thief the inputs that it lacks. */
  readonly thiefTransferS: number;
  /** Seconds of transfers that the victim is spared. */
  readonly victimTransferS: number;
}
