import { assert } from '../../util/assert.ts';
import { enterReleased } from './release.ts';
import type { WorkerScope } from '../worker-scope.ts';
import type { WorkerTask } from '../worker-task.ts';

/** A copy is wanted: from one of its holders, or else it is missing. */
export function releasedToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.holders.size === 0) {
    scope.recommend(task, 'missing');
    return;
  }
  task.state = 'fetch';
  scope.tables.addFetchEntries(task);
}

export function releasedToMissing(scope: WorkerScope, task: WorkerTask): void {
  assert(task.holders.size === 0, `${task.toString()} is missing but has holders`);
  task.state = 'missing';
  scope.tables.missing.add(task);
}

/** Stays missing while no holder is known. */
export function missingToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.holders.size === 0) return;
  scope.tables.missing.delete(task);
  releasedToFetch(scope, task);
}

export function missingToReleased(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.missing.delete(task);
  enterReleased(scope, task);
}

/** The choice of the peer, and the transfer itself, are made in `ensure-communicating.ts`. */
export function fetchToFlight({ tables }: WorkerScope, task: WorkerTask): void {
  assert(task.comingFrom !== undefined, `${task.toString()} takes off without a transfer`);
  tables.removeFetchEntries(task);
  task.state = 'flight';
}

export function fetchToMissing(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.removeFetchEntries(task);
  releasedToMissing(scope, task);
}

export function fetchToReleased(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.removeFetchEntries(task);
  enterReleased(scope, task);
}

/**
 * No-op while the transfer continues. When it has ended without the key, the task is fetched again.
 */
export function flightToFetch(scope: WorkerScope, task: WorkerTask): void {
  if (task.comingFrom === undefined) releasedToFetch(scope, task);
}

/** A transfer cannot be stopped; when it has ended its bytes are of no use. */
export function flightToReleased(scope: WorkerScope, task: WorkerTask): void {
  if (task.comingFrom === undefined) {
    enterReleased(scope, task);
    return;
  }
  task.state = 'cancelled';
  task.previous = 'flight';
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
}
