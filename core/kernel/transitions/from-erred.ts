import { setTaskState } from '../../state/relations.ts';
import type { TaskState } from '../../state/task.ts';
import { sendFreeKeys, visitDependents } from './task-effects.ts';
import { recover } from './recovery.ts';
import type { KernelScope } from '../scope.ts';

const NOWHERE: ReadonlySet<string> = new Set();

/**
 * The failure is forgotten, here and on the workers; tasks that failed because of it may continue.
 */
export function erredToReleased(scope: KernelScope, task: TaskState): void {
  const { erredOn } = task;
  task.blame = undefined;
  task.erredOn = NOWHERE;
  setTaskState(task, 'released');
  visitDependents(scope, task, recoverDependent);
  for (const address of erredOn) {
    const worker = scope.cluster.workers.get(address);
    if (worker !== undefined) sendFreeKeys(scope, task, worker);
  }
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'task-retried', key: task.key });
  }
}

/** What has failed since was not to be retried. */
function recoverDependent(
  scope: KernelScope,
  _: TaskState,
  dependent: TaskState,
  epoch: number,
): void {
  if (dependent.state === 'erred' && dependent.failedAt < epoch) recover(scope, dependent);
}
