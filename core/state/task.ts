import { emptyList, SmallSet } from '../util/collections.ts';
import { SHOWN } from '../util/values.ts';
import type { ClientState } from './cluster.ts';
import type { TaskGroup, TaskPrefix } from './groups.ts';
import { isActive, type TaskStateName } from './state-names.ts';
import type { TaskLimit } from './task-limits.ts';
import type { WorkerState } from './worker.ts';

export type { ClientState } from './cluster.ts';
export type { WorkerState } from './worker.ts';

/** A failure of a task. */
export interface TaskFailure {
  /** Opaque to the scheduler: whatever the worker sent. */
  readonly exception: unknown;
  readonly traceback: unknown;
  /** For people: one line, and a stack. */
  readonly exceptionText: string;
  readonly tracebackText: string;
}

/**
 * The reason why a task is failed: the task that failed, and how. Made when that one fails, never changed, and shared by all that
 * fails because of it: whatever becomes of that task, its dependents can say why they failed.
 */
export interface Blame {
  readonly task: TaskState;
  readonly failure: TaskFailure;
  /**
   * Failures are numbered: of those that hold a task back the first is to blame, and a retry takes those that had happened when
   * a client asked for it. 0: before a restart from a journal of an older version.
   */
  readonly failureNumber: number;
}

/** `[-userPriority, generation, rank]`: the smaller, the sooner. */
export type Priority = readonly [negatedUserPriority: number, generation: number, rank: number];

/** The shared empty list. It is never written to, which `validate.ts` checks. */
export const NO_TASKS: TaskState[] = emptyList();
const NO_ADDRESSES: ReadonlySet<string> = new Set();

/** The progress of sweeping forgotten tasks out of a long list of dependents. */
interface Sweep {
  readonly list: readonly TaskState[];
  /** Places before this one have been seen. */
  seen: number;
  /** Places before this one hold what was not forgotten. */
  kept: number;
}

/** Fields of which most tasks have none: apart, so that they cost a million tasks one word each. */
class RareFields {
  restrictions: Restrictions | undefined = undefined;
  limit: TaskLimit | undefined = undefined;
  blame: Blame | undefined = undefined;
  hasLostDependencies = false;
  retries = 0;
  suspicious = 0;
  reschedules = 0;
  usedWorkers: ReadonlySet<string> | undefined = undefined;
  isActor = false;
  isDataProducer = false;
  isQueueable = true;
  replicas = 1;
  sweep: Sweep | undefined = undefined;
  erredOn: ReadonlySet<string> = NO_ADDRESSES;
  steal: Steal | undefined = undefined;
  fingerprint: string | undefined = undefined;
  reservation = 0;
  metadata: Readonly<Record<string, unknown>> | undefined = undefined;
  annotations: Readonly<Record<string, unknown>> | undefined = undefined;
}

/**
 * A task as the scheduler sees it.
 *
 * One shape for every task, with short arrays and counters instead of sets (`docs/architecture.md`, "A task has no sets").
 * Links that have two sides are written in `relations.ts` alone. Plugins see it as `TaskView`.
 *
 * Invariants by state: see `core/kernel/validate.ts`, which checks every one of them.
 */
export class TaskState {
  // First what steps of its dependencies and dependents look at, so that it is close together in memory.

  /** The state of the task. Written by `setTaskState` alone. */
  state: TaskStateName = 'released';
  /** Workers that hold the result; non-empty exactly in state `memory`. */
  whoHas: SmallSet<WorkerState> = SmallSet.empty();
  /** Dependents in play that count on this result (see {@link countsAsWaiter}). */
  waiterCount = 0;
  /** In `waiting`: dependencies that have no replica. 0 in every other state. */
  missingDependencyCount = 0;
  /** Workers in whose `needsWhat` it is. */
  needyCount = 0;
  /** True when this task is counted in the `waiterCount` of each of its dependencies. */
  countsAsWaiter = false;
  /** Position among the recommendations of this stimulus, or -1. Owned by `RecommendationStack`. */
  pendingIndex = -1;
  /** Position among what this work has left to later stimuli, or -1. Owned by the kernel's `Work`. */
  leftIndex = -1;
  leftBy: object | undefined = undefined;
  dependentCount = 0;
  /** Clients that want the result. */
  whoWants: SmallSet<ClientState> = SmallSet.empty();
  /**
   * Tasks that depend on this one, in the order of submission. May still hold forgotten tasks, which
   * readers skip; {@link dependentCount} counts the others. A list of one is shared, and never changed.
   */
  dependentsWithForgotten: TaskState[] = NO_TASKS;
  /**
   * Direct dependencies in the order of submission; forgotten ones are taken out. Never changed in place:
   * tasks with the same single dependency share a list.
   */
  dependencies: TaskState[] = NO_TASKS;
  /** Bytes of the last result; -1 while unknown. Kept after release. */
  nbytes = -1;

  /** The worker it was sent to; set exactly in state `processing`. */
  processingOn: WorkerState | undefined = undefined;
  /**
   * Id of the latest assignment; an answer with another id is stale. -1 before the first; less for a task from a
   * journal (`unassignedSince`).
   */
  runId = -1;
  /**
   * The index of the task in the list that its state puts it into: the queue, what its worker is processing,
   * or what one of its holders holds; -1: in none. Owned by that list.
   */
  place = -1;
  /** The specification of the computation; opaque. `undefined`: pure data that cannot be computed again. */
  runSpec: unknown = undefined;

  /**
   * Priority: see {@link priority}. A rank of -1 means that it has none yet. The user's part and the generation
   * may change, by `TaskQueue.reorder` alone.
   */
  negatedUserPriority = 0;
  generation = 0;
  rank = -1;
  /** Number of the submission that gave it the priority: older submissions have lower ones. */
  arrival = 0;

  /** Type name of the result. */
  type: string | undefined = undefined;
  [SHOWN]: object | 'task' = 'task';
  /** The fields that most tasks never have; undefined until one of them is set. */
  private optionalFields: RareFields | undefined = undefined;
  /** Index in the graph that named it last, or -1. Owned by the walk through that graph. */
  graphIndex = -1;

  /**
   * @param key - identity of the task in the whole cluster
   * @param id - dense and small; reused after the task is forgotten
   */
  constructor(
    readonly key: string,
    readonly id: number,
    readonly group: TaskGroup,
  ) {}

  get restrictions(): Restrictions | undefined {
    return this.optionalFields?.restrictions;
  }
  set restrictions(restrictions: Restrictions | undefined) {
    if (restrictions !== this.restrictions) this.rareFields.restrictions = restrictions;
  }

  /** The limit on the number of tasks that run at the same time, this one among them. Written by `TaskLimits` alone. */
  get limit(): TaskLimit | undefined {
    return this.optionalFields?.limit;
  }
  set limit(limit: TaskLimit | undefined) {
    this.rareFields.limit = limit;
  }

  /** The reason why the task is failed, or about to fail. Set in `erred`; unset in play. */
  get blame(): Blame | undefined {
    return this.optionalFields?.blame;
  }
  set blame(blame: Blame | undefined) {
    if (blame !== this.blame) this.rareFields.blame = blame;
  }

  /** The task that failed: itself or an ancestor. Non-empty in `erred`. */
  get exceptionBlame(): TaskState | undefined {
    return this.blame?.task;
  }

  /** Its own failure; that of an ancestor is there. */
  get failure(): TaskFailure | undefined {
    const { blame } = this;
    return blame?.task === this ? blame.failure : undefined;
  }

  /** Set when a dependency was forgotten: this task can never be computed again. */
  get hasLostDependencies(): boolean {
    return this.optionalFields?.hasLostDependencies ?? false;
  }
  set hasLostDependencies(isLost: boolean) {
    if (isLost !== this.hasLostDependencies) this.rareFields.hasLostDependencies = isLost;
  }

  /** Automatic retries left. */
  get retries(): number {
    return this.optionalFields?.retries ?? 0;
  }
  set retries(retries: number) {
    if (retries !== this.retries) this.rareFields.retries = retries;
  }

  /** Times that a worker died unexpectedly while it processed this task, or could not fetch its inputs. */
  get suspicious(): number {
    return this.optionalFields?.suspicious ?? 0;
  }
  set suspicious(deaths: number) {
    this.rareFields.suspicious = deaths;
  }

  /** Times that it was sent to a worker again, whatever the reason. */
  get reschedules(): number {
    return this.optionalFields?.reschedules ?? 0;
  }
  set reschedules(count: number) {
    if (count !== this.reschedules) this.rareFields.reschedules = count;
  }

  /** Names and addresses of workers to avoid: they died under the task, or could not fetch its inputs. */
  get usedWorkers(): ReadonlySet<string> | undefined {
    return this.optionalFields?.usedWorkers;
  }
  set usedWorkers(workers: ReadonlySet<string> | undefined) {
    this.rareFields.usedWorkers = workers;
  }

  /** A stateful object that stays on one worker. */
  get isActor(): boolean {
    return this.optionalFields?.isActor ?? false;
  }
  set isActor(isActor: boolean) {
    if (isActor !== this.isActor) this.rareFields.isActor = isActor;
  }

  /** Its author says that it loads or makes data, so that it is root-ish whatever its group looks like. */
  get isDataProducer(): boolean {
    return this.optionalFields?.isDataProducer ?? false;
  }
  set isDataProducer(isDataProducer: boolean) {
    if (isDataProducer !== this.isDataProducer) this.rareFields.isDataProducer = isDataProducer;
  }

  /** True when the queuing policy may hold it back. */
  get isQueueable(): boolean {
    return this.optionalFields?.isQueueable ?? true;
  }
  set isQueueable(isQueueable: boolean) {
    if (isQueueable !== this.isQueueable) this.rareFields.isQueueable = isQueueable;
  }

  /** Number of requested copies. Written by `setWantedReplicas` alone. */
  get replicas(): number {
    return this.optionalFields?.replicas ?? 1;
  }
  set replicas(replicas: number) {
    if (replicas !== this.replicas) this.rareFields.replicas = replicas;
  }

  /** The state of stealing while the task has been processing. Written in `relations.ts`. */
  get steal(): Steal | undefined {
    return this.optionalFields?.steal;
  }
  set steal(steal: Steal | undefined) {
    if (steal !== this.steal) this.rareFields.steal = steal;
  }

  /**
   * Hash of the bytes of data that a client put here, if it sent one; undefined unless in `memory`.
   */
  get fingerprint(): string | undefined {
    return this.optionalFields?.fingerprint;
  }
  set fingerprint(fingerprint: string | undefined) {
    if (fingerprint !== this.fingerprint) this.rareFields.fingerprint = fingerprint;
  }

  /** The latest number of `reserve-data` under which clients put it on workers; 0: none. */
  get reservation(): number {
    return this.optionalFields?.reservation ?? 0;
  }
  set reservation(reservation: number) {
    if (reservation !== this.reservation) this.rareFields.reservation = reservation;
  }

  /** Set while a long list of dependents is being swept. Written in `relations.ts`. */
  get sweep(): Sweep | undefined {
    return this.optionalFields?.sweep;
  }
  set sweep(sweep: Sweep | undefined) {
    if (sweep !== this.sweep) this.rareFields.sweep = sweep;
  }

  /** Addresses that reported the failure; each keeps a tombstone that a retry frees. */
  get erredOn(): ReadonlySet<string> {
    return this.optionalFields?.erredOn ?? NO_ADDRESSES;
  }
  set erredOn(addresses: ReadonlySet<string>) {
    if (addresses.size + this.erredOn.size > 0) this.rareFields.erredOn = addresses;
  }

  /** Merged from the reports of the workers. */
  get metadata(): Readonly<Record<string, unknown>> | undefined {
    return this.optionalFields?.metadata;
  }
  set metadata(metadata: Readonly<Record<string, unknown>> | undefined) {
    if (metadata !== this.metadata) this.rareFields.metadata = metadata;
  }

  get annotations(): Readonly<Record<string, unknown>> | undefined {
    return this.optionalFields?.annotations;
  }
  set annotations(annotations: Readonly<Record<string, unknown>> | undefined) {
    if (annotations !== this.annotations) this.rareFields.annotations = annotations;
  }

  get prefix(): TaskPrefix {
    return this.group.prefix;
  }

  /**
   * Undefined for pure data, which has no place in the order. Kept for life unless a client moves
   * the task.
   */
  get priority(): Priority | undefined {
    if (this.rank < 0) return undefined;
    return [this.negatedUserPriority, this.generation, this.rank];
  }

  /** Tasks that depend on this one, without the forgotten ones. Builds an array. */
  get dependents(): readonly TaskState[] {
    return this.dependentsWithForgotten.filter((dependent) => dependent.state !== 'forgotten');
  }

  /** Dependencies without a replica; empty unless `waiting`. Builds an array. */
  get waitingOn(): readonly TaskState[] {
    if (this.state !== 'waiting') return [];
    return this.dependencies.filter((dependency) => dependency.whoHas.size === 0);
  }

  /** Dependents that keep this result alive. Builds an array. */
  get waiters(): readonly TaskState[] {
    return this.dependents.filter((dependent) => dependent.countsAsWaiter);
  }

  /** True when the result is still needed by a dependent in play or a client. */
  get isNeeded(): boolean {
    return this.waiterCount > 0 || this.whoWants.size > 0;
  }

  get isActive(): boolean {
    return isActive(this.state);
  }

  /** True when it has anything that most tasks never have. */
  get hasRareFields(): boolean {
    return this.optionalFields !== undefined;
  }

  private get rareFields(): RareFields {
    return (this.optionalFields ??= new RareFields());
  }

  toString(): string {
    return `<Task ${this.key} ${this.state}>`;
  }
}

/**
 * The order in which tasks run: by priority, and first come, first served between submissions that share a
 * generation. A total order, so that no result depends on the order of a container.
 */
export function byPriority(a: TaskState, b: TaskState): number {
  const user = a.negatedUserPriority - b.negatedUserPriority;
  if (user !== 0) return user;
  const generation = a.generation - b.generation;
  if (generation !== 0) return generation;
  const rank = a.rank - b.rank;
  if (rank !== 0) return rank;
  const arrival = a.arrival - b.arrival;
  if (arrival !== 0) return arrival;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

export function isSortedByPriority(tasks: readonly TaskState[]): boolean {
  return tasks.every((task, n) => n === 0 || byPriority(tasks[n - 1] as TaskState, task) <= 0);
}

/** The workers on which a task may run. A task without restrictions has no such object. */
export interface Restrictions {
  /** Addresses; they may name workers that are not connected (yet). */
  readonly workers?: ReadonlySet<string>;
  /**
   * Names of workers, looked up at the time of use; a name that no worker has is taken for a host.
   */
  readonly names?: ReadonlySet<string>;
  /** Host names, or worker names that stand for their hosts. */
  readonly hosts?: ReadonlySet<string>;
  /** Amount of each resource that the task occupies while it is processing. */
  readonly resources?: ReadonlyMap<string, number>;
  /** True when the restrictions on workers and hosts are only preferences. */
  readonly loose?: boolean;
}

/**
 * A request to give a task up, sent to the worker that is processing it, and its outcome. It stays
 * with the task until that leaves `processing`.
 */
export class Steal {
  /**
   * `asked`: no answer yet. `refused`: the victim had begun. `moved`: the thief has it.
   * Written in `relations.ts` alone.
   */
  state: 'asked' | 'refused' | 'moved' = 'asked';

  constructor(
    readonly victim: WorkerState,
    readonly thief: WorkerState,
    /** Seconds of work that the victim will be rid of. */
    readonly victimS: number,
    /** Seconds of work that the thief will get. */
    readonly thiefS: number,
  ) {}
}
