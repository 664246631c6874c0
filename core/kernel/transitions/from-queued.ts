import type { TransitionDetails } from '../../api/hooks.ts';
import type { TaskState } from '../../state/task.ts';
import { assignToWorker } from './assignment.ts';
import { park } from '../placement/parked.ts';
import { placeQueued, placeTask } from '../placement/placement.ts';
import { leaveQueue } from '../placement/queues.ts';
import { propagateErred, propagateReleased } from './task-effects.ts';
import type { KernelScope } from '../scope.ts';

export function queuedToReleased(scope: KernelScope, task: TaskState): void {
  leaveQueue(scope, task);
  propagateReleased(scope, task);
}

/**
 * A worker has an open slot, or the limit of the task has room. A task without a limit stays queued when the policy finds
 * no slot after all; one with a limit must not stand in the way of others that have it.
 */
export function queuedToProcessing(scope: KernelScope, task: TaskState): void {
  if (task.limit !== undefined) {
    const placement = placeTask(scope, task);
    leaveQueue(scope, task);
    if (typeof placement === 'string') park(scope, task);
    else assignToWorker(scope, task, placement);
    return;
  }
  const worker = placeQueued(scope, task);
  if (worker === undefined) return;
  leaveQueue(scope, task);
  assignToWorker(scope, task, worker);
}

/** No worker came in time. */
export function queuedToErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  leaveQueue(scope, task);
  propagateErred(scope, task, details);
}
