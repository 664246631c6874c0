import { AsyncLocalStorage } from 'node:async_hooks';

import { YardmasterError } from '../../core/api/index.ts';

/** What a running task can ask and do. */
export interface TaskContext {
  readonly key: string;
  /** Aborted when nobody wants the result any more; a long task should look at it now and then. */
  readonly signal: AbortSignal;
  /** Gives the task back: the scheduler places it anew, perhaps on another worker. Not a failure. */
  reschedule(): never;
}

const RESCHEDULE = Symbol.for('yardmaster.reschedule');
const STORAGE = Symbol.for('yardmaster.taskContext');

/** Shared by all copies of this package: the executor's and that of the task's module. */
function storage(): AsyncLocalStorage<TaskContext> {
  const holder = globalThis as { [STORAGE]?: AsyncLocalStorage<TaskContext> | undefined };
  return (holder[STORAGE] ??= new AsyncLocalStorage());
}

/**
 * The task that called this function, also across `await`.
 * @throws YardmasterError `ERR_TASK` outside of a task
 */
export function currentTask(): TaskContext {
  const context = storage().getStore();
  if (context === undefined) {
    throw new YardmasterError('ERR_TASK', 'currentTask() was called outside of a running task');
  }
  return context;
}

/** Calls a function as the body of a task. */
export function callInTask<T>(key: string, signal: AbortSignal, body: () => T): T {
  return storage().run({ key, signal, reschedule }, body);
}

/** Whether this was thrown by `reschedule()`. */
export function isReschedule(thrown: unknown): boolean {
  return typeof thrown === 'object' && thrown !== null && RESCHEDULE in thrown;
}

class RescheduleRequest extends Error {
  override readonly name = 'RescheduleRequest';
  readonly [RESCHEDULE] = true;
}

function reschedule(): never {
  throw new RescheduleRequest('the task asks to be placed anew');
}
