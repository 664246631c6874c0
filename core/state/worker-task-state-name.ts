/** The states of a task as a worker sees it. */
export type WorkerTaskStateName =
  /** Known because another task depends on it, or on its way out. */
  | 'released'
  /** To be computed here; inputs are missing. */
  | 'waiting'
  /** A copy is to be fetched from a known peer. */
  | 'fetch'
  /** A copy is being fetched. */
  | 'flight'
  /** A copy is needed, and no holder is known. */
  | 'missing'
  /** All inputs are here; waits for a thread. */
  | 'ready'
  /** All inputs are here; waits for resources and a thread. */
  | 'constrained'
  /** Runs, in a thread of the worker unless it has seceded. */
  | 'executing'
  /** The result, or a copy of it, is here. */
  | 'memory'
  /** Failed here; a tombstone until the scheduler frees it. */
  | 'error'
  /** No longer wanted, but its run or transfer cannot be stopped. */
  | 'cancelled'
  /** Wanted again, as `next`, after the run or transfer that was cancelled has ended. */
  | 'resumed'
  | 'forgotten';
