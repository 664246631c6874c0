/** Tasks that wait for their limit start when it has room. */
import { byPriority, type TaskState } from '../../state/task.ts';
import type { TaskLimit } from '../../state/limits/task-limit.ts';
import type { TaskLimits } from '../../state/limits/task-limits.ts';
import type { KernelScope } from '../scope.ts';
import { settle } from '../transitions/transition-loop.ts';

/** The cost of an assignment, which chooses a worker and makes a message, in other transitions. */
const STEPS_PER_ASSIGNMENT = 4;

/**
 * Fills the limits that have room, the best task first, each with everything that follows from it. Runs after every
 * stimulus that leaves such a limit. Without a running worker the tasks stay where they are. In slices it leaves the
 * rest to later stimuli. O(limits with room that tasks wait for + tasks that start).
 */
export function startLimited(scope: KernelScope): void {
  const { limits, running } = scope.cluster;
  if (scope.holdsQueue) return;
  const end = scope.transitionCounter + scope.options.sliceTransitions / STEPS_PER_ASSIGNMENT;
  while (limits.open.size > 0 && running.size > 0) {
    for (const limit of byBestTask(limits)) {
      if (!fill(scope, limit, end)) return;
    }
  }
}

/** Returns whether there was time for all of it. */
function fill(scope: KernelScope, limit: TaskLimit, end: number): boolean {
  const { limits, running } = scope.cluster;
  const queue = limits.queueOf(limit);
  while (limit.hasRoom && running.size > 0) {
    const task = queue.peek();
    if (task === undefined) return true;
    if (scope.transitionCounter >= end) {
      scope.isRefillLeft = true;
      return false;
    }
    scope.recommend(task, task.isNeeded ? 'processing' : 'released');
    settle(scope);
  }
  return true;
}

/** The best task of a limit decides its turn, so that no order of a set does. */
function byBestTask(limits: TaskLimits): TaskLimit[] {
  const best = (limit: TaskLimit): TaskState => limits.queueOf(limit).peek() as TaskState;
  return [...limits.open].sort((a, b) => byPriority(best(a), best(b)));
}
