import type { TransitionDetails } from '../../api/hooks.ts';
import type { TaskState } from '../../state/task.ts';
import { assignToWorker } from './assignment.ts';
import { placeQueued } from '../placement/placement.ts';
import { propagateErred, propagateReleased } from './task-effects.ts';
import type { KernelScope } from '../scope.ts';

export function queuedToReleased(scope: KernelScope, task: TaskState): void {
  scope.cluster.queued.delete(task);
  propagateReleased(scope, task);
}

/** A worker has an open slot. The task stays queued when the policy finds none after all. */
export function queuedToProcessing(scope: KernelScope, task: TaskState): void {
  const worker = placeQueued(scope, task);
  if (worker === undefined) return;
  scope.cluster.queued.delete(task);
  assignToWorker(scope, task, worker);
}

/** No worker came in time. */
export function queuedToErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  scope.cluster.queued.delete(task);
  propagateErred(scope, task, details);
}
