import type { Retry } from '../../messages/stimulus.ts';
import type { TaskState } from '../../state/task.ts';
import { IdSet } from '../../util/collections/id-set.ts';
import type { KernelScope } from '../scope.ts';
import { Pace } from '../pace.ts';

/**
 * Failed tasks without a failed dependency start again, and what failed with them follows. Pauses like a
 * cancellation; what it has not come to yet is still failed, and what fails meanwhile is not retried. O(keys + failed ancestors).
 */
export function retryKeys(scope: KernelScope, stimulus: Retry): Generator<void, void> {
  return retryFailedBefore(scope, stimulus, scope.visits.begin());
}

function* retryFailedBefore(
  scope: KernelScope,
  { keys }: Retry,
  epoch: number,
): Generator<void, void> {
  const pace = new Pace(scope.options.sliceTransitions);
  const seen = new IdSet();
  const stack: TaskState[] = [];
  for (const key of keys) {
    const task = scope.cluster.tasks.get(key);
    if (task !== undefined && seen.add(task.id)) stack.push(task);
    if (pace.isPauseDue()) yield;
  }
  const roots: TaskState[] = [];
  for (let task = stack.pop(); task !== undefined; task = stack.pop()) {
    const erred = task.dependencies.filter((dependency) => hasFailedBefore(dependency, epoch));
    if (erred.length === 0) roots.push(task);
    for (const dependency of erred) if (seen.add(dependency.id)) stack.push(dependency);
    if (pace.isPauseDue()) yield;
  }
  // The last recommendation is followed first, in slices as well.
  for (let left = roots.length; left > 0;) {
    const share = Math.max(1, scope.shareOf(left));
    for (const root of roots.slice(left - share, left)) {
      if (hasFailedBefore(root, epoch) && !root.dependencies.some(isErred))
        scope.recommend(root, 'waiting');
    }
    left -= share;
    if (left > 0) yield;
  }
}

function hasFailedBefore(task: TaskState, epoch: number): boolean {
  return isErred(task) && task.failedAt < epoch;
}

function isErred({ state }: TaskState): boolean {
  return state === 'erred';
}
