/**
 * The read-only faces of the scheduler's state: what plugins and policies see.
 *
 * They are no copies: what is read is true only until the hook or the policy returns. Plugins and policies that
 * are not part of this package cannot write through them (`ERR_READ_ONLY`); a property that they read costs a few
 * nanoseconds more, and one of a list or of plain data some fifty.
 */
import type { KnownPrefix } from '../state/groups.ts';
import type { Priority, Restrictions, TaskFailure } from '../state/task.ts';
import type { TaskStateName } from '../state/state-names.ts';
import type {
  LostWorker,
  MemoryState,
  WorkerIdentity,
  WorkerMetrics,
  WorkerStatus,
} from '../state/worker.ts';

/** A set whose iteration order is fixed by a rule, not by chance. */
export interface Members<T> extends Iterable<T> {
  readonly size: number;
  has(item: T): boolean;
}

/** A {@link Members} of a handful, with its array for loops that must be fast. */
export interface FewMembers<T> extends Members<T> {
  readonly items: readonly T[];
}

/** All tasks of one operation. */
export interface PrefixView {
  readonly name: string;
  /** Average seconds of computation; -1 while unknown. */
  readonly durationAverageS: number;
  /** Seconds that one more task is expected to take. */
  readonly durationEstimateS: number;
  /** Average bytes of a result; 0 while unknown. */
  readonly nbytesAverage: number;
  /** The measurements of its tasks, and of those of earlier runs; undefined while there are none. Built anew for each reader. */
  readonly known: KnownPrefix | undefined;
  readonly suspicious: number;
  readonly states: Readonly<Record<TaskStateName, number>>;
  /** The number of tasks that ever entered each state. */
  readonly stateCounts: Readonly<Record<TaskStateName, number>>;
  /** Bytes of the results computed by groups that still have tasks. */
  readonly nbytesTotal: number;
  /** Bytes of all results ever computed: it never falls. */
  readonly nbytesProduced: number;
  /** Seconds of all computations of its tasks, forgotten ones included: they never fall. */
  readonly computedS: number;
  /** Seconds for which its tasks waited for inputs from other workers: the same. */
  readonly transferredS: number;
}

/** All tasks of one collection. */
export interface GroupView {
  readonly name: string;
  readonly prefix: PrefixView;
  /** Tasks ever added. */
  readonly size: number;
  readonly states: Readonly<Record<TaskStateName, number>>;
  readonly dependencies: ReadonlySet<GroupView>;
  readonly nbytesTotal: number;
  readonly types: ReadonlyMap<string, number>;
  /** Seconds of computation, summed over the tasks. */
  readonly durationS: number;
  /** Seconds spent by any other action (`transfer`, `disk-read`, …), summed over the tasks. */
  readonly otherDurationsS: ReadonlyMap<string, number>;
}

/** A task as the scheduler sees it. */
export interface TaskView {
  readonly key: string;
  /** Dense and small; reused after the task is forgotten. */
  readonly id: number;
  readonly state: TaskStateName;
  readonly group: GroupView;
  readonly prefix: PrefixView;
  /** `[-userPriority, generation, rank]`, smaller runs sooner; undefined for pure data. Built anew. */
  readonly priority: Priority | undefined;
  /** The parts of the priority; the rank is -1 for pure data. */
  readonly negatedUserPriority: number;
  /** Number of the submission that gave it the priority: equal priorities run in its order. */
  readonly arrival: number;
  readonly generation: number;
  readonly rank: number;
  readonly dependencies: readonly TaskView[];
  /** Builds an array. */
  readonly dependents: readonly TaskView[];
  readonly dependentCount: number;
  /** Dependencies without a result; builds an array. */
  readonly waitingOn: readonly TaskView[];
  /** Dependents in play that keep this result alive; builds an array. */
  readonly waiters: readonly TaskView[];
  readonly waiterCount: number;
  readonly whoHas: FewMembers<WorkerView>;
  readonly whoWants: FewMembers<ClientView>;
  readonly processingOn: WorkerView | undefined;
  /** The state of stealing while the task has been processing where it is. */
  readonly steal: StealView | undefined;
  /** Bytes of the result; -1 while unknown. */
  readonly nbytes: number;
  readonly type: string | undefined;
  readonly retries: number;
  readonly suspicious: number;
  readonly isActor: boolean;
  /** True when its author says that it loads or makes data. */
  readonly isDataProducer: boolean;
  readonly isQueueable: boolean;
  /** Copies that were requested; 1 without a request. Infinity: one on every running worker. */
  readonly replicas: number;
  readonly restrictions: Restrictions | undefined;
  /** Bounds how many tasks run at the same time, this one among them. */
  readonly limit: TaskLimitView | undefined;
  /** Id of the latest assignment; below 0 before the first. */
  readonly runId: number;
  /** An input was forgotten: it cannot be computed. */
  readonly hasLostDependencies: boolean;
  readonly exceptionBlame: TaskView | undefined;
  /** Addresses of the workers on which it failed; empty unless it is failed. */
  readonly erredOn: ReadonlySet<string>;
  readonly failure: TaskFailure | undefined;
  /** The specification of the computation; opaque. Undefined for data. */
  readonly runSpec: unknown;
  readonly annotations: Readonly<Record<string, unknown>> | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/** A bound of the tasks that have it, in the whole cluster. */
export interface TaskLimitView {
  readonly name: string;
  /** At most so many run at the same time; Infinity: any number. */
  readonly max: number;
  /** Milliseconds from one start to the next, in the long run; undefined: no rate is set. */
  readonly intervalMs: number | undefined;
  /** Tasks that are processing, and runs that were taken back and may not have ended. */
  readonly runningCount: number;
  /** Tasks in `queued` that wait for it; `peek` is the first by priority. */
  readonly queued: Iterable<TaskView> & { readonly size: number; peek(): TaskView | undefined };
}

/** A worker as the scheduler sees it. */
export interface WorkerView {
  readonly identity: WorkerIdentity;
  readonly address: string;
  readonly name: string;
  readonly host: string;
  readonly threadCount: number;
  /** 0 = unlimited. */
  readonly memoryLimitBytes: number;
  /** Of the tasks that it computes: `javascript`, `python`. */
  readonly language: string;
  readonly status: WorkerStatus;
  /** Position in the order that breaks ties. */
  readonly rank: number;
  /** Seconds of work ahead, transfers included. O(prefixes processing there). */
  readonly occupancyS: number;
  /**
   * The factor by which tasks take longer here than usually: what the speeds say that workers measure as they start, and
   * what their tasks show beyond it, as far as that is told from noise. 1: no longer, or nobody knows. Occupancy and
   * estimates of durations do not contain it.
   */
  readonly pace: number;
  /** Seconds of work that it will have more (less: negative) when all steals in flight succeed. */
  readonly inFlightS: number;
  /** Tasks likewise. */
  readonly inFlightTasks: number;
  /** Root-ish tasks that it could still take, short ones counted in part; Infinity without queuing. */
  readonly openSlots: number;
  /** Bytes of the results it holds. */
  readonly nbytes: number;
  /** Results it holds, oldest first. */
  readonly hasWhat: Members<TaskView>;
  /** Tasks sent to it, in the order of assignment. */
  readonly processing: Members<TaskView>;
  readonly longRunning: Members<TaskView>;
  /** Tasks that ran at its last heartbeat, and the seconds for which they had; some may have ended since. */
  readonly executing: ReadonlyMap<TaskView, number>;
  /**
   * Ids of runs that were taken back and may not have ended: each occupies a thread until it has.
   */
  readonly endingRuns: Members<number>;
  /** Results that it lacks and that tasks which were sent there need: it fetches them anyway. */
  readonly needsWhat: { readonly size: number; has(task: TaskView): boolean };
  /** Bytes of these; part of `occupancyS`. */
  readonly networkBytes: number;
  /** Bytes that it has to send: of each result that it alone holds, times the workers that need it. */
  readonly requestedBytes: number;
  readonly actors: Members<TaskView>;
  readonly resources: ReadonlyMap<string, number>;
  readonly usedResources: ReadonlyMap<string, number>;
  readonly metrics: WorkerMetrics;
  readonly memory: MemoryState;
  readonly lastSeenMs: number;
}

/** A client as the scheduler sees it. */
export interface ClientView {
  readonly key: string;
  readonly wantsWhat: ReadonlySet<TaskView>;
  readonly lastSeenMs: number;
}

/**
 * A request to give a task up, sent to the worker that is processing it, and its outcome: no answer
 * yet; refused, because the task had begun; or moved, the thief has it.
 */
export interface StealView {
  readonly state: 'asked' | 'refused' | 'moved';
  readonly victim: WorkerView;
  readonly thief: WorkerView;
}

/** The whole cluster as the scheduler sees it. */
export interface ClusterView {
  /** The time of the event that is being handled, in milliseconds of the scheduler's clock; virtual in a simulation. */
  readonly nowMs: number;
  readonly tasks: ReadonlyMap<string, TaskView>;
  readonly groups: ReadonlyMap<string, GroupView>;
  readonly prefixes: ReadonlyMap<string, PrefixView>;
  readonly workers: ReadonlyMap<string, WorkerView>;
  readonly clients: ReadonlyMap<string, ClientView>;
  readonly running: Members<WorkerView>;
  /** Running workers with little to do. */
  readonly idle: Members<WorkerView> & { at(k: number): WorkerView | undefined };
  readonly saturated: Members<WorkerView>;
  /** Workers with an open slot; `peek` is the least busy one. */
  readonly openSlots: Iterable<WorkerView> & {
    readonly size: number;
    peek(): WorkerView | undefined;
  };
  /** Limits that tasks have, in the order in which they came. */
  readonly limits: Iterable<TaskLimitView> & {
    readonly size: number;
    /** Tasks refused because of `maxQueued`, by name of the limit, since the scheduler started. */
    readonly refusals: ReadonlyMap<string, number>;
  };
  /**
   * Workers that went unexpectedly, by name, the one that went last at the end; of the last thousand names. A name may
   * have come back.
   */
  readonly lost: ReadonlyMap<string, LostWorker>;
  /** Tasks that are held back for an open slot; `peek` is the first by priority. */
  readonly queued: Iterable<TaskView> & { readonly size: number; peek(): TaskView | undefined };
  readonly unrunnable: ReadonlyMap<TaskView, number>;
  /** Tasks with two or more replicas. */
  readonly replicated: ReadonlySet<TaskView>;
  /** Tasks with a request for two or more replicas (`replicas`), whatever their state. */
  readonly replicasWanted: ReadonlySet<TaskView>;
  /** Tasks that were asked back from their workers and have not been answered for. */
  readonly stealsInFlight: number;
  /**
   * Says whether a worker suits this task, whatever its status: `tolerably` when it breaks restrictions
   * that are only preferences. O(restrictions of the task + rules).
   * @param victim - the worker that the task would leave, which rules may forbid
   */
  suits(task: TaskView, worker: WorkerView, victim?: WorkerView): 'no' | 'tolerably' | 'well';
  /** True when every worker suits the task: it has no restrictions, and no rule refuses workers or moves. */
  suitsAnywhere(task: TaskView): boolean;
  /**
   * The restrictions that no running worker satisfies, and the rules because of which the task waits, in words; undefined
   * when neither keeps it from every worker. O(workers * rules).
   */
  whyWaits(task: TaskView): string | undefined;
  readonly totalThreads: number;
  /** The memory of all workers, summed. O(workers). */
  readonly memory: MemoryState;
  readonly totalOccupancyS: number;
  /** Number of the generation that the newest submissions have (see `TaskView.generation`). */
  readonly generation: number;
  /** Assignments so far. */
  readonly assignedCount: number;
  readonly costs: {
    /** Bytes per second between two workers. */
    readonly bandwidth: number;
    /** Bytes that a result of unknown size is taken for. */
    readonly defaultDataSize: number;
    /** Seconds by prefix, as configured. */
    readonly defaultTaskDurationsS: ReadonlyMap<string, number>;
  };
}
