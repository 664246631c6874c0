import type { TransitionDetails } from '../../api/hooks.ts';
import type { TaskState } from '../../state/task.ts';
import { assignToWorker } from './assignment.ts';
import { placeParked } from '../placement/placement.ts';
import { propagateErred, propagateReleased } from './task-effects.ts';
import { leaveUnrunnable, noteRefusal } from '../placement/parked.ts';
import { enqueue } from '../placement/queues.ts';
import type { KernelScope } from '../scope.ts';

export function noWorkerToReleased(scope: KernelScope, task: TaskState): void {
  leaveUnrunnable(scope, task);
  propagateReleased(scope, task);
}

/**
 * A suitable worker came, or one has less to do. The task stays when the policy refuses it again, and is queued when
 * its limit has no room. It
 * needs no open slot, even if its group has become root-ish, because slots are offered to queued tasks.
 */
export function noWorkerToProcessing(scope: KernelScope, task: TaskState): void {
  if (task.limit?.holdsBack === true) {
    leaveUnrunnable(scope, task);
    enqueue(scope, task);
    return;
  }
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
