import type { YardmasterError } from '../../api/errors.ts';
import type { TaskState, ClientState } from '../../state/task.ts';
import { invariantError } from '../errors.ts';
import type { KernelScope } from '../scope.ts';

/** Tells everybody who wants the task that its result is there. */
export function reportInMemory(scope: KernelScope, task: TaskState): void {
  for (const client of task.whoWants.items) tellInMemory(scope, task, client);
}

/** Tells everybody who wants the task that it failed, and who is to blame. */
export function reportErred(scope: KernelScope, task: TaskState): void {
  for (const client of task.whoWants.items) tellErred(scope, task, client);
}

/** Tells one client how things stand with a task; silent while it is on its way. */
export function reportState(scope: KernelScope, task: TaskState, client: ClientState): void {
  if (task.state === 'memory') tellInMemory(scope, task, client);
  else if (task.state === 'erred') tellErred(scope, task, client);
}

function tellInMemory(scope: KernelScope, task: TaskState, client: ClientState): void {
  scope.outbox.toClient(client, {
    op: 'key-in-memory',
    key: task.key,
    ...(task.type === undefined ? {} : { type: task.type }),
    nbytes: task.nbytes,
    workers: task.whoHas.items.map((worker) => worker.address),
  });
}

function tellErred(scope: KernelScope, task: TaskState, client: ClientState): void {
  const blame = task.exceptionBlame;
  const failure = blame?.failure;
  if (blame === undefined || failure === undefined) {
    throw nothingToBlame(scope, task);
  }
  scope.outbox.toClient(client, { op: 'task-erred', key: task.key, blame: blame.key, failure });
}

/** Nobody could be told why the task failed: a failure needs a cause, its own or that of another. */
export function nothingToBlame(scope: KernelScope, task: TaskState): YardmasterError {
  return invariantError(
    `${task.key} erred without anything to blame`,
    { key: task.key },
    scope.story.about([task.key]),
  );
}
