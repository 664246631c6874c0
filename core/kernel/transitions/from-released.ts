import { setTaskState, startWaiting } from '../../state/relations.ts';
import type { TaskState } from '../../state/task.ts';
import { nothingToBlame, reportErred } from './client-reports.ts';
import {
  dropFireAndForget,
  becomeInactive,
  noteFailing,
  propagateForgotten,
  removeKey,
  visitDependents,
} from './task-effects.ts';
import { blameAnother } from './recovery.ts';
import type { KernelScope } from '../scope.ts';

/** Computation begins: the task waits for its dependencies, which are computed if they have to be. */
export function releasedToWaiting(scope: KernelScope, task: TaskState): void {
  if (task.hasLostDependencies) {
    scope.recommend(task, 'forgotten');
    return;
  }
  const erred = erredDependency(task);
  if (erred !== undefined) {
    // Dask 2022.12 moves the task to `waiting` here, where it stays for ever.
    task.blame = erred.blame;
    scope.recommend(task, 'erred');
    return;
  }
  task.blame = undefined;
  setTaskState(task, 'waiting');
  let missing = 0;
  for (const dependency of task.dependencies) {
    if (dependency.whoHas.size > 0) continue;
    missing++;
    if (dependency.state === 'released') scope.recommend(dependency, 'waiting');
  }
  task.missingDependencyCount = missing;
  startWaiting(task);
  if (!task.isNeeded) scope.unproven.push(task);
  if (missing === 0) scope.recommend(task, 'processing');
}

function erredDependency(task: TaskState): TaskState | undefined {
  for (const dependency of task.dependencies) if (dependency.state === 'erred') return dependency;
  return undefined;
}

/** The failure of a dependency reaches a task that is not on its way. */
export function releasedToErred(scope: KernelScope, task: TaskState): void {
  task.blame ??= erredDependency(task)?.blame;
  if (task.blame === undefined) throw nothingToBlame(scope, task);
  setTaskState(task, 'erred');
  noteFailing(scope, task);
  const isWhole = visitDependents(scope, task, failDependent);
  becomeInactive(scope, task);
  if (isWhole) task.waiterCount = 0;
  reportErred(scope, task);
  dropFireAndForget(scope, task);
}

function failDependent(scope: KernelScope, task: TaskState, dependent: TaskState): void {
  // It may have been retried meanwhile.
  if (task.state !== 'erred' || dependent.state === 'forgotten' || dependent.whoHas.size > 0)
    return;
  if (dependent.state === 'erred') blameAnother(dependent);
  else dependent.blame = task.blame;
  scope.recommend(dependent, 'erred');
}

/** The task is not needed, or it can never be computed again. */
export function releasedToForgotten(scope: KernelScope, task: TaskState): void {
  if (!mayBeForgotten(task)) return;
  reportCancelled(scope, task);
  propagateForgotten(scope, task);
  removeKey(scope, task);
}

/** Whether nothing is lost by forgetting it, or nothing can be saved by keeping it. */
export function mayBeForgotten(task: TaskState): boolean {
  if (task.runSpec === undefined || task.hasLostDependencies) return true;
  return task.whoWants.size === 0 && task.waiterCount === 0 && task.dependentCount === 0;
}

/** Clients that still want a task that is forgotten must not wait for it. */
export function reportCancelled(scope: KernelScope, task: TaskState): void {
  const reason = task.hasLostDependencies
    ? 'it depends on data that is lost'
    : 'its data is lost and cannot be computed again';
  for (const intake of scope.intakes) intake.cancel([task], { reason });
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'cancelled-keys', keys: [task.key], reason });
  }
}
