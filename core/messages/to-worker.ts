/**
 * Messages from the scheduler to a worker. One-to-one with Dask's messages; adapters encode them.
 */
import type { Priority } from '../state/task.ts';
import type { WorkerStatus } from '../state/worker.ts';
import type { Caused } from './cause.ts';

/** Results and where they are, as parallel arrays: keys never become names of object fields. */
export interface ReplicaLocations {
  readonly keys: readonly string[];
  /** Bytes; -1 while unknown. */
  readonly nbytes: readonly number[];
  /** Addresses that hold each key. */
  readonly whoHas: readonly (readonly string[])[];
}

/** Compute this task, fetching its inputs from their holders first. */
export interface ComputeTask extends Caused {
  readonly op: 'compute-task';
  readonly key: string;
  /** To be repeated in the answer. */
  readonly runId: number;
  readonly priority: Priority;
  /** Number of the submission, which breaks ties between equal priorities: the lowest runs first. Default 0. */
  readonly arrival?: number;
  readonly runSpec: unknown;
  readonly dependencies: ReplicaLocations;
  /** Seconds that it is expected to take. */
  readonly durationS: number;
  readonly resources?: Readonly<Record<string, number>>;
  /** Name of its limit, to be repeated when the worker comes back to another scheduler. */
  readonly limit?: string;
  readonly actor?: boolean;
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** The task was assigned before, so a store of results may have its result by now. Default false. */
  readonly isRepeated?: boolean;
  /**
   * A client waits for the result: `task-finished` shall include it when it has at most this many
   * bytes. Default 0: not included.
   */
  readonly sendAlongBytes?: number;
}

/** These are not needed on this worker any more, in whatever state they are there. */
export interface FreeKeys extends Caused {
  readonly op: 'free-keys';
  readonly keys: readonly string[];
  /** Milliseconds that a run of them has to stop. Default: of the worker. */
  readonly killTimeoutMs?: number;
  /**
   * The assignments that are taken back, parallel to `keys`: the worker shall report their ends
   * with `runs-over`.
   */
  readonly runIds?: readonly number[];
  /** The latest number of `reserve-data` so far. Data that was put under a later one stays. */
  readonly reservation?: number;
}

/**
 * Give these back if they have not begun, so that another worker can have them. Answered with
 * `steal-response`. Parallel arrays.
 */
export interface StealRequest extends Caused {
  readonly op: 'steal-request';
  readonly keys: readonly string[];
  /** The assignments that are meant; a worker that has a newer one of a key keeps it. */
  readonly runIds: readonly number[];
}

/**
 * New priorities of tasks that were sent to the worker. Running tasks are not affected. Parallel
 * arrays.
 */
export interface SetTaskPriorities extends Caused {
  readonly op: 'set-priority';
  readonly keys: readonly string[];
  /** The assignments that are meant. */
  readonly runIds: readonly number[];
  readonly priorities: readonly Priority[];
}

/** More patient time limits of tasks that were sent to the worker, also of those that run. Parallel arrays. */
export interface ExtendTimeLimits extends Caused {
  readonly op: 'extend-time-limits';
  readonly keys: readonly string[];
  /** The assignments that are meant. */
  readonly runIds: readonly number[];
  /** Milliseconds from the beginning of the run. Infinity: no limit. */
  readonly timeLimitsMs: readonly number[];
}

/** The answer to `run-resumes`: the run counts for its limit again. Without effect for one that has not asked. */
export interface ResumeRun extends Caused {
  readonly op: 'resume-run';
  readonly key: string;
  readonly runId: number;
}

/** Fetch copies of these. */
export interface AcquireReplicas extends Caused {
  readonly op: 'acquire-replicas';
  readonly replicas: ReplicaLocations;
}

/** Drop copies; the worker may refuse with `add-keys`. */
export interface RemoveReplicas extends Caused {
  readonly op: 'remove-replicas';
  readonly keys: readonly string[];
  /** As in {@link FreeKeys}. */
  readonly reservation?: number;
}

/** The answer to `request-refresh-who-has`. */
export interface RefreshWhoHas extends Caused {
  readonly op: 'refresh-who-has';
  readonly replicas: ReplicaLocations;
}

/** A peer is gone with all it held. */
export interface PeerRemoved extends Caused {
  readonly op: 'remove-worker';
  readonly worker: string;
}

/** The worker shall pause or resume. */
export interface ChangeWorkerStatus extends Caused {
  readonly op: 'worker-status-change';
  readonly status: WorkerStatus;
}

/** The worker shall close. */
export interface CloseWorker extends Caused {
  readonly op: 'close';
  readonly reason: string;
  /** The supervisor of its process shall start it again. Default false. */
  readonly restart?: boolean;
}

/** All messages from the scheduler to workers. */
export type ToWorkerMessage =
  | ComputeTask
  | FreeKeys
  | StealRequest
  | SetTaskPriorities
  | ExtendTimeLimits
  | ResumeRun
  | AcquireReplicas
  | RemoveReplicas
  | RefreshWhoHas
  | PeerRemoved
  | ChangeWorkerStatus
  | CloseWorker;
