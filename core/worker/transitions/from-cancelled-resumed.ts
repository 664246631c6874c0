import { enterReleased } from './release.ts';
import type { WorkerScope } from '../worker-scope.ts';
import { isBusy } from '../worker-tables.ts';
import type { WorkerTask } from '../worker-task.ts';

/**
 * A cancelled run never gives a result: it was asked to abort, and the key may by now mean another
 * computation. A cancelled transfer differs: it continues when a copy is wanted again.
 */

/** Waits for the run or transfer to end. */
export function cancelledToReleased(scope: WorkerScope, task: WorkerTask): void {
  if (!isBusy(scope.tables, task)) enterReleased(scope, task);
}

/** Of a resumed task, too. */
export function cancelledToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.previous === 'flight' && task.comingFrom !== undefined) {
    task.state = 'flight';
    task.previous = undefined;
    task.next = undefined;
  } else resume(scope, task, 'fetch');
}

/** Of a resumed task, too. */
export function cancelledToWaiting(scope: WorkerScope, task: WorkerTask): void {
  resume(scope, task, 'waiting');
}

/** Cancelled once more; or the run or transfer has ended, and what is wanted can begin. */
export function resumedToReleased(scope: WorkerScope, task: WorkerTask): void {
  const { next } = task;
  if (!isBusy(scope.tables, task) && next !== undefined) {
    begin(scope, task, next);
    return;
  }
  task.state = 'cancelled';
  task.next = undefined;
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
}

function resume(scope: WorkerScope, task: WorkerTask, next: 'fetch' | 'waiting'): void {
  if (!isBusy(scope.tables, task)) {
    begin(scope, task, next); // It has ended in this very event.
    return;
  }
  task.state = 'resumed';
  task.next = next;
}

function begin(scope: WorkerScope, task: WorkerTask, next: 'fetch' | 'waiting'): void {
  task.state = 'released';
  task.previous = undefined;
  task.next = undefined;
  scope.recommend(task, next);
}
