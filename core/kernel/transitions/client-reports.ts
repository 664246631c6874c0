import type { YardmasterError } from '../../api/errors.ts';
import type { TaskState, ClientState } from '../../state/task.ts';
import { invariantError } from '../errors.ts';
import type { KernelScope } from '../scope.ts';

/** Reports to all clients that want the task that its result is in memory. */
export function reportInMemory(scope: KernelScope, task: TaskState): void {
  for (const client of task.whoWants.items) tellInMemory(scope, task, client);
}

/** Reports to all clients that want the task that it failed, and which task caused that. */
export function reportErred(scope: KernelScope, task: TaskState): void {
  for (const client of task.whoWants.items) tellErred(scope, task, client);
}

/** Reports the state of a task to one client; silent while the task is open. */
export function reportState(scope: KernelScope, task: TaskState, client: ClientState): void {
  if (task.state === 'memory') tellInMemory(scope, task, client);
  else if (task.state === 'erred') tellErred(scope, task, client);
}

function tellInMemory(scope: KernelScope, task: TaskState, client: ClientState): void {
  const { key, nbytes, type } = task;
  const workers = task.whoHas.items.map((worker) => worker.address);
  // Spreads would make it several times as expensive.
  scope.outbox.toClient(
    client,
    type === undefined
      ? { op: 'key-in-memory', key, nbytes, workers }
      : { op: 'key-in-memory', key, type, nbytes, workers },
  );
}

function tellErred(scope: KernelScope, task: TaskState, client: ClientState): void {
  const { blame } = task;
  if (blame === undefined) throw nothingToBlame(scope, task);
  const { key } = blame.task;
  scope.outbox.toClient(client, {
    op: 'task-erred',
    key: task.key,
    blame: key,
    failure: blame.failure,
  });
}

/**
 * The failure could not be explained to clients: it needs a cause, its own or that of another task.
 */
export function nothingToBlame(scope: KernelScope, task: TaskState): YardmasterError {
  return invariantError(
    `${task.key} erred without anything to blame`,
    { key: task.key },
    scope.story.about([task.key]),
  );
}
