/** The states of a task as the scheduler sees it. */
export type TaskStateName =
  'released' | 'waiting' | 'no-worker' | 'queued' | 'processing' | 'memory' | 'erred' | 'forgotten';

/** All states, in the order in which a task usually meets them. */
export const TASK_STATE_NAMES = [
  'released',
  'waiting',
  'no-worker',
  'queued',
  'processing',
  'memory',
  'erred',
  'forgotten',
] as const satisfies readonly TaskStateName[];

/**
 * One number for each state. A class with a `switch` rather than a record with computed keys: this is
 * counted several times per transition, and a computed key costs ten times as much.
 */
export class StateCounts {
  released = 0;
  waiting = 0;
  'no-worker' = 0;
  queued = 0;
  processing = 0;
  memory = 0;
  erred = 0;
  forgotten = 0;

  /** All of them, in the order of {@link TASK_STATE_NAMES}. */
  get list(): readonly number[] {
    return TASK_STATE_NAMES.map((state) => this[state]);
  }
  set list(counts: readonly number[]) {
    for (const [index, state] of TASK_STATE_NAMES.entries()) this[state] = counts[index] ?? 0;
  }

  change(state: TaskStateName, by: number): void {
    switch (state) {
      case 'released':
        this.released += by;
        return;
      case 'waiting':
        this.waiting += by;
        return;
      case 'no-worker':
        this['no-worker'] += by;
        return;
      case 'queued':
        this.queued += by;
        return;
      case 'processing':
        this.processing += by;
        return;
      case 'memory':
        this.memory += by;
        return;
      case 'erred':
        this.erred += by;
        return;
      case 'forgotten':
        this.forgotten += by;
        return;
    }
  }
}

/** A value for each state, or undefined. A `switch`, for the same reason as in {@link StateCounts}. */
export class ByState<T> {
  private readonly released: T | undefined;
  private readonly waiting: T | undefined;
  private readonly noWorker: T | undefined;
  private readonly queued: T | undefined;
  private readonly processing: T | undefined;
  private readonly memory: T | undefined;
  private readonly erred: T | undefined;
  private readonly forgotten: T | undefined;

  constructor(values: Readonly<Partial<Record<TaskStateName, T>>>) {
    this.released = values.released;
    this.waiting = values.waiting;
    this.noWorker = values['no-worker'];
    this.queued = values.queued;
    this.processing = values.processing;
    this.memory = values.memory;
    this.erred = values.erred;
    this.forgotten = values.forgotten;
  }

  of(state: TaskStateName): T | undefined {
    switch (state) {
      case 'released':
        return this.released;
      case 'waiting':
        return this.waiting;
      case 'no-worker':
        return this.noWorker;
      case 'queued':
        return this.queued;
      case 'processing':
        return this.processing;
      case 'memory':
        return this.memory;
      case 'erred':
        return this.erred;
      case 'forgotten':
        return this.forgotten;
    }
  }
}

/** In play: the task is on its way to a result and keeps the results of its dependencies alive. */
export function isActive(state: TaskStateName): boolean {
  return (
    state === 'waiting' || state === 'processing' || state === 'queued' || state === 'no-worker'
  );
}

/** True when the task has a result or a failure. */
export function isDone(state: TaskStateName): boolean {
  return state === 'memory' || state === 'erred';
}

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
