import type { MemoryQuotaOptions } from './memory.ts';

/**
 * `priority`: the best by priority, as the scheduler says. `lifo`: of equal user priority, what became
 * ready last, so that what was begun is finished first; priorities decide among what became ready at
 * once.
 */
export type ReadyStrategy = 'priority' | 'lifo';

/** Options of a worker's state machine. */
export interface WorkerKernelOptions {
  /** Address of this worker: it never fetches from itself. */
  readonly address: string;
  /** Runs at once. Minimum 1. */
  readonly threadCount: number;
  /** Amounts that runs may occupy. Default none. */
  readonly resources: Readonly<Record<string, number>>;
  /** The rule that chooses the first of the ready tasks. Default `priority`. */
  readonly ready: ReadyStrategy;
  /**
   * Seconds of expected work that may be queued at a thread. Tasks that take less are handed out
   * ahead of time; until they begin they can come back, but not be stolen. Default 0: none.
   */
  readonly shortRunS: number;
  /** Transfers at once beyond which bytes are throttled. Default 10. */
  readonly incomingTransfersMax: number;
  /** Bytes under way below which the number of transfers is not limited. Default 10 MB. */
  readonly throttleThresholdBytes: number;
  /** Bytes under way beyond which no transfer begins. Default Infinity. */
  readonly incomingBytesMax: number;
  /** Bytes after which no further result is asked for in the same message. Default 50 MB. */
  readonly messageBytesMax: number;
  /** Admits tasks by what they are expected to use. Default undefined: by threads and resources alone. */
  readonly memoryQuota: MemoryQuotaOptions | undefined;
  /**
   * Thousands of workers live in this process, as in a simulation: their tables do without the ballast of
   * `SteadyMap`. Default false.
   */
  readonly isOneOfMany: boolean;
  /** Check every invariant after each event; slow, for tests. Default false. */
  readonly validate: boolean;
  /** Records of the transition log. Default 1000. */
  readonly transitionLogLength: number;
  /** A fuse against endless loops, for tests. Default none. */
  readonly transitionCounterMax: number;
}

/** The required options of a worker's state machine; the others have defaults. */
export type WorkerKernelSettings = Pick<WorkerKernelOptions, 'address' | 'threadCount'> &
  Partial<WorkerKernelOptions>;

const DEFAULTS: Omit<WorkerKernelOptions, 'address' | 'threadCount'> = {
  resources: {},
  ready: 'priority',
  shortRunS: 0,
  incomingTransfersMax: 10,
  throttleThresholdBytes: 10_000_000,
  incomingBytesMax: Infinity,
  messageBytesMax: 50_000_000,
  memoryQuota: undefined,
  isOneOfMany: false,
  validate: false,
  transitionLogLength: 1000,
  transitionCounterMax: Infinity,
};

/**
 * All options. Written out, so that those of all workers of a process have one hidden class: spreads make a new one
 * for each, and with a thousand workers V8 would look up every access.
 */
export function workerKernelOptions(settings: WorkerKernelSettings): WorkerKernelOptions {
  const all = DEFAULTS;
  return {
    address: settings.address,
    threadCount: settings.threadCount,
    resources: settings.resources ?? all.resources,
    ready: settings.ready ?? all.ready,
    shortRunS: settings.shortRunS ?? all.shortRunS,
    incomingTransfersMax: settings.incomingTransfersMax ?? all.incomingTransfersMax,
    throttleThresholdBytes: settings.throttleThresholdBytes ?? all.throttleThresholdBytes,
    incomingBytesMax: settings.incomingBytesMax ?? all.incomingBytesMax,
    messageBytesMax: settings.messageBytesMax ?? all.messageBytesMax,
    memoryQuota: settings.memoryQuota ?? all.memoryQuota,
    isOneOfMany: settings.isOneOfMany ?? all.isOneOfMany,
    validate: settings.validate ?? all.validate,
    transitionLogLength: settings.transitionLogLength ?? all.transitionLogLength,
    transitionCounterMax: settings.transitionCounterMax ?? all.transitionCounterMax,
  };
}
