import type { HeldResults } from '../messages/protocol.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import type { WorkerStatus } from '../state/worker.ts';

/** A run that continues on a worker which came back, and whose task is not processing yet. */
export interface AwaitedRun {
  readonly runId: number;
  isSeceded: boolean;
}

/**
 * What is known while a scheduler that was read from a journal waits for its workers. Until its end every
 * worker counts as paused: a task that is started now may have a result on a worker that is still to come.
 */
export class Recovery {
  /** Workers of the journal that are not back yet. */
  readonly awaited = new Set<WorkerState>();
  /** What those that are here say of themselves. */
  readonly statuses = new Map<WorkerState, WorkerStatus>();
  /** Results that no task has asked for yet: clients may say more before the end. */
  readonly unclaimed = new Map<WorkerState, HeldResults[]>();
  /** What workers that are back should hold, and do not. */
  readonly missing = new Map<WorkerState, readonly TaskState[]>();
  /** Runs by worker, by key: their inputs may be on workers that are still to come. */
  readonly runs = new Map<WorkerState, Map<string, AwaitedRun>>();

  /** The status that a worker gets until the end. */
  admit(worker: WorkerState, status: WorkerStatus): WorkerStatus {
    this.awaited.delete(worker);
    this.statuses.set(worker, status);
    return status === 'running' ? 'paused' : status;
  }

  /** The worker is gone. */
  forget(worker: WorkerState): void {
    this.awaited.delete(worker);
    for (const table of [this.statuses, this.unclaimed, this.missing, this.runs]) {
      table.delete(worker);
    }
  }

  /** Takes out a run that has ended or is not wanted. Undefined when there is none of this id. */
  takeRun(worker: WorkerState, key: string, runId: number | undefined): AwaitedRun | undefined {
    const runs = this.runs.get(worker);
    const run = runs?.get(key);
    if (run === undefined || (runId !== undefined && run.runId !== runId)) return undefined;
    runs?.delete(key);
    return run;
  }
}
