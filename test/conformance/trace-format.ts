/** The shape of recorded traces, as the folder's README describes it. */

export interface TraceConfig {
  readonly workerSaturation?: number | 'inf';
  readonly allowedFailures?: number;
  readonly unknownTaskDuration?: number;
  readonly bandwidth?: number;
  readonly defaultTaskDurations?: Readonly<Record<string, string | number>>;
  readonly ammMeasure?: string;
  readonly rebalanceMeasure?: string;
  readonly senderMin?: number;
  readonly recipientMax?: number;
  readonly gap?: number;
}

export interface TraceTask {
  readonly key: string;
  readonly deps: readonly string[];
  readonly priority: number;
  readonly prefix?: string;
  readonly group?: string;
  readonly userPriority?: number;
  readonly workers?: readonly string[];
  readonly hosts?: readonly string[];
  readonly allowOtherWorkers?: boolean;
  readonly resources?: Readonly<Record<string, number>>;
  readonly retries?: number;
  readonly actor?: boolean;
}

/** A policy of the memory manager, as traces name it. */
export type AmmPolicySpec =
  | { readonly type: 'reduceReplicas' }
  | { readonly type: 'retireWorker'; readonly address: string }
  | { readonly type: 'ensureBroadcast'; readonly key: string }
  | {
      readonly type: 'list';
      readonly suggestions: readonly {
        readonly op: 'replicate' | 'drop';
        readonly key: string;
        readonly times?: number;
        readonly candidates?: readonly string[];
      }[];
    };

/** One round of the memory manager with these policies. */
export interface AmmRun {
  readonly op: 'ammRun';
  readonly policies: readonly AmmPolicySpec[];
}

/** A rebalance of these workers and keys; without, of all. */
export interface Rebalance {
  readonly op: 'rebalance';
  readonly workers?: readonly string[];
  readonly keys?: readonly string[];
}

export type TraceStimulus =
  | AmmRun
  | Rebalance
  | {
      readonly op: 'addWorker';
      readonly address: string;
      readonly nthreads: number;
      readonly name?: string;
      readonly resources?: Readonly<Record<string, number>>;
      readonly memoryLimit?: number;
      readonly processMemory?: number;
      readonly status?: 'running' | 'paused';
    }
  | { readonly op: 'removeWorker'; readonly address: string; readonly safe?: boolean }
  | { readonly op: 'workerStatus'; readonly address: string; readonly status: string }
  | {
      readonly op: 'heartbeat';
      readonly address: string;
      readonly executing?: Readonly<Record<string, number>>;
      readonly processMemory?: number;
      readonly unmanagedOld?: number;
    }
  | { readonly op: 'addClient' | 'removeClient'; readonly client: string }
  | {
      readonly op: 'updateGraph';
      readonly client: string;
      readonly keys: readonly string[];
      readonly tasks: readonly TraceTask[];
    }
  | {
      readonly op: 'taskFinished';
      readonly key: string;
      readonly worker: string;
      /** Null: the worker has not said it. */
      readonly nbytes: number | null;
      readonly duration: number;
    }
  | { readonly op: 'taskErred'; readonly key: string; readonly worker: string }
  | {
      readonly op: 'longRunning';
      readonly key: string;
      readonly worker: string;
      readonly computeDuration?: number | null;
    }
  | { readonly op: 'reschedule'; readonly key: string; readonly worker?: string }
  | { readonly op: 'addKeys'; readonly worker: string; readonly keys: readonly string[] }
  | { readonly op: 'releaseWorkerData'; readonly key: string; readonly worker: string }
  | {
      readonly op: 'updateData';
      readonly client: string;
      readonly whoHas: Readonly<Record<string, readonly string[]>>;
      readonly nbytes: Readonly<Record<string, number>>;
    }
  | {
      readonly op: 'clientReleasesKeys' | 'clientDesiresKeys' | 'retry';
      readonly client: string;
      readonly keys: readonly string[];
    }
  | {
      readonly op: 'cancel';
      readonly client: string;
      readonly keys: readonly string[];
      readonly force?: boolean;
    }
  | { readonly op: 'recheckIdle' }
  /** One round of work stealing. */
  | { readonly op: 'balance' }
  | {
      readonly op: 'stealResponse';
      readonly key: string;
      readonly state: string;
      readonly worker: string;
      /** With the id of an older request. */
      readonly stale?: boolean;
    };

export type TraceMessage = Readonly<Record<string, unknown>> & { readonly op: string };
export type TraceMessages = Readonly<Record<string, readonly TraceMessage[]>>;

/** What changed in a step; null = gone. */
export interface TraceChange {
  readonly tasks?: Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;
  readonly workers?: Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;
  readonly queued: readonly string[];
  readonly unrunnable: readonly string[];
  readonly durations: Readonly<Record<string, number>>;
  readonly totalOccupancy: number;
}

export interface TraceExpectation {
  readonly toWorkers: TraceMessages;
  readonly toClients: TraceMessages;
  readonly after: TraceChange;
}

/** Further fields of traces with a memory manager. */
export interface AmmExpectation extends TraceExpectation {
  readonly suggestions?: readonly {
    readonly op: string;
    readonly key: string;
    readonly candidates: readonly string[] | null;
    readonly accepted: boolean;
    readonly worker: string | null;
    /** All workers that would be right. */
    readonly anyOf?: readonly string[];
  }[];
  readonly workersMemoryBefore?: Readonly<Record<string, number>>;
  readonly retire?: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
  readonly moves?: readonly unknown[];
  readonly nbytesAfterMoves?: Readonly<Record<string, number>>;
}

export interface Trace {
  readonly id: string;
  readonly config: TraceConfig;
  readonly strictPrefix: number;
  readonly addressTieBreakPrefix: number;
  /** The first step after which the newer Dask is in another state, and what differs. */
  readonly headDivergence?: {
    readonly step: number;
    readonly diff?: Readonly<Record<string, unknown>>;
  };
  readonly truncatedBecause?: string | null;
  readonly stimuli: readonly TraceStimulus[];
  readonly expected: readonly TraceExpectation[];
}
