/** How tasks ended in the scheduler, with what their worker reported. */
import { asList } from '../../codec/values.ts';
import type { DaskContext, DaskWorker, ExtensionHooks, Fields } from '../../context.ts';

/** Fields of a report that Dask does not hand to its plugins, which record what clients ask for. */
const ENVELOPE: ReadonlySet<string> = new Set(['op', 'key', 'run_id']);

/** The end of a task: a result or a final failure. */
export interface TaskOutcome {
  readonly key: string;
  readonly state: 'memory' | 'erred';
  /** What its worker reported of it, with `worker`. undefined: it did not run, or no worker of Dask ran it. */
  readonly report: Fields | undefined;
}

type OutcomeObserver = (outcome: TaskOutcome) => void;

/**
 * Calls observers with the end of each task. A report alone is no end: a failed task may be tried again, and a
 * worker may report a task that the scheduler has taken from it. Without observers nothing is kept.
 */
export class TaskOutcomes {
  private readonly observers = new Set<OutcomeObserver>();
  /** Reports of tasks that are still `processing`, by key. */
  private readonly reports = new Map<string, Fields>();

  constructor(private readonly context: DaskContext) {}

  add(observer: OutcomeObserver): void {
    if (this.observers.size === 0) this.context.taskObservers.add(this.onReport);
    this.observers.add(observer);
  }

  delete(observer: OutcomeObserver): void {
    this.observers.delete(observer);
    if (this.observers.size > 0) return;
    this.context.taskObservers.delete(this.onReport);
    this.reports.clear();
  }

  readonly hooks: ExtensionHooks = {
    taskTransition: ({ key }, start, finish) => {
      if (this.observers.size === 0) return;
      const report = start === 'processing' ? this.reports.get(key) : undefined;
      if (report !== undefined || finish === 'forgotten') this.reports.delete(key);
      if (finish !== 'memory' && finish !== 'erred') return;
      for (const observe of this.observers) observe({ key, state: finish, report });
    },
  };

  private readonly onReport = (message: Fields, key: string, { address }: DaskWorker): void => {
    const fields = Object.entries(message).filter(([name]) => !ENVELOPE.has(name));
    this.reports.set(key, { ...Object.fromEntries(fields), worker: address });
  };
}

/** Whether it says when the task ran. */
export function hasTimes(report: Fields | undefined): report is Fields {
  return (asList(report?.['startstops']) ?? []).length > 0;
}
