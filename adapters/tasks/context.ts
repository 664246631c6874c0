import { AsyncLocalStorage } from 'node:async_hooks';

import { type TaskSlot, YardmasterError } from '../../core/api/index.ts';

/** What a running task can ask and do. */
export interface TaskContext {
  readonly key: string;
  /** Aborted when nobody wants the result any more; a long task should look at it now and then. */
  readonly signal: AbortSignal;
  /** Gives the task back: the scheduler places it anew, perhaps on another worker. Not a failure. */
  reschedule(): never;
  /**
   * Leaves its thread's place to another task and goes on: for a task that waits for long, above all
   * for other tasks. Nothing when it has left already.
   */
  secede(): void;
  /** Waits for a place, which it gets before tasks that have not begun. At once, if it has one. */
  rejoin(): Promise<void>;
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
export function callInTask<T>({ key, signal, slot = NO_SLOT }: TaskRun, body: () => T): T {
  const secede = (): void => slot.secede();
  const rejoin = (): Promise<void> => slot.rejoin();
  return storage().run({ key, signal, reschedule, secede, rejoin }, body);
}

/** What a task is called with besides its arguments. */
export interface TaskRun {
  readonly key: string;
  readonly signal: AbortSignal;
  readonly slot?: TaskSlot | undefined;
}

/** Where nobody counts what runs at once. */
const NO_SLOT: TaskSlot = { secede: () => undefined, rejoin: () => Promise.resolve() };

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
