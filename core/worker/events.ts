import type { Caused } from '../messages/cause.ts';
import type { WorkerReport } from '../messages/stimulus.ts';
import type {
  AcquireReplicas,
  ComputeTask,
  ExtendTimeLimits,
  FreeKeys,
  PeerRemoved,
  RefreshWhoHas,
  RemoveReplicas,
  ResumeRun,
  SetTaskPriorities,
  StealRequest,
} from '../messages/to-worker.ts';
import type { ActionTiming } from '../state/groups.ts';
import type { TaskFailure } from '../state/task.ts';

// These are the events of a worker, and what it wants done then. The id of an event is repeated in the reports that follow.

/** A run ended well. Its result is in the store already. */
export interface ExecuteSuccess extends Caused {
  readonly op: 'execute-success';
  readonly key: string;
  readonly nbytes: number;
  readonly type: string;
  /** In the scheduler's clock. */
  readonly timings: readonly ActionTiming[];
  /**
   * The result, serialised. Included in the report when the scheduler wants that, otherwise
   * dropped.
   */
  readonly value?: Uint8Array;
}

/** A run failed, or its result could not be stored. */
export interface ExecuteFailure extends Caused {
  readonly op: 'execute-failure';
  readonly key: string;
  readonly failure: TaskFailure;
  /** In the scheduler's clock. */
  readonly timings?: readonly ActionTiming[];
  /** The id of the run, when its time limit has ended it and its code goes on: `execute-over` follows. */
  readonly overdueRun?: number;
}

/** The code of an overdue run has ended. */
export interface ExecuteOver extends Caused {
  readonly op: 'execute-over';
  readonly runId: number;
}

/** A run gave its task back, or could not begin because an input was lost. */
export interface ExecuteReschedule extends Caused {
  readonly op: 'execute-reschedule';
  readonly key: string;
}

/** A short run that was queued at a thread has not begun. It needs a thread for itself. */
export interface ExecuteReturned extends Caused {
  readonly op: 'execute-returned';
  readonly key: string;
}

/** A run continues without its thread. */
export interface ExecuteSecede extends Caused {
  readonly op: 'execute-secede';
  readonly key: string;
  /** Seconds that it took until now. */
  readonly computeDurationS: number;
}

/** A run wants a thread again. The instruction `rejoined` answers it. */
export interface ExecuteRejoin extends Caused {
  readonly op: 'execute-rejoin';
  readonly key: string;
}

/** A run does nothing before the next call of its function. */
export interface ExecutePause extends Caused {
  readonly op: 'execute-pause';
  readonly key: string;
}

/** The pause of a run is over. The instruction `resumed` answers it. */
export interface ExecuteResume extends Caused {
  readonly op: 'execute-resume';
  readonly key: string;
}

/** A transfer ended; these of its keys arrived and are in the store. The peer lacks the others. */
export interface GatherSuccess extends Caused {
  readonly op: 'gather-success';
  readonly worker: string;
  readonly keys: readonly string[];
  readonly nbytes: readonly number[];
  /** Of the runs that computed them; -1 where the peer does not say it. */
  readonly runIds?: readonly number[];
  /** In the scheduler's clock. */
  readonly timing?: ActionTiming;
}

/** The peer has too much to send at present. */
export interface GatherBusy extends Caused {
  readonly op: 'gather-busy';
  readonly worker: string;
}

/** The peer could not be reached, or its connection broke: it counts as gone. */
export interface GatherNetworkFailure extends Caused {
  readonly op: 'gather-network-failure';
  readonly worker: string;
  /** The reason, for people. */
  readonly reason?: string;
}

/** The results that arrived cannot be kept: the tasks that need them fail. */
export interface GatherFailure extends Caused {
  readonly op: 'gather-failure';
  readonly worker: string;
  readonly failure: TaskFailure;
}

/** Time to ask again where missing results are. */
export interface FindMissing extends Caused {
  readonly op: 'find-missing';
}

/** A busy peer may be asked again. */
export interface RetryBusyWorker extends Caused {
  readonly op: 'retry-busy-worker';
  readonly worker: string;
}

/** No further runs or transfers begin. */
export interface Pause extends Caused {
  readonly op: 'pause';
}

interface Unpause extends Caused {
  readonly op: 'unpause';
}

/** One run, and one transfer, at a time: as much as it takes to get on. Until `pause` or `unpause`. */
interface Crawl extends Caused {
  readonly op: 'crawl';
}

/**
 * The connection to the scheduler has ended: the results that it requested are no longer wanted.
 */
interface SchedulerLost extends Caused {
  readonly op: 'scheduler-lost';
  /** It may come back with all that it knows: runs continue, and copies stay. Default false. */
  readonly keepsRuns?: boolean;
}

/** The store has lost these results. */
export interface DataLost extends Caused {
  readonly op: 'data-lost';
  readonly keys: readonly string[];
}

/** A measurement of the memory of the worker's process. The host makes it when a memory quota has a hard limit. */
export interface MemoryMeasured extends Caused {
  readonly op: 'memory-measured';
  readonly processBytes: number;
}

/** A client put results here; they are in the store already. */
export interface StoreData extends Caused {
  readonly op: 'update-data';
  readonly keys: readonly string[];
  readonly nbytes: readonly number[];
  /** The answer of the scheduler to `reserve-data`. Default 0: nothing was reserved. */
  readonly reservation?: number;
}

export type WorkerEvent =
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
  | ExecuteSuccess
  | ExecuteFailure
  | ExecuteOver
  | ExecuteReschedule
  | ExecuteReturned
  | ExecuteSecede
  | ExecuteRejoin
  | ExecutePause
  | ExecuteResume
  | GatherSuccess
  | GatherBusy
  | GatherNetworkFailure
  | GatherFailure
  | FindMissing
  | RetryBusyWorker
  | Pause
  | Unpause
  | Crawl
  | SchedulerLost
  | DataLost
  | MemoryMeasured
  | StoreData;

/** Start a run. One of the `execute-*` events answers it. */
export interface Execute {
  readonly kind: 'execute';
  readonly key: string;
  readonly runId: number;
  readonly runSpec: unknown;
  /** All in the store. */
  readonly dependencies: readonly string[];
  /** It may be queued at a thread, behind other short runs. */
  readonly isShort: boolean;
  /** Occupies no thread, but a share of an event loop. */
  readonly isConcurrent?: boolean;
  readonly annotations?: Readonly<Record<string, unknown>>;
  /** The run makes an actor. */
  readonly actor?: boolean;
  /** The task was assigned before, to this worker or another one. */
  readonly isRepeated?: boolean;
}

/** Fetch copies. One of the `gather-*` events answers it. */
export interface Gather {
  readonly kind: 'gather';
  readonly worker: string;
  readonly keys: readonly string[];
  /** Expected bytes. */
  readonly nbytes: number;
}

/** The result of this run is no longer wanted. The end of the run is still reported. */
export interface AbortExecution {
  readonly kind: 'abort-execution';
  readonly key: string;
  /** Milliseconds that it has to stop. Default: of the executor. */
  readonly killTimeoutMs?: number;
}

/** A run gets a more patient time limit. */
export interface LimitTime {
  readonly kind: 'limit-time';
  readonly key: string;
  /** Milliseconds from its beginning. Infinity: no limit. */
  readonly timeLimitMs: number;
}

/** The run has a thread again. */
interface Rejoined {
  readonly kind: 'rejoined';
  readonly key: string;
}

/** The run may go on: it counts for its limit again. */
interface Resumed {
  readonly kind: 'resumed';
  readonly key: string;
}

/** Answer with `retry-busy-worker` in a moment. */
interface RetryBusyLater {
  readonly kind: 'retry-busy-later';
  readonly worker: string;
}

/** Delete from the store. */
interface DropData {
  readonly kind: 'drop-data';
  readonly key: string;
}

export interface Send {
  readonly kind: 'send';
  readonly message: WorkerReport;
}

/** An instruction to the host of a worker. Instructions are carried out in their order. */
export type Instruction =
  | Execute
  | Gather
  | AbortExecution
  | LimitTime
  | Rejoined
  | Resumed
  | RetryBusyLater
  | DropData
  | Send;
