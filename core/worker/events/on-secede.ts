/** Tasks that continue without a thread, and that request a thread again. */
import type { ExecuteRejoin, ExecuteSecede } from './events.ts';
import type { WorkerScope } from '../worker-scope.ts';

/** The run continues, and another one may begin. The run keeps its resources. */
export function onExecuteSecede(scope: WorkerScope, event: ExecuteSecede): void {
  const { tables, stimulusId } = scope;
  const task = tables.tasks.get(event.key);
  if (task === undefined || !tables.executing.has(task) || tables.seceded.has(task)) return;
  if (task.isConcurrent) return; // It has no thread.
  tables.secede(task);
  scope.settleRuns(task);
  if (task.state !== 'executing') return; // Cancelled: the scheduler does not know it any more.
  const { key, runId } = task;
  const { computeDurationS } = event;
  scope.report({ op: 'long-running', key, runId, computeDurationS, stimulusId });
}

/** It gets the next thread that is free, before any task that has not begun. */
export function onExecuteRejoin(scope: WorkerScope, { key }: ExecuteRejoin): void {
  const { tables } = scope;
  const task = tables.tasks.get(key);
  if (task !== undefined && tables.seceded.has(task)) tables.rejoining.add(task);
  else scope.emit({ kind: 'rejoined', key }); // It has its thread.
}

/** Gives free threads to those that have waited for longest. Also while the worker is paused. */
export function rejoinWaiting(scope: WorkerScope): void {
  const { tables } = scope;
  for (const task of tables.rejoining) {
    if (tables.occupiedThreads > tables.options.threadCount - 1) return;
    tables.rejoin(task);
    scope.emit({ kind: 'rejoined', key: task.key });
  }
}
