import { assert } from '../../util/assert.ts';
import { enterReleased, releaseUnneeded, stopWaiting, unlinkDependencies } from './release.ts';
import type { WorkerScope } from '../worker-scope.ts';
import type { WorkerTask } from '../worker-task.ts';

/** To be computed here: fetches what is neither here nor computed here. */
export function releasedToWaiting(scope: WorkerScope, task: WorkerTask): void {
  task.state = 'waiting';
  if (task.dependencies.size === 0) {
    scope.recommend(task, 'ready');
    return;
  }
  for (const dependency of task.dependencies) {
    if (dependency.state === 'memory') continue;
    task.waitingForData.add(dependency);
    dependency.waiters.add(task);
    if (!dependency.isComing && dependency.state !== 'fetch') scope.recommend(dependency, 'fetch');
  }
  if (task.waitingForData.size === 0) scope.recommend(task, 'ready');
}

/** A client has put the result here and reports it to the scheduler itself. */
export function releasedToMemory(scope: WorkerScope, task: WorkerTask): void {
  enterMemory(scope, task);
}

/** The scheduler waits for a result that a client has put here. */
export function toMemoryUnasked(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.ready.delete(task);
  scope.tables.constrained.delete(task);
  stopWaiting(task);
  releaseUnneeded(scope, task);
  enterMemory(scope, task);
  reportFinished(scope, task);
}

/** A copy has arrived. */
export function flightToMemory(scope: WorkerScope, task: WorkerTask): void {
  enterMemory(scope, task);
  scope.addCopy(task.key);
}

/** The only way into `memory`: the bytes are in the store. */
export function enterMemory(scope: WorkerScope, task: WorkerTask): void {
  assert(task.arrivedNbytes >= 0, `${task.toString()} enters memory but nothing arrived`);
  const { tables } = scope;
  tables.clearHolders(task);
  task.state = 'memory';
  task.isReplicaWanted = false;
  task.nbytes = task.arrivedNbytes;
  task.arrivedNbytes = -1;
  tables.nbytes += task.nbytes;
  unlinkDependencies(scope, task);
  if (task.waiters.size === 0) return;
  for (const waiter of task.waiters) {
    waiter.waitingForData.delete(task);
    if (waiter.state === 'waiting' && waiter.waitingForData.size === 0) {
      scope.recommend(waiter, 'ready');
    }
  }
  task.waiters.clear();
}

export function reportFinished(scope: WorkerScope, task: WorkerTask): void {
  const { value, key, runId, nbytes, timings } = task;
  const { stimulusId } = scope;
  const type = task.type ?? 'unknown';
  if (value === undefined) {
    scope.report({ op: 'task-finished', key, runId, nbytes, type, timings, stimulusId });
    return;
  }
  task.value = undefined;
  scope.report({ op: 'task-finished', key, runId, nbytes, type, timings, value, stimulusId });
}

/**
 * Drops a result. Tasks here that were about to use it have to wait for it again: the scheduler
 * frees them too, or says where it is.
 */
export function memoryToReleased(scope: WorkerScope, task: WorkerTask): void {
  const { tables } = scope;
  tables.nbytes -= task.nbytes;
  task.copiedRunId = -1;
  scope.emit({ kind: 'drop-data', key: task.key });
  scope.reportReleased(task.key);
  enterReleased(scope, task);
  if (task.dependents.size === 0) return;
  for (const dependent of task.dependents) {
    if (!dependent.isToBeComputed) continue;
    // Not by recommendation: that would override one that frees the dependent in the same event.
    tables.ready.delete(dependent);
    tables.constrained.delete(dependent);
    dependent.state = 'waiting';
    dependent.waitingForData.add(task);
    task.waiters.add(dependent);
    scope.recommend(task, 'fetch');
  }
}

/** Forgets the task unless another one has come to depend on it in the meantime. */
export function releasedToForgotten(scope: WorkerScope, task: WorkerTask): void {
  if (task.dependents.size > 0) return;
  unlinkDependencies(scope, task);
  scope.tables.clearHolders(task);
  task.state = 'forgotten';
  scope.tables.tasks.delete(task.key);
}
