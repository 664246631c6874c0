import type { TaskFailure } from '../../state/task.ts';
import { localFailure } from './failure.ts';
import { enterMemory, reportFinished } from './from-memory-released.ts';
import { enterReleased, releaseUnneeded, stopWaiting, unlinkDependencies } from './release.ts';
import type { LazySet } from '../../util/collections/lazy-set.ts';
import type { Execute } from '../events/events.ts';
import type { WorkerScope } from '../worker-scope.ts';
import type { WorkerTask } from '../worker-task.ts';

/** All inputs are here. */
export function waitingToReady(scope: WorkerScope, task: WorkerTask): void {
  if (scope.tables.quota?.isTooLarge(task) === true) {
    task.failure = tooLarge(scope, task);
    scope.recommend(task, 'error');
    return;
  }
  if (task.resources !== undefined) {
    scope.recommend(task, 'constrained');
    return;
  }
  task.state = 'ready';
  task.readySince = scope.tables.batchCount;
  scope.tables.ready.add(task);
}

/** Fails a task at once that needs more than this worker has, because it could never begin. */
export function waitingToConstrained(scope: WorkerScope, task: WorkerTask): void {
  const lacking = lackingResource(scope, task);
  if (lacking !== undefined) {
    task.failure = lacking;
    scope.recommend(task, 'error');
    return;
  }
  task.state = 'constrained';
  task.readySince = scope.tables.batchCount;
  scope.tables.constrained.add(task);
}

export function waitingToReleased(scope: WorkerScope, task: WorkerTask): void {
  enterReleased(scope, task);
}

/** An input arrived that cannot be kept, or resources lack. */
export function waitingToError(scope: WorkerScope, task: WorkerTask): void {
  stopWaiting(task);
  releaseUnneeded(scope, task);
  executingToError(scope, task);
}

export function readyToReleased(scope: WorkerScope, task: WorkerTask): void {
  scope.tables.ready.delete(task);
  scope.tables.constrained.delete(task);
  enterReleased(scope, task);
}

/** `ensure-computing.ts` has made sure of a thread and of the resources. */
export function readyToExecuting(scope: WorkerScope, task: WorkerTask): void {
  const { tables } = scope;
  tables.ready.delete(task);
  tables.constrained.delete(task);
  const isShort = !task.isConcurrent && tables.isShort(task);
  tables.beginRun(task);
  task.state = 'executing';
  const { key, runId, runSpec, annotations, isActor, isConcurrent, isRepeated } = task;
  const dependencies = keysOf(task.dependencies);
  const run: Execute = { kind: 'execute', key, runId, runSpec, dependencies, isShort };
  const isPlain = annotations === undefined && !isActor && !isConcurrent && !isRepeated;
  scope.emit(
    isPlain
      ? run
      : {
          ...run,
          ...(annotations === undefined ? {} : { annotations }),
          ...(isActor ? { actor: true } : {}),
          ...(isConcurrent ? { isConcurrent: true } : {}),
          ...(isRepeated ? { isRepeated } : {}),
        },
  );
}

export function executingToMemory(scope: WorkerScope, task: WorkerTask): void {
  enterMemory(scope, task);
  reportFinished(scope, task);
}

/** A tombstone stays until the scheduler frees the key. */
export function executingToError(scope: WorkerScope, task: WorkerTask): void {
  const failure = task.failure ?? localFailure('ERR_TASK', `"${task.key}" failed without a reason`);
  task.state = 'error';
  unlinkDependencies(scope, task);
  const { key, runId, timings } = task;
  const measured = timings.length === 0 ? undefined : { timings };
  const { stimulusId } = scope;
  scope.report({ op: 'task-erred', key, runId, failure, ...measured, stimulusId });
  // A copy elsewhere may still serve those that wait for it here.
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
}

/** The task gave itself back. */
export function executingToRescheduled(scope: WorkerScope, task: WorkerTask): void {
  scope.report({ op: 'reschedule', key: task.key, stimulusId: scope.stimulusId });
  enterReleased(scope, task);
}

/** A run cannot be stopped, only asked to. */
export function executingToReleased(scope: WorkerScope, task: WorkerTask): void {
  task.state = 'cancelled';
  task.previous = 'executing';
  unlinkDependencies(scope, task);
  if (task.waiters.size > 0) scope.recommend(task, 'fetch');
  const { killTimeoutMs } = scope;
  const limit = killTimeoutMs === undefined ? {} : { killTimeoutMs };
  scope.emit({ kind: 'abort-execution', key: task.key, ...limit });
}

function tooLarge({ tables }: WorkerScope, task: WorkerTask): TaskFailure {
  const needed = tables.quota?.needOf(task) ?? 0;
  const { address, memoryQuota } = tables.options;
  return localFailure(
    'ERR_OUT_OF_MEMORY',
    `"${task.key}" says that it needs ${needed} bytes; the memory quota of the worker ${address} is ${memoryQuota?.quotaBytes ?? 0}`,
  );
}

function lackingResource(scope: WorkerScope, task: WorkerTask): TaskFailure | undefined {
  const { address, resources } = scope.tables.options;
  for (const [name, needed] of Object.entries(task.resources ?? {})) {
    const offered = resources[name] ?? 0;
    if (needed <= offered) continue;
    return localFailure(
      'ERR_NO_WORKER',
      `"${task.key}" needs ${needed} of the resource "${name}"; the worker ${address} offers ${offered}`,
    );
  }
  return undefined;
}

const NO_KEYS: readonly string[] = [];

function keysOf(tasks: LazySet<WorkerTask>): readonly string[] {
  return tasks.size === 0 ? NO_KEYS : Array.from(tasks, (task) => task.key);
}
