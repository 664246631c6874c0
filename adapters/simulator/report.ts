/** What a simulation shows. */
export interface SimulationReport {
  /** Names of the workloads, joined by `+`. */
  readonly workload: string;
  readonly seed: number;
  /** Seconds from the first submission until the clients know about all results. */
  readonly makespanS: number;
  readonly tasks: number;
  /** Runs that began; more than there are tasks when results were lost. */
  readonly runs: number;
  /** Keys that clients wanted and that failed. */
  readonly failed: number;
  /** Why the first of them did. */
  readonly firstFailure?: string;
  /** Bytes of results that went from one worker to another. */
  readonly movedBytes: number;
  readonly transfers: number;
  /** The most that one worker had in memory. */
  readonly peakWorkerBytes: number;
  /** Bytes that workers wrote to their disks. */
  readonly spilledBytes: number;
  /** The part of the time of all threads in which nothing ran. */
  readonly idleShare: number;
  /** How often the scheduler sent a task to a worker. */
  readonly decisions: number;
  /** How often a policy threw or gave an unusable answer, so that the built-in one decided in its place. */
  readonly fallbacks: number;
  /**
   * Set when a policy did so each time that it was asked something: then the figures are not its own. Says which one, and
   * what it did.
   */
  readonly useless?: string;
  /** Stimuli that the scheduler handled, and transitions that its tasks made. */
  readonly stimuli: number;
  readonly transitions: number;
  /** A hash of all that happened, and when: equal options give equal hashes. */
  readonly traceHash: string;
}
