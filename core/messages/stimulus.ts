/**
 * Everything that can happen to the scheduler.
 *
 * A message from a worker or a client becomes a stimulus when its host stamps it with the sender;
 * timers and plugins bring the rest. Each carries the `stimulusId` under which its consequences can
 * be found in the story. Field meanings: behaviour.md section 3.
 */
import type { ActionTiming } from '../state/groups.ts';
import type { TaskFailure } from '../state/task.ts';
import type { WorkerIdentity, WorkerMetrics, WorkerStatus } from '../state/worker.ts';
import type { HeldResults } from './protocol.ts';

interface Caused {
  /** Unique name of the event: `task-finished-17`. */
  readonly stimulusId: string;
}
interface OfWorker extends Caused {
  /** Address of the sender. */
  readonly worker: string;
}
interface OfClient extends Caused {
  /** Key of the sender. */
  readonly client: string;
}

// ---- from workers, on the stream -------------------------------------------------------------

/** A task was computed; its result stays on the worker. */
export interface TaskFinished extends OfWorker {
  readonly op: 'task-finished';
  readonly key: string;
  readonly runId: number;
  /** Size of the result in bytes. */
  readonly nbytes: number;
  /** Type name of the result. */
  readonly type: string;
  /** What took how long, in the scheduler's clock. */
  readonly timings: readonly ActionTiming[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The result itself, for the clients that wait for it; the kernel has no use for it. */
  readonly value?: Uint8Array;
}

/** A task failed. */
export interface TaskErred extends OfWorker {
  readonly op: 'task-erred';
  readonly key: string;
  readonly runId: number;
  readonly failure: TaskFailure;
  readonly timings?: readonly ActionTiming[];
}

/** The task asks to be placed anew. Not a failure. */
export interface Reschedule extends Caused {
  readonly op: 'reschedule';
  readonly key: string;
  /** Undefined: wherever it is. */
  readonly worker?: string;
}

/** The task seceded: it goes on, but no longer occupies a thread. */
export interface LongRunning extends OfWorker {
  readonly op: 'long-running';
  readonly key: string;
  readonly runId: number;
  /** Seconds computed until it seceded; undefined when it seceded before. */
  readonly computeDurationS?: number;
}

/** Runs that were taken back from the worker occupy no thread there (any more). */
export interface RunsOver extends OfWorker {
  readonly op: 'runs-over';
  readonly runIds: readonly number[];
}

/** The worker holds copies of these results. */
export interface AddKeys extends OfWorker {
  readonly op: 'add-keys';
  readonly keys: readonly string[];
}

/** The worker does not know any more where these are. */
export interface RequestRefreshWhoHas extends OfWorker {
  readonly op: 'request-refresh-who-has';
  readonly keys: readonly string[];
}

/**
 * The answer to `steal-request`: the state in which each task was on the worker. One that was
 * `waiting`, `ready` or `constrained` it has given up in that moment. Parallel arrays.
 */
export interface StealResponse extends OfWorker {
  readonly op: 'steal-response';
  readonly keys: readonly string[];
  /** As in the request. */
  readonly runIds: readonly number[];
  /** `unknown`: the worker has never heard of it, or not any more. */
  readonly states: readonly string[];
}

/** The worker dropped a result. */
export interface ReleaseWorkerData extends OfWorker {
  readonly op: 'release-worker-data';
  readonly key: string;
}

/** A worker was paused, runs again, or is about to close. */
export interface WorkerStatusChange extends OfWorker {
  readonly op: 'worker-status-change';
  readonly status: WorkerStatus;
}

/** Somebody publishes a message under topics. */
export interface LogEvent extends Caused {
  readonly op: 'log-event';
  readonly topics: readonly string[];
  readonly message: unknown;
  /** The worker that logs, if one does. */
  readonly worker?: string;
}

/** Keeps firewalls from closing a quiet connection. */
export interface KeepAlive extends OfWorker {
  readonly op: 'keep-alive';
}

// ---- workers come, go and live ---------------------------------------------------------------

/** A worker has come. */
export interface RegisterWorker extends Caused {
  readonly op: 'register-worker';
  readonly identity: WorkerIdentity;
  readonly status: WorkerStatus;
  readonly metrics?: WorkerMetrics;
  /** It comes back after its connection was lost, with these. */
  readonly held?: HeldResults;
}

/** A worker lives, and tells how it is. */
export interface HeartbeatWorker extends OfWorker {
  readonly op: 'heartbeat-worker';
  readonly metrics: WorkerMetrics;
  /** Seconds for which each key has been running. */
  readonly executing: readonly (readonly [key: string, seconds: number])[];
  /** The worker's clock in milliseconds. */
  readonly workerNowMs: number;
  readonly resources?: Readonly<Record<string, number>>;
}

/** The worker is gone, or shall go. */
export interface RemoveWorker extends OfWorker {
  readonly op: 'remove-worker';
  /** An expected departure does not make the tasks that ran there suspicious. */
  readonly expected: boolean;
  /** Tell the worker to close. */
  readonly close: boolean;
  /** With `close`: a new process shall take its place, if somebody looks after it. Default false. */
  readonly restart?: boolean;
}

// ---- from clients ----------------------------------------------------------------------------

/** A client has come. */
export interface RegisterClient extends OfClient {
  readonly op: 'register-client';
  readonly versions?: Readonly<Record<string, string>>;
}

/** A client has gone; its wishes are released. */
export interface RemoveClient extends OfClient {
  readonly op: 'remove-client';
}

/** A client lives. */
export interface HeartbeatClient extends OfClient {
  readonly op: 'heartbeat-client';
}

/** One task of a submitted graph. */
export interface GraphTask {
  readonly key: string;
  readonly dependencies: readonly string[];
  /** Opaque; undefined only for a key that the cluster knows already. */
  readonly runSpec: unknown;
  /** Position in the static order of the graph; without one the ordering policy gives it. */
  readonly rank?: number;
  /** Higher runs earlier. Default 0. */
  readonly userPriority?: number;
  readonly retries?: number;
  /** Addresses, host names or worker names. */
  readonly workers?: readonly string[];
  readonly hosts?: readonly string[];
  readonly allowOtherWorkers?: boolean;
  readonly resources?: Readonly<Record<string, number>>;
  readonly actor?: boolean;
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** Default: derived from the key. */
  readonly group?: string;
  readonly prefix?: string;
}

/** A client submits tasks. */
export interface UpdateGraph extends OfClient {
  readonly op: 'update-graph';
  readonly tasks: readonly GraphTask[];
  /** Keys whose results the client wants. */
  readonly keys: readonly string[];
  /** Submissions closer together than this share a generation. Default 0. */
  readonly fifoTimeoutMs?: number;
  /** The task from inside which this graph was submitted. */
  readonly submittingTask?: string;
  /**
   * The graph is taken in by slices of about this many tasks, each at a `continue-graph`. Default: at
   * once.
   */
  readonly sliceTasks?: number;
}

/**
 * The next slice of the oldest graph that is being taken in by slices. Carries the stimulus id of its
 * `update-graph`, because all of it is one submission.
 */
export interface ContinueGraph extends Caused {
  readonly op: 'continue-graph';
}

/**
 * Goes on with what earlier stimuli have left (`KernelOptions.sliceTransitions`): tasks that nobody needs
 * are let go, and open slots are filled.
 */
export interface ContinueSettling extends Caused {
  readonly op: 'continue-settling';
}

/** A client wants results of tasks that exist. */
export interface ClientDesiresKeys extends OfClient {
  readonly op: 'client-desires-keys';
  readonly keys: readonly string[];
}

/** A client does not want these results any more. */
export interface ClientReleasesKeys extends OfClient {
  readonly op: 'client-releases-keys';
  readonly keys: readonly string[];
}

/** A client gives tasks up. */
export interface CancelKeys extends OfClient {
  readonly op: 'cancel-keys';
  readonly keys: readonly string[];
  /** Also what other clients want. */
  readonly force: boolean;
  readonly reason?: string;
  /**
   * Milliseconds that a run has to stop before its thread is ended, where threads are ended at all.
   * Default: of the worker.
   */
  readonly killTimeoutMs?: number;
}

/** Computes failed tasks, and what failed with them, once more. */
export interface Retry extends OfClient {
  readonly op: 'retry';
  readonly keys: readonly string[];
}

/**
 * A client moves tasks that it wants within the order in which tasks run. What runs already goes on.
 * Parallel arrays.
 */
export interface SetPriority extends OfClient {
  readonly op: 'set-priority';
  readonly keys: readonly string[];
  /** As {@link GraphTask.userPriority}: finite, higher runs earlier. */
  readonly userPriorities: readonly number[];
  /** What these tasks still need comes at least as early as they do. Default false. */
  readonly raiseInputs?: boolean;
}

/** The client put data on workers itself. */
export interface UpdateData extends OfClient {
  readonly op: 'update-data';
  readonly items: readonly {
    readonly key: string;
    readonly nbytes: number;
    readonly workers: readonly string[];
    readonly type?: string;
    /** As {@link WantReplicas.replicas}. Default 1. */
    readonly replicas?: number;
  }[];
}

/** Asks for the present state of a key as a message. */
export interface ReportKey extends OfClient {
  readonly op: 'report-key';
  readonly key: string;
}

/** Forgets all tasks of all clients. Workers are restarted by their host. */
export interface Restart extends Caused {
  readonly op: 'restart';
}

// ---- from the Active Memory Manager ----------------------------------------------------------

/** Copies to make and to drop. The kernel checks every one of them again. */
export interface MoveReplicas extends Caused {
  readonly op: 'move-replicas';
  readonly acquire: readonly { readonly worker: string; readonly keys: readonly string[] }[];
  readonly remove: readonly { readonly worker: string; readonly keys: readonly string[] }[];
}

/** Somebody wants so many copies of these results. The Active Memory Manager makes and keeps them. */
export interface WantReplicas extends Caused {
  readonly op: 'want-replicas';
  readonly keys: readonly string[];
  /** At least 1. Infinity: on every running worker, also on those that come. */
  readonly replicas: number;
}

/** The scheduler takes a worker out of service, or back into it, and tells the worker. */
export interface SetWorkerStatus extends OfWorker {
  readonly op: 'set-worker-status';
  readonly status: 'running' | 'paused' | 'closing-gracefully';
}

// ---- from work stealing -----------------------------------------------------------------------

/** A task that should go from the worker that is processing it to another one. */
export interface StealWish {
  readonly key: string;
  /** Address of the worker that is processing it. */
  readonly victim: string;
  /** Address of the worker that is to have it. */
  readonly thief: string;
  /** Seconds of work that the victim is rid of, transfers included. */
  readonly victimS: number;
  /** Seconds of work that the thief gets, transfers included. */
  readonly thiefS: number;
}

/** Tasks to ask back from workers. The kernel checks every one of them again. */
export interface StealTasks extends Caused {
  readonly op: 'steal-tasks';
  readonly wishes: readonly StealWish[];
}

// ---- from plugins ----------------------------------------------------------------------------

/** What changes for one task. */
export interface RestrictionChange {
  readonly key: string;
  /**
   * Addresses or names of the workers that may run it, in the place of those before; none: all may.
   * Undefined: as it was.
   */
  readonly workers?: readonly string[];
  /** Whether the queuing policy may hold the task back. Undefined: as it was. */
  readonly isQueueable?: boolean;
}

/**
 * Changes where tasks may run. What is processing stays where it is; what found no worker is placed if
 * it finds one now. Unknown keys are ignored.
 */
export interface SetRestrictions extends Caused {
  readonly op: 'set-restrictions';
  readonly changes: readonly RestrictionChange[];
}

/**
 * Lets go of what these tasks have come to, also of what is computing just now; what is still needed is
 * computed again. No-op for failed tasks, for data that cannot be computed again and for unknown keys.
 */
export interface ReleaseTasks extends Caused {
  readonly op: 'release-tasks';
  readonly keys: readonly string[];
}

// ---- from timers -----------------------------------------------------------------------------

/** Removes workers that have been silent for too long. */
export interface CheckWorkerTtl extends Caused {
  readonly op: 'check-worker-ttl';
}

/** Fails tasks for which there has been no worker for too long. */
export interface CheckNoWorkersTimeout extends Caused {
  readonly op: 'check-no-workers-timeout';
}

/** What a worker may send on its stream, before the host stamps it with the sender. */
export type WorkerReport = Unstamped<
  | TaskFinished
  | TaskErred
  | Reschedule
  | LongRunning
  | RunsOver
  | AddKeys
  | RequestRefreshWhoHas
  | StealResponse
  | ReleaseWorkerData
  | WorkerStatusChange
  | LogEvent
  | KeepAlive
  | HeartbeatWorker,
  'worker'
>;

/**
 * Some tasks of a graph that is too large for one message, and some of the requested keys. Parts come in
 * their order, right before the `update-graph` with the rest.
 */
export type GraphPart = Omit<UpdateGraph, 'op' | 'client' | 'sliceTasks'> & {
  readonly op: 'graph-part';
};

/** A graph as clients submit it. */
export type SubmittedGraph = Omit<UpdateGraph, 'client' | 'sliceTasks'> & {
  /** Parts that came before. Default 0. */
  readonly parts?: number;
};

/** What a client may send on its stream, before the host stamps it with the sender. */
export type ClientReport =
  | GraphPart
  | SubmittedGraph
  | Unstamped<
      | ClientDesiresKeys
      | ClientReleasesKeys
      | CancelKeys
      | Retry
      | SetPriority
      | UpdateData
      | ReportKey
      | HeartbeatClient,
      'client'
    >;

type Unstamped<T, Stamp extends string> = T extends unknown ? Omit<T, Stamp> : never;

/** Everything that can happen to the scheduler. */
export type Stimulus =
  | TaskFinished
  | TaskErred
  | Reschedule
  | LongRunning
  | RunsOver
  | AddKeys
  | RequestRefreshWhoHas
  | StealResponse
  | ReleaseWorkerData
  | WorkerStatusChange
  | LogEvent
  | KeepAlive
  | RegisterWorker
  | HeartbeatWorker
  | RemoveWorker
  | RegisterClient
  | RemoveClient
  | HeartbeatClient
  | UpdateGraph
  | ContinueGraph
  | ContinueSettling
  | ClientDesiresKeys
  | ClientReleasesKeys
  | CancelKeys
  | Retry
  | SetPriority
  | UpdateData
  | ReportKey
  | Restart
  | MoveReplicas
  | WantReplicas
  | SetWorkerStatus
  | StealTasks
  | SetRestrictions
  | ReleaseTasks
  | CheckWorkerTtl
  | CheckNoWorkersTimeout;
