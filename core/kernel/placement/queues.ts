/** The queues of tasks in `queued`: one for open slots, and one for each limit. */
import { setTaskState } from '../../state/relations.ts';
import type { TaskQueue } from '../../state/task-queue.ts';
import type { TaskState } from '../../state/task.ts';
import type { KernelScope } from '../scope.ts';

/** Where a task waits when it is queued: with a limit for that, without for an open slot. */
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
