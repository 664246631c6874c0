import { setTaskState } from '../state/relations.ts';
import type { TaskQueue } from '../state/task-queue.ts';
import type { TaskState } from '../state/task.ts';
import { isLoose, validWorkers } from './restrictions.ts';
import type { KernelScope } from './scope.ts';

// The queues of tasks in `queued`: one for open slots, and one for each limit.

/** The queue of a task: that of its limit if it has one, else the one for open slots. */
export function queueOf({ cluster }: Pick<KernelScope, 'cluster'>, task: TaskState): TaskQueue {
  return task.limit === undefined ? cluster.queued : cluster.limits.queueOf(task.limit);
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

// Tasks in `no-worker`: which of them wait for another worker, and which for another answer of a policy.

/**
 * Records whether a policy refused the task: there is a running worker that satisfies its restrictions.
 * A task that no worker suits waits for another worker instead. Called when it enters or stays in
 * `no-worker`.
 */
export function noteRefusal(scope: KernelScope, task: TaskState): void {
  if (isSuited(scope, task)) scope.refused.add(task);
  else scope.refused.delete(task);
}

/** The task waits for a suitable worker, or for another answer of a policy. */
export function park(scope: KernelScope, task: TaskState): void {
  setTaskState(task, 'no-worker');
  scope.cluster.unrunnable.set(task, scope.nowMs);
  noteRefusal(scope, task);
}

/** Takes a task out of the list of those that wait for a suitable worker. */
export function leaveUnrunnable({ cluster, refused }: KernelScope, task: TaskState): void {
  cluster.unrunnable.delete(task);
  refused.delete(task);
}

/** True when any running worker satisfies the restrictions. */
export function isSuited({ cluster }: KernelScope, task: TaskState): boolean {
  if (cluster.running.size === 0) return false;
  const valid = validWorkers(cluster, task);
  return valid === undefined || valid.size > 0 || isLoose(cluster, task);
}
