/** Messages from workers to the scheduler: registration, heartbeats, reports and leave. */
import type { ActionTiming } from '../state/groups.ts';
import type { TaskFailure } from '../state/task.ts';
import type { WorkerMetrics, WorkerStatus } from '../state/worker.ts';
import type { Finite, Integer, Name, Resources, Size } from '../util/values.ts';
import type { Caused, FromWorker, Unstamped } from './cause.ts';
import type { RegisterWorkerRequest } from './protocol.ts';

// ---- on the stream ---------------------------------------------------------------------------

/** A task was computed; its result stays on the worker. */
export interface TaskFinished extends FromWorker {
  readonly op: 'task-finished';
  readonly key: Name;
  readonly runId: Integer;
  /** Size of the result in bytes. Absent: unknown, which leaves the size as it was, -1 at first. */
  readonly nbytes?: Size;
  /** Type name of the result. */
  readonly type: string;
  /** The duration of each action, in the scheduler's clock. */
  readonly timings: readonly ActionTiming[];
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The result itself, for the clients that wait for it; the kernel has no use for it. */
  readonly value?: Uint8Array;
}

/** A task failed. */
export interface TaskErred extends FromWorker {
  readonly op: 'task-erred';
  readonly key: Name;
  readonly runId: Integer;
  readonly failure: TaskFailure;
  readonly timings?: readonly ActionTiming[];
  /** Its time limit has ended it, and its code goes on: `runs-over` follows. */
  readonly isOverdue?: boolean;
}

/** The task asks to be placed anew. Not a failure. */
export interface Reschedule extends Caused {
  readonly op: 'reschedule';
  readonly key: Name;
  /** Undefined: wherever it is. */
  readonly worker?: Name;
}

/** The run seceded, which may have been taken back meanwhile: it continues, but no longer occupies a thread. */
export interface LongRunning extends FromWorker {
  readonly op: 'long-running';
  readonly key: Name;
  readonly runId: Integer;
  /** Seconds computed until it seceded; undefined when it seceded before. */
  readonly computeDurationS?: Size;
}

/** The run does nothing before the next call of its function: it counts for no limit until it may go on. */
export interface RunPaused extends FromWorker {
  readonly op: 'run-paused';
  readonly key: Name;
  readonly runId: Integer;
}

/** The pause of the run is over. Answered with `resume-run` as soon as its limit has room. */
export interface RunResumes extends FromWorker {
  readonly op: 'run-resumes';
  readonly key: Name;
  readonly runId: Integer;
}

/** Runs that were taken back from the worker, or were overdue, have ended there, or never began. */
export interface RunsOver extends FromWorker {
  readonly op: 'runs-over';
  readonly runIds: readonly Integer[];
}

/** The worker holds copies of these results. */
export interface AddKeys extends FromWorker {
  readonly op: 'add-keys';
  readonly keys: readonly Name[];
}

/** The worker does not know any more where these are. */
export interface RequestRefreshWhoHas extends FromWorker {
  readonly op: 'request-refresh-who-has';
  readonly keys: readonly Name[];
  /** A holder of all of them that the worker could not reach several times in succession. */
  readonly unreachable?: UnreachablePeer;
  /** A worker that has answered several times in succession that it holds none of them. */
  readonly deniedBy?: Name;
}

/** A worker that another worker cannot reach. */
export interface UnreachablePeer {
  readonly address: Name;
  /** The message of the last failure, for people. */
  readonly reason: string;
}

/**
 * The answer to `steal-request`: the state in which each task was on the worker. One that was
 * `waiting`, `ready` or `constrained` it has given up in that moment. Parallel arrays.
 */
export interface StealResponse extends FromWorker {
  readonly op: 'steal-response';
  readonly keys: readonly Name[];
  /** As in the request. */
  readonly runIds: readonly Integer[];
  /** `unknown`: the worker has never heard of it, or not any more. */
  readonly states: readonly string[];
}

/** The worker dropped results. */
export interface ReleaseWorkerData extends FromWorker {
  readonly op: 'release-worker-data';
  readonly keys: readonly Name[];
  /** That of the order to drop them, if there was one. Data that was put under a later one is not meant. */
  readonly reservation?: Integer;
}

/** A worker was paused, runs again, or is about to close. */
export interface WorkerStatusChange extends FromWorker {
  readonly op: 'worker-status-change';
  readonly status: WorkerStatus;
}

/** Publishes a message under topics. */
export interface LogEvent extends Caused {
  readonly op: 'log-event';
  readonly topics: readonly string[];
  readonly message: unknown;
  /** The worker that logs, if one does. */
  readonly worker?: Name;
}

/** Keeps firewalls from closing a quiet connection. */
export interface KeepAlive extends FromWorker {
  readonly op: 'keep-alive';
}

// ---- their lives -----------------------------------------------------------------------------

/** A worker has come. */
export interface RegisterWorker extends Caused, Omit<RegisterWorkerRequest, 'secret'> {
  readonly op: 'register-worker';
  /** With a journal: hash of the secret with which it may come back. */
  readonly secretHash?: string;
}

/** A heartbeat of a worker, with its measurements. */
export interface HeartbeatWorker extends FromWorker {
  readonly op: 'heartbeat-worker';
  readonly metrics: WorkerMetrics;
  /** Seconds for which each key has been running. */
  readonly executing: readonly (readonly [key: Name, seconds: Size])[];
  /** The worker's clock in milliseconds. */
  readonly workerNowMs: Finite;
  readonly resources?: Resources;
}

/** The worker is gone, or shall go. */
export interface RemoveWorker extends FromWorker {
  readonly op: 'remove-worker';
  /** An expected departure does not make the tasks that ran there suspicious. */
  readonly expected: boolean;
  /** Ask the worker to close. */
  readonly close: boolean;
  /**
   * With `close`: the worker's supervisor, if there is one, shall start a new process in its place.
   * Default false.
   */
  readonly restart?: boolean;
}

/** All that happens through workers. */
export type WorkerStimulus =
  | TaskFinished
  | TaskErred
  | Reschedule
  | LongRunning
  | RunPaused
  | RunResumes
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
  | RemoveWorker;

/** A message that a worker may send on its stream, before the host stamps it with the sender. */
export type WorkerReport = Unstamped<
  Exclude<WorkerStimulus, RegisterWorker | RemoveWorker>,
  'worker'
>;
