/**
 * Everything that can happen to the scheduler.
 *
 * A message from a worker or a client becomes a stimulus when its host stamps it with the sender;
 * timers and plugins bring the rest. Each carries the `stimulusId` under which its consequences can
 * be found in the story.
 */
import type { KnownPrefix } from '../state/groups.ts';
import type { TaskFailure } from '../state/task.ts';
import type { Copies, Count, Finite, Integer, Name, Places, Size } from '../util/values.ts';
import type { Caused, FromClient, FromWorker } from './cause.ts';
import type { ClientStimulus } from './from-client.ts';
import type { WorkerStimulus } from './from-worker.ts';

export type * from './from-client.ts';
export type * from './from-worker.ts';

// ---- from the Active Memory Manager ----------------------------------------------------------

/** Copies to make and to drop. The kernel checks every one of them again. */
export interface MoveReplicas extends Caused {
  readonly op: 'move-replicas';
  readonly acquire: readonly { readonly worker: Name; readonly keys: readonly Name[] }[];
  readonly remove: readonly { readonly worker: Name; readonly keys: readonly Name[] }[];
}

/**
 * A number of copies of these results is requested. The Active Memory Manager makes and keeps them.
 */
export interface WantReplicas extends Caused {
  readonly op: 'want-replicas';
  readonly keys: readonly Name[];
  /** Infinity: on every running worker, also on those that come. */
  readonly replicas: Copies;
}

/** The scheduler takes a worker out of service, or back into it, and notifies the worker. */
export interface SetWorkerStatus extends FromWorker {
  readonly op: 'set-worker-status';
  readonly status: 'running' | 'paused' | 'closing-gracefully';
}

// ---- from work stealing -----------------------------------------------------------------------

/** A task that should go from the worker that is processing it to another one. */
export interface StealProposal {
  readonly key: Name;
  /** Address of the worker that is processing it. */
  readonly victim: Name;
  /** Address of the worker that is to have it. */
  readonly thief: Name;
  /** Seconds of work that the victim is rid of, transfers included. */
  readonly victimS: Finite;
  /** Seconds of work that the thief gets, transfers included. */
  readonly thiefS: Finite;
}

/** Tasks to ask back from workers. The kernel checks every one of them again. */
export interface StealTasks extends Caused {
  readonly op: 'steal-tasks';
  readonly proposals: readonly StealProposal[];
  /**
   * Addresses of workers that were examined as victims: whether they are idle or saturated is
   * decided anew, without the tasks that are asked back. Victims of the proposals need not be
   * named.
   */
  readonly victims?: readonly string[];
}

// ---- from plugins ----------------------------------------------------------------------------

/** The new restrictions of one task. */
export interface RestrictionChange {
  readonly key: Name;
  /**
   * Addresses or names of the workers that may run it, in the place of those before; none: all may.
   * Undefined: as it was.
   */
  readonly workers?: Places;
  /** True when the queuing policy may hold the task back. Undefined: as it was. */
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

/** A plugin has not admitted a graph, of which no task was made: its keys have no result, unless the client wants them besides. */
export interface RefuseGraph extends FromClient {
  readonly op: 'refuse-graph';
  readonly keys: readonly Name[];
  /** Name of the plugin. */
  readonly plugin: string;
  /** For people. */
  readonly reason: string;
}

/**
 * Releases the results of these tasks, and cancels those that are being computed; what is still
 * needed is computed again. No-op for failed tasks, for data that cannot be computed again and for
 * unknown keys.
 */
export interface ReleaseTasks extends Caused {
  readonly op: 'release-tasks';
  readonly keys: readonly Name[];
}

// ---- from the host, when a turn is over --------------------------------------------------------

/** Continues the work that long stimuli have left (`KernelOptions.sliceTransitions`). */
export interface Continue extends Caused {
  readonly op: 'continue';
}

// ---- from connections -------------------------------------------------------------------------

/**
 * The connections of these workers broke at the same time, as when a network fails or a machine: they leave
 * together, and none gets a task of another.
 */
export interface WorkersLost extends Caused {
  readonly op: 'workers-lost';
  /** Addresses. */
  readonly workers: readonly string[];
}

// ---- from timers -----------------------------------------------------------------------------

/**
 * The scheduler's process stood still until now: paused, swapped out, or blocked. Peers are not
 * blamed for their silence meanwhile.
 */
export interface SchedulerStalled extends Caused {
  readonly op: 'scheduler-stalled';
  readonly stalledMs: Size;
}

/** Other policies are in charge: what the ones before have refused or held back is offered again. */
export interface PoliciesReplaced extends Caused {
  readonly op: 'policies-replaced';
}

/** Removes workers that have been silent for too long. */
export interface CheckWorkerTtl extends Caused {
  readonly op: 'check-worker-ttl';
}

/** Fails tasks for which there has been no worker for too long. */
export interface CheckNoWorkersTimeout extends Caused {
  readonly op: 'check-no-workers-timeout';
}

/**
 * The knowledge of earlier runs, the longest unused prefix first. Tasks are expected to take as long and to give results as
 * large, until they are measured.
 */
export interface RecallPrefixes extends Caused {
  readonly op: 'recall-prefixes';
  readonly prefixes: readonly KnownPrefix[];
}

// ---- from a journal --------------------------------------------------------------------------

/**
 * The state is that of a scheduler whose process has ended. Which tasks its workers run and which results they hold is
 * not known until they are back; data of clients, actors and failures stay.
 */
export interface ForgetPlacements extends Caused {
  readonly op: 'forget-placements';
}

/**
 * The state was read from a journal. Known workers are awaited, and nothing begins before
 * `end-recovery`, because they may have results and runs of these tasks.
 */
export interface BeginRecovery extends Caused {
  readonly op: 'begin-recovery';
  /** No earlier run has this id or a later one. */
  readonly nextRunId: Count;
}

/** All workers that were awaited are back, or count as lost from now on. */
export interface EndRecovery extends Caused {
  readonly op: 'end-recovery';
}

/** Ends of tasks that a journal has recorded. */
export interface RestoreTasks extends Caused {
  readonly op: 'restore-tasks';
  readonly failures?: readonly {
    readonly key: Name;
    readonly failure: TaskFailure;
    /** Address of the worker that reported it. */
    readonly worker?: string;
  }[];
  /** Actors, which live on one worker and cannot be made again unnoticed. */
  readonly actors?: readonly {
    readonly key: Name;
    readonly worker: Name;
    readonly runId: Integer;
    readonly nbytes: Size;
    readonly type: string;
  }[];
  /** Data of clients that is gone from all workers. */
  readonly lostData?: readonly Name[];
  /** With `lostData`: runs that compute these from now on have at least this id. */
  readonly firstRunId?: Integer;
}

/** The stimuli of a scheduler that starts from a journal. */
export type RecoveryStimulus = ForgetPlacements | BeginRecovery | EndRecovery | RestoreTasks;

// ---- for the whole cluster --------------------------------------------------------------------

/** Forgets all tasks of all clients. Workers are restarted by their host. */
export interface Restart extends Caused {
  readonly op: 'restart';
}

/** Everything that can happen to the scheduler. */
export type Stimulus =
  | WorkerStimulus
  | ClientStimulus
  | Continue
  | Restart
  | MoveReplicas
  | WantReplicas
  | SetWorkerStatus
  | StealTasks
  | SetRestrictions
  | RefuseGraph
  | ReleaseTasks
  | PoliciesReplaced
  | WorkersLost
  | SchedulerStalled
  | CheckWorkerTtl
  | CheckNoWorkersTimeout
  | RecallPrefixes
  | RecoveryStimulus;
