import { setTaskState } from '../state/relations.ts';
import type { TaskQueue } from '../state/task-queue.ts';
import type { TaskState } from '../state/task.ts';
import { isSuited } from './restrictions.ts';
import type { KernelScope } from './scope.ts';

// The queues of tasks in `queued`: one for open slots, and one for each limit.

/** The queue of a task: that of its limit if it has one, else the one for open slots. */
export function queueOf({ cluster }: Pick<KernelScope, 'cluster'>, task: TaskState): TaskQueue {
  return task.limit === undefined ? cluster.queued : task.limit.queued;
}

export function enqueue({ cluster }: KernelScope, task: TaskState): void {
  setTaskState(task, 'queued');
  if (task.limit === undefined) cluster.queued.add(task);
  else cluster.limits.enqueue(task.limit, task);
}

export function leaveQueue({ cluster }: KernelScope, task: TaskState): void {
  if (task.limit === undefined) cluster.queued.delete(task);
  else cluster.limits.dequeue(task.limit, task);
}

// Tasks in `no-worker`: which of them wait for another worker, and which for another answer of a policy or rule.

/**
 * Records whether a rule or a policy refused the task. A task whose restrictions no worker satisfies waits for another
 * worker instead. Called when it enters or stays in `no-worker`.
 */
export function noteRefusal(scope: KernelScope, task: TaskState): void {
  const { rules, refused, ruled } = scope;
  const suits = isSuited(scope.cluster, task);
  const isHeld = rules.isHeld(task);
  if (isHeld || (!suits && rules.isFiltered(task))) ruled.add(task);
  else ruled.delete(task);
  if (suits && !isHeld) refused.add(task);
  else refused.delete(task);
}

/** The task waits for a suitable worker, or for another answer of a policy or rule. */
export function park(scope: KernelScope, task: TaskState): void {
  setTaskState(task, 'no-worker');
  scope.cluster.unrunnable.set(task, scope.nowMs);
  scope.cluster.limits.park(task, 1);
  noteRefusal(scope, task);
}

/** Takes a task out of the list of those that wait for a suitable worker. */
export function leaveUnrunnable(scope: KernelScope, task: TaskState): void {
  if (scope.cluster.unrunnable.delete(task)) scope.cluster.limits.park(task, -1);
  scope.refused.delete(task);
  scope.ruled.delete(task);
}
