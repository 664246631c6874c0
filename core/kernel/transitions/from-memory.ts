import type { TransitionDetails } from '../../api/hooks.ts';
import { setTaskState } from '../../state/relations.ts';
import { NO_TASKS, type TaskState } from '../../state/task.ts';
import { schedulerFailure } from '../errors.ts';
import { mayBeForgotten, reportCancelled } from './from-released.ts';
import { freeReplicas, propagateErred, propagateForgotten, removeKey } from './task-effects.ts';
import type { KernelScope } from '../scope.ts';

/** The result is released, or its last copy is gone. If it is needed, it is computed again. */
export function memoryToReleased(scope: KernelScope, task: TaskState): void {
  if (task.isActor && task.whoWants.size > 0) {
    scope.recommend(task, 'erred');
    return;
  }
  if (task.runSpec === undefined && task.waiterCount > 0) {
    // Data that cannot be computed again is never released under its waiters, only lost.
    scope.recommend(task, 'forgotten');
    return;
  }
  dropActor(task);
  task.fingerprint = undefined;
  freeReplicas(scope, task);
  setTaskState(task, 'released');
  if (task.runSpec === undefined || task.hasLostDependencies) scope.recommend(task, 'forgotten');
  else if (task.isNeeded) scope.recommend(task, 'waiting');
  for (const dependent of task.waiterCount === 0 ? NO_TASKS : task.dependentsWithForgotten) {
    if (dependent.state !== 'waiting' && dependent.isActive) scope.recommend(dependent, 'waiting');
  }
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'lost-data', key: task.key });
  }
}

/** The worker with an actor is gone, and its state with it. Other results are computed again. */
export function memoryToErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  if (!task.isActor) {
    memoryToReleased(scope, task);
    return;
  }
  dropActor(task);
  freeReplicas(scope, task);
  const failure =
    details.failure ??
    schedulerFailure(
      'ERR_ACTOR_LOST',
      `the worker that held the actor ${task.key} is gone, and the state of the actor with it; retry makes it anew`,
      { key: task.key },
    );
  task.blame = { task, failure };
  for (const dependent of task.dependents) {
    // What failed before keeps its blame, which those that failed with it share.
    if (dependent.whoHas.size > 0 || dependent.state === 'erred') continue;
    dependent.blame = task.blame;
    scope.recommend(dependent, 'erred');
  }
  const { worker } = details;
  propagateErred(scope, task, worker === undefined ? {} : { worker });
}

/** The result is not needed, or it is pure data that is gone. */
export function memoryToForgotten(scope: KernelScope, task: TaskState): void {
  if (!mayBeForgotten(task)) return;
  dropActor(task);
  reportCancelled(scope, task);
  propagateForgotten(scope, task);
  removeKey(scope, task);
}

function dropActor(task: TaskState): void {
  if (!task.isActor) return;
  for (const worker of task.whoHas.items) worker.actors.delete(task);
}
