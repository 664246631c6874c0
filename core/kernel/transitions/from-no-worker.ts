import type { TransitionDetails } from '../../api/hooks.ts';
import type { TaskState } from '../../state/task.ts';
import { assignToWorker } from './assignment.ts';
import { placeParked } from '../placement/placement.ts';
import { propagateErred, propagateReleased } from './task-effects.ts';
import { leaveUnrunnable, noteRefusal } from '../placement/parked.ts';
import type { KernelScope } from '../scope.ts';

export function noWorkerToReleased(scope: KernelScope, task: TaskState): void {
  leaveUnrunnable(scope, task);
  propagateReleased(scope, task);
}

/**
 * A suitable worker came, or one has less to do. The task stays when the policy refuses it again. It
 * needs no open slot, even if its group has become root-ish, because slots are offered to queued tasks.
 */
export function noWorkerToProcessing(scope: KernelScope, task: TaskState): void {
  const worker = placeParked(scope, task);
  if (worker === undefined) {
    noteRefusal(scope, task);
    return;
  }
  leaveUnrunnable(scope, task);
  assignToWorker(scope, task, worker);
}

/** No suitable worker came in time. */
export function noWorkerToErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  leaveUnrunnable(scope, task);
  propagateErred(scope, task, details);
}
