import type { WorkerScope } from '../worker-scope.ts';
import { NO_TIMINGS, type WorkerTask } from '../worker-task.ts';

/** Unlinks a task from what it waits for. */
export function stopWaiting(task: WorkerTask): void {
  if (task.waitingForData.size === 0) return;
  for (const dependency of task.waitingForData) dependency.waiters.delete(task);
  task.waitingForData.clear();
}

/**
 * Forgets the outcome of a task, not where copies are nor how to compute it. Tasks here that still
 * wait for it get a copy, if there is one.
 */
export function enterReleased(scope: WorkerScope, task: WorkerTask): void {
  stopWaiting(task);
  task.state = 'released';
  task.previous = undefined;
  task.next = undefined;
  task.type = undefined;
  task.timings = NO_TIMINGS;
  task.failure = undefined;
  releaseUnneeded(scope, task);
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
  else if (task.dependents.size === 0) scope.recommend(task, 'forgotten');
}

/** Cancels the fetching of results that only this task needed. */
export function releaseUnneeded(scope: WorkerScope, task: WorkerTask): void {
  if (task.dependencies.size === 0) return;
  for (const dependency of task.dependencies) {
    if (isFetchedFor(dependency) && dependency.waiters.size === 0) {
      scope.recommend(dependency, 'released');
    }
  }
}

/** Whether it is fetched for the sake of other tasks here. */
function isFetchedFor({ state, next, isReplicaWanted }: WorkerTask): boolean {
  if (isReplicaWanted) return false;
  if (state === 'resumed') return next === 'fetch';
  return state === 'fetch' || state === 'flight' || state === 'missing';
}

/** A task out of play needs its inputs no more. */
export function unlinkDependencies(scope: WorkerScope, task: WorkerTask): void {
  if (task.dependencies.size === 0) return;
  for (const dependency of task.dependencies) {
    dependency.dependents.delete(task);
    if (dependency.state === 'released' && dependency.dependents.size === 0) {
      scope.recommend(dependency, 'forgotten');
    }
  }
  task.dependencies.clear();
}
