import { setTaskState } from '../../state/relations.ts';
import type { TaskState } from '../../state/task.ts';
import { assignToWorker } from './assignment.ts';
import { park } from '../placement/parked.ts';
import { placeTask } from '../placement/placement.ts';
import { enqueue } from '../placement/queues.ts';
import { becomeInactive } from './task-effects.ts';
import type { KernelScope } from '../scope.ts';
import { checkReady } from '../validation/validate.ts';

/** The task is not needed now; if it is after all, it starts again. */
export function waitingToReleased(scope: KernelScope, task: TaskState): void {
  setTaskState(task, 'released');
  task.missingDependencyCount = 0;
  becomeInactive(scope, task);
  if (task.hasLostDependencies) scope.recommend(task, 'forgotten');
  else if (task.blame === undefined && task.isNeeded) scope.recommend(task, 'waiting');
  // Its failure needs to know its waiters.
  else if (task.blame === undefined) task.waiterCount = 0;
}

/** All inputs are there: a worker is chosen. */
export function waitingToProcessing(scope: KernelScope, task: TaskState): void {
  checkReady(scope, task);
  if (task.limit?.holdsBack === true) {
    scope.recommend(task, 'queued');
    return;
  }
  const placement = placeTask(scope, task);
  if (typeof placement === 'string') scope.recommend(task, placement);
  else assignToWorker(scope, task, placement);
}

/** No acceptable worker is running, or the policy rejects all of them now. */
export function waitingToNoWorker(scope: KernelScope, task: TaskState): void {
  checkReady(scope, task);
  park(scope, task);
}

/** A root-ish task is held back until a worker has an open slot, one with a limit until there is room. */
export function waitingToQueued(scope: KernelScope, task: TaskState): void {
  checkReady(scope, task);
  enqueue(scope, task);
}

/**
 * A result arrives for a task that was considered lost. No-op: the worker that computed it has been
 * asked to free it, so it must be computed again.
 */
export function waitingToMemory(): void {
  return;
}
