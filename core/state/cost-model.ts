/**
 * The numbers behind every estimate of "how soon could this task start there".
 * One object per cluster, shared by its workers and prefixes; heartbeats move the bandwidth.
 */
export interface CostModel {
  /** Bytes per second between two workers, an average over the cluster. */
  bandwidth: number;
  /** Seconds that a task of an unknown prefix is expected to take. */
  readonly unknownTaskDurationS: number;
  /** Seconds of short tasks that share a slot of a worker; 0: each has its own. */
  readonly slotWorkS: number;
  /** Bytes that a result of unknown size is expected to have. */
  readonly defaultDataSize: number;
  /** Seconds by prefix, for operations that are known before the first of them ran. */
  readonly defaultTaskDurationsS: ReadonlyMap<string, number>;
}
