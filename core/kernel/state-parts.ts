import type { TaskGroup, TaskPrefix } from '../state/groups.ts';
import type { ClientState, TaskFailure, TaskState, WorkerState } from '../state/task.ts';
import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';

// The state of a kernel as plain data, in parts of bounded size. `docs/log.md` describes the parts for readers in other
// languages. A task is named by its id, a worker, client, group or prefix by its position in the lists below. Times are
// in milliseconds of the scheduler's clock unless the name says otherwise.

/** Stands for how to compute a task, where that is not written down. The kernel only asks whether there is any. */
export const OPAQUE = 'not recorded';

/** Stands in lists of tasks for one that is forgotten. */
export const FORGOTTEN = -1;

/** A piece of the state. They come in the order of this list; `groups` and `tasks` several times when they are many. */
export type StatePart =
  | KernelPart
  | { readonly part: 'prefixes'; readonly prefixes: readonly SavedPrefix[] }
  | { readonly part: 'groups'; readonly groups: readonly SavedGroup[] }
  | WorkersPart
  | TasksPart
  | HoldingsPart
  | PoliciesPart;

/** The numbers of the kernel. */
export interface KernelPart {
  readonly part: 'kernel';
  readonly nextRunId: number;
  readonly nextArrival: number;
  readonly transitions: number;
  readonly bandwidth: number;
  readonly stealsInFlight: number;
  readonly assignedCount: number;
  readonly generation: number;
  readonly lastGenerationMs: number;
  readonly computingCount: number;
  readonly computeOccupancyS: number;
  readonly networkBytes: number;
  readonly noWorkersSinceMs: number | null;
  readonly nextTaskId: number;
  /** Ids of forgotten tasks; the last one is used next. */
  readonly freeTaskIds: readonly number[];
  readonly nextWorkerSequence: number;
  /** The latest failures, the newest first. */
  readonly erredTasks: readonly unknown[];
}

/** Numbers of a prefix, and what it has learnt. */
export interface SavedPrefix {
  readonly name: string;
  /** False for one that was dropped, and that a group still names. */
  readonly isKnown: boolean;
  readonly durationAverageS: number;
  readonly maxExecTimeS: number;
  readonly durationEstimateS: number;
  readonly suspicious: number;
  readonly processingCount: number;
  /** The number of tasks that ever entered each state, in the order of the states. */
  readonly entered: readonly number[];
  /** Samples, average seconds, average bytes, step: how its tasks share slots. */
  readonly sharing: readonly number[];
}

/** Numbers of a group. */
export interface SavedGroup {
  readonly name: string;
  readonly prefix: number;
  /** False for one without tasks that another group depends on. */
  readonly isKnown: boolean;
  /** Tasks in each state, in the order of the states. */
  readonly states: readonly number[];
  readonly size: number;
  /** Groups. */
  readonly dependencies: readonly number[];
  readonly nbytesTotal: number;
  readonly startS: number;
  readonly stopS: number;
  readonly durationS: number;
  readonly otherDurationsS: readonly (readonly [action: string, seconds: number])[];
  readonly types: readonly (readonly [type: string, count: number])[];
}

/** Workers by rank, then those that have left and that a steal names; clients; and the tables of workers. */
export interface WorkersPart {
  readonly part: 'workers';
  readonly workers: readonly SavedWorker[];
  /** The number of those that are registered. */
  readonly registered: number;
  /** Registered workers in the order of their registration. */
  readonly order: readonly number[];
  readonly hosts: readonly (readonly [host: string, addresses: readonly string[]])[];
  readonly resources: readonly (readonly [
    resource: string,
    supply: readonly (readonly [address: string, amount: number])[],
  ])[];
  readonly running: readonly number[];
  readonly idle: readonly number[];
  readonly saturated: readonly number[];
  /** With what they are sorted by. */
  readonly openSlots: readonly (readonly [worker: number, load: number])[];
  readonly clients: readonly SavedClient[];
  /** Prefixes without tasks, the longest unused first. */
  readonly unusedPrefixes: readonly number[];
  /** Groups of each prefix. */
  readonly prefixGroups: readonly (readonly number[])[];
}

/** A worker without its tasks. */
export interface SavedWorker {
  readonly identity: WorkerIdentity;
  readonly sequence: number;
  readonly status: WorkerStatus;
  readonly slotLimit: number;
  readonly endingRuns: readonly number[];
  readonly prefixCounts: readonly (readonly [prefix: number, count: number])[];
  readonly networkBytes: number;
  readonly nbytes: number;
  readonly resources: readonly (readonly [resource: string, amount: number])[];
  readonly usedResources: readonly (readonly [resource: string, amount: number])[];
  readonly stealsInFlight: number;
  readonly inFlightS: number;
  readonly inFlightTasks: number;
  readonly metrics: WorkerMetrics;
  readonly lastSeenMs: number;
  readonly deafMs: number;
  readonly timeDelayMs: number;
  /** Measurements of unmanaged memory, and the least of them. */
  readonly unmanaged: readonly (readonly [atMs: number, bytes: number])[];
  readonly unmanagedOld: number;
  readonly measuredNbytes: number;
}

/** A client without the tasks that it wants. */
interface SavedClient {
  readonly key: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly isMute: boolean;
  readonly lastSeenMs: number;
}

/** Up to some thousand tasks, in columns: the n-th entry of each is of the n-th task. */
export interface TasksPart {
  readonly part: 'tasks';
  readonly keys: readonly string[];
  readonly ids: readonly number[];
  readonly groups: readonly number[];
  /** Position of the state, plus 16 when it counts as a waiter, plus 32 when it can be computed. */
  readonly states: readonly number[];
  readonly nbytes: readonly number[];
  readonly types: readonly (string | null)[];
  readonly runIds: readonly number[];
  readonly negatedUserPriorities: readonly number[];
  readonly generations: readonly number[];
  readonly ranks: readonly number[];
  readonly arrivals: readonly number[];
  readonly waiterCounts: readonly number[];
  readonly missingCounts: readonly number[];
  readonly dependentCounts: readonly number[];
  /** Tasks. */
  readonly dependencies: readonly (readonly number[])[];
  readonly dependents: readonly (readonly number[])[];
  /** Workers. */
  readonly whoHas: readonly (readonly number[])[];
  /** Clients. */
  readonly whoWants: readonly (readonly number[])[];
  /** The run specifications of the tasks; only journals have them, because a scheduler starts from a journal. */
  readonly runSpecs?: readonly unknown[];
  /** The fields that few tasks have, with the position of the task in the columns. */
  readonly rare: readonly (readonly [position: number, fields: SavedRareFields])[];
}

/** The fields that few tasks have; one that is left out has its default. */
export interface SavedRareFields {
  readonly restrictions?: SavedRestrictions;
  /** A task that is failed for the same reason, as a rule the one that failed; or the reason. */
  readonly blame?: number | SavedBlame;
  readonly hasLostDependencies?: true;
  readonly retries?: number;
  readonly suspicious?: number;
  readonly reschedules?: number;
  readonly usedWorkers?: readonly string[];
  readonly isActor?: true;
  readonly isDataProducer?: true;
  readonly isQueueable?: false;
  readonly replicas?: number;
  readonly failure?: TaskFailure;
  /** Of a sweep of its dependents: places seen and kept. */
  readonly sweep?: readonly [seen: number, kept: number];
  readonly erredOn?: readonly string[];
  readonly steal?: SavedSteal;
  readonly fingerprint?: string;
  readonly reservation?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** A failure of a task that is not failed any more, or forgotten. */
export interface SavedBlame {
  readonly key: string;
  readonly failure: TaskFailure;
}

/** The workers on which a task may run. */
export interface SavedRestrictions {
  readonly workers?: readonly string[];
  readonly names?: readonly string[];
  readonly hosts?: readonly string[];
  readonly resources?: readonly (readonly [resource: string, amount: number])[];
  readonly loose?: boolean;
}

/** A steal of a task; victim and thief are workers. */
export interface SavedSteal {
  readonly state: 'asked' | 'refused' | 'moved';
  readonly victim: number;
  readonly thief: number;
  readonly victimS: number;
  readonly thiefS: number;
}

/** A limit, with its tasks. */
export interface SavedLimit {
  readonly name: string;
  readonly max: number;
  readonly tasks: readonly number[];
  /** Of these, those that wait for it. */
  readonly queued: readonly number[];
  /** Ids of runs that were taken back and may not have ended. */
  readonly endingRuns: readonly number[];
}

/** Lists of tasks. The first ones have an entry for each worker, or for each client. */
export interface HoldingsPart {
  readonly part: 'holdings';
  readonly processing: readonly (readonly number[])[];
  readonly longRunning: readonly (readonly number[])[];
  readonly hasWhat: readonly (readonly number[])[];
  readonly needsWhat: readonly (readonly (readonly [task: number, count: number])[])[];
  readonly executing: readonly (readonly (readonly [task: number, seconds: number])[])[];
  readonly translations: readonly (readonly number[])[];
  readonly actors: readonly (readonly number[])[];
  readonly wantsWhat: readonly (readonly number[])[];
  readonly queued: readonly number[];
  readonly unrunnable: readonly (readonly [task: number, sinceMs: number])[];
  readonly refused: readonly number[];
  /** The number of those that have had their turn in this round. */
  readonly refusedSeen: number;
  /** In the order in which they came; left out when there are none. */
  readonly limits?: readonly SavedLimit[];
  readonly replicated: readonly number[];
  readonly replicasWanted: readonly number[];
  /** Workers that have a translation, by task. */
  readonly translated: readonly (readonly [task: number, workers: readonly number[]])[];
}

/** The memory of the policies, by slot; those that have none are left out. */
export interface PoliciesPart {
  readonly part: 'policies';
  readonly inCharge: Readonly<Record<string, unknown>>;
  readonly fallbacks: Readonly<Record<string, unknown>>;
}

// How what is written refers to what is written elsewhere.

/** Added to the number of a state. */
export const WAITER = 16;
export const COMPUTABLE = 32;

/** Positions of objects in a list that is written, in the order in which they were added. */
export class Positions<T> {
  readonly items: T[] = [];
  private readonly byItem = new Map<T, number>();

  constructor(items: Iterable<T> = []) {
    for (const item of items) this.of(item);
  }

  /** The position of an item; it is added when it is not there. */
  of(item: T): number {
    let position = this.byItem.get(item);
    if (position === undefined) {
      position = this.items.length;
      this.items.push(item);
      this.byItem.set(item, position);
    }
    return position;
  }
}

/** The tables that the parts of one snapshot refer to. */
export interface SnapshotTables {
  readonly prefixes: Positions<TaskPrefix>;
  readonly groups: Positions<TaskGroup>;
  /** By rank, then those that have left. */
  readonly workers: Positions<WorkerState>;
  readonly clients: Positions<ClientState>;
}

/** The number that names a task. */
export function idOf(task: TaskState): number {
  return task.state === 'forgotten' ? FORGOTTEN : task.id;
}
