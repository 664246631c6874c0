import type { TransitionDetails } from '../api/hooks.ts';
import type { TaskState } from '../state/task.ts';
import { addToProcessing } from './dispatch.ts';
import { placeUnqueued } from './placement.ts';
import { propagateErred, propagateReleased } from './propagate.ts';
import type { KernelScope } from './scope.ts';

export function noWorkerToReleased(scope: KernelScope, task: TaskState): void {
  scope.cluster.unrunnable.delete(task);
  propagateReleased(scope, task);
}

/**
 * A suitable worker came. The task stays when the policy does not want it after all. It does not have
 * to find an open slot, even if its group has become root-ish: nobody offers it one later.
 */
export function noWorkerToProcessing(scope: KernelScope, task: TaskState): void {
  const worker = placeUnqueued(scope, task);
  if (worker === undefined) return;
  scope.cluster.unrunnable.delete(task);
  addToProcessing(scope, task, worker);
}

/** No suitable worker came in time. */
export function noWorkerToErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  scope.cluster.unrunnable.delete(task);
  propagateErred(scope, task, details);
}
