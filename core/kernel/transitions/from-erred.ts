import { setTaskState } from '../../state/relations.ts';
import type { TaskState } from '../../state/task.ts';
import { sendFreeKeys } from './task-effects.ts';
import { recover } from './recovery.ts';
import type { KernelScope } from '../scope.ts';

const NOWHERE: ReadonlySet<string> = new Set();

/**
 * The failure is forgotten, here and on the workers; tasks that failed because of it may continue.
 */
export function erredToReleased(scope: KernelScope, task: TaskState): void {
  const { erredOn } = task;
  task.exceptionBlame = undefined;
  task.failure = undefined;
  task.erredOn = NOWHERE;
  setTaskState(task, 'released');
  for (const dependent of task.dependentsWithForgotten) {
    if (dependent.state === 'erred') recover(scope, dependent);
  }
  for (const address of erredOn) {
    const worker = scope.cluster.workers.get(address);
    if (worker !== undefined) sendFreeKeys(scope, task, worker);
  }
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'task-retried', key: task.key });
  }
}
