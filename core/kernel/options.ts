/** Options of the kernel. Times in milliseconds unless the name says otherwise. */
export interface KernelOptions {
  /** Check every invariant after each stimulus; slow, for tests. Default false. */
  readonly validate: boolean;
  /** Unexpected deaths of workers under one task that are forgiven. Default 3. */
  readonly allowedFailures: number;
  /** Retries of a task whose submission does not say. Default 0. */
  readonly defaultRetries: number;
  /** A task is not placed again where a worker died under it, as long as there are others. Default false. */
  readonly avoidUsedWorkers: boolean;
  /** Bytes per second between two workers until heartbeats measure it. Default 100 MB/s. */
  readonly bandwidth: number;
  /** Seconds. Default 0.5. */
  readonly unknownTaskDurationS: number;
  /** Seconds of short tasks that share a slot of a worker. Default 0: each task takes a slot. */
  readonly slotWorkS: number;
  /** Largest result, in bytes, that a worker sends along for a client that waits. Default 0: none. */
  readonly sendAlongBytes: number;
  /** Seconds by prefix. Default none. */
  readonly defaultTaskDurationsS: ReadonlyMap<string, number>;
  /** Bytes that a result of unknown size is taken for. Default 1 KiB. */
  readonly defaultDataSize: number;
  /** Records of the transition log. Default 1000. */
  readonly transitionLogLength: number;
  /**
   * Transitions after which a stimulus defers the remaining work (tasks that are not needed, open
   * slots) to `continue-settling`. Default Infinity: a stimulus does all its work.
   */
  readonly sliceTransitions: number;
  /** A fuse against endless loops, for tests: transitions in the whole life. Default none. */
  readonly transitionCounterMax: number;
  /** A worker that is silent for longer is removed. Infinity: never. Default 5 minutes. */
  readonly workerTtlMs: number;
  /** Tasks without any suitable worker fail after this. Infinity: they wait. Default Infinity. */
  readonly noWorkersTimeoutMs: number;
  /** Milliseconds after which unmanaged memory of a worker counts as old. Default 30 seconds. */
  readonly recentToOldMs: number;
  /** Failures kept for people. Default 100. */
  readonly erredTasksMax: number;
  /** Inputs larger than a worker's memory make a task fail at once. Default true. */
  readonly refuseOversizedInputs: boolean;
  /** What breaks ties between workers. Default `registration`: who came first. */
  readonly workerOrder: 'registration' | 'address';
}

export const DEFAULT_KERNEL_OPTIONS: KernelOptions = {
  validate: false,
  allowedFailures: 3,
  defaultRetries: 0,
  avoidUsedWorkers: false,
  bandwidth: 100_000_000,
  unknownTaskDurationS: 0.5,
  slotWorkS: 0,
  sendAlongBytes: 0,
  defaultTaskDurationsS: new Map(),
  defaultDataSize: 1024,
  transitionLogLength: 1000,
  sliceTransitions: Infinity,
  transitionCounterMax: Infinity,
  workerTtlMs: 300_000,
  noWorkersTimeoutMs: Infinity,
  recentToOldMs: 30_000,
  erredTasksMax: 100,
  refuseOversizedInputs: true,
  workerOrder: 'registration',
};
