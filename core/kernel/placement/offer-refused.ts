/**
 * A policy that refused a task is asked again when a worker has less to do, and when a heartbeat brings
 * new measurements.
 */
import { byPriority, type TaskState } from '../../state/task.ts';
import { isSuited } from './parked.ts';
import { isRootish } from './placement.ts';
import type { KernelScope } from '../scope.ts';
import { settle } from '../transitions/transition-loop.ts';

/** Refusals in a row after which the policy is not asked again until the next stimulus. */
const REFUSALS_MAX = 8;

/**
 * Offers refused tasks to the policy again: the oldest first when a worker has less to do, and a
 * few in turn after a heartbeat, because a policy may use memory or other measurements. O(refused
 * tasks) only when nothing is running, so that no task waits for ever.
 */
export function offerRefused(scope: KernelScope): void {
  const { refused } = scope;
  if (scope.holdsQueue) return;
  if (scope.hasFreedWorker) offer(scope, refused);
  else if (scope.hasNewMetrics) offer(scope, refused.nextInTurn(REFUSALS_MAX));
}

/**
 * Offers everything that waits for a worker to policies that have not been asked: what was refused, the
 * best first, and then what is queued, as after every stimulus. O(tasks that wait).
 */
export function offerAll(scope: KernelScope): void {
  const { unrunnable, queued } = scope.cluster;
  const waiting = [...unrunnable.keys()].filter((task) => isSuited(scope, task));
  // The last recommendation is followed first.
  for (const task of waiting.sort((a, b) => byPriority(b, a))) scope.recommend(task, 'processing');
  settle(scope);
  // A task that the policy does not take for root-ish needs no open slot.
  for (const task of queued.sorted().reverse()) {
    if (!isRootish(scope, task)) scope.recommend(task, 'released');
  }
  settle(scope);
}

function offer(scope: KernelScope, tasks: Iterable<TaskState>): void {
  const { cluster, refused } = scope;
  let refusals = 0;
  for (const task of tasks) {
    if (task.state !== 'no-worker') continue;
    if (!isSuited(scope, task)) {
      refused.delete(task);
      continue;
    }
    scope.recommend(task, 'processing');
    settle(scope);
    // While something runs there will be another chance for the others.
    if (cluster.unrunnable.has(task) && ++refusals >= REFUSALS_MAX && cluster.computingCount > 0) {
      return;
    }
  }
}
