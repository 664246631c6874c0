/**
 * A worker is back whose connection was lost, and it kept its results. Dask has no such thing: since
 * 2022.5 its workers close. The rule for what is kept is that of `add-keys`, with the
 * run id as proof that the key still stands for the same computation.
 */
import type { HeldResults, HeldRuns } from '../../messages/protocol.ts';
import type { RegisterWorker } from '../../messages/stimulus.ts';
import { addReplica, addToLongRunning, setNbytes } from '../../state/relations.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { keepRun } from '../transitions/assignment.ts';
import { addToMemory, becomeInactive, takeBackRun } from '../transitions/task-effects.ts';
import type { KernelScope } from '../scope.ts';
import { settle, transition } from '../transitions/transition-loop.ts';

/** What a worker that comes back brings with it. */
export function onReturn(
  scope: KernelScope,
  worker: WorkerState,
  { held, runs }: Pick<RegisterWorker, 'held' | 'runs'>,
): void {
  if (held === undefined) return;
  const { recovery } = scope;
  const unwanted = takeBack(scope, worker, held);
  if (recovery === undefined) freeKeys(scope, worker, unwanted.keys);
  else if (unwanted.keys.length > 0) recovery.unclaimed.set(worker, [unwanted]);
  settle(scope);
  if (runs === undefined) return;
  if (recovery === undefined) adoptRuns(scope, worker, runs);
  else recovery.runs.set(worker, new Map(runsByKey(runs)));
}

/** A worker of the journal is back. What the journal says that it holds, and it does not, will be lost. */
export function onAwaitedReturn(
  scope: KernelScope,
  worker: WorkerState,
  { held, runs }: Pick<RegisterWorker, 'held' | 'runs'>,
): void {
  const keys = new Set(held?.keys);
  const missing = [...worker.hasWhat].filter(({ key }) => !keys.has(key));
  // What it was needed for may be finished on a worker that is still to come.
  if (missing.length > 0) scope.recovery?.missing.set(worker, missing);
  onReturn(scope, worker, {
    held: held ?? { keys: [], runIds: [], nbytes: [], types: [] },
    ...(runs === undefined ? {} : { runs }),
  });
}

/**
 * Records the results that are still wanted. Returns the others: unknown ones, those that were assigned
 * anew since, and those that are not needed. O(held + their dependents).
 */
export function takeBack(scope: KernelScope, worker: WorkerState, held: HeldResults): HeldResults {
  const unwanted = {
    keys: [] as string[],
    runIds: [] as number[],
    nbytes: [] as number[],
    types: [] as string[],
  };
  const wanted: [task: TaskState, index: number][] = [];
  for (let index = 0; index < held.keys.length; index++) {
    const key = held.keys[index] as string;
    const task = scope.cluster.tasks.get(key);
    if (task !== undefined && worker.hasWhat.has(task)) continue; // So the journal says, too.
    const isWhole = held.nbytes[index] !== undefined && held.types[index] !== undefined;
    if (task !== undefined && isWhole && isSame(task, held, index)) wanted.push([task, index]);
    else {
      unwanted.keys.push(key);
      unwanted.runIds.push(held.runIds[index] as number);
      unwanted.nbytes.push(held.nbytes[index] as number);
      unwanted.types.push(held.types[index] as string);
    }
  }
  for (const [task, index] of wanted) {
    if (task.state === 'memory') addReplica(scope.cluster, task, worker);
    else adopt(scope, task, worker, held, index);
  }
  for (const [task] of wanted) dropSuperfluous(scope, task);
  return unwanted;
}

/**
 * The result of a task made its inputs superfluous, and the result of an input of one of these made that one
 * ready again: the first counts.
 */
function dropSuperfluous(scope: KernelScope, task: TaskState): void {
  for (const dependency of task.dependencies) {
    if (dependency.isActive && !dependency.isNeeded) scope.deferRelease(dependency, 'released');
  }
}

/** Before anything is sent to be computed there: it may be under one of these keys. */
export function freeKeys(scope: KernelScope, worker: WorkerState, keys: readonly string[]): void {
  if (keys.length === 0) return;
  scope.outbox.toWorker(worker, { op: 'free-keys', keys, stimulusId: scope.stimulusId });
}

/** Runs whose tasks are still to be computed continue as theirs; the others are taken back. */
export function adoptRuns(scope: KernelScope, worker: WorkerState, runs: HeldRuns): void {
  for (const [key, { runId, isSeceded }] of runsByKey(runs)) {
    adoptRun(scope, worker, key, runId, isSeceded);
  }
  settle(scope);
}

export function adoptRun(
  scope: KernelScope,
  worker: WorkerState,
  key: string,
  runId: number,
  isSeceded: boolean,
): void {
  const { cluster } = scope;
  const task = cluster.tasks.get(key);
  // All inputs are there in these states.
  const isReady = task?.state === 'queued' || task?.state === 'no-worker';
  // Others may have begun in its place.
  const isFull = task?.limit?.hasRoom === false;
  if (task === undefined || !isReady || isFull || !isRunOf(task, runId)) {
    if (task?.processingOn !== worker)
      takeBackRun(scope, { key, runId, limit: task?.limit }, worker);
    return;
  }
  transition(scope, task, 'released');
  scope.recommendations.withdraw(task); // It would be placed.
  task.runId = runId;
  keepRun(scope, task, worker);
  if (isSeceded) addToLongRunning(cluster, task, worker);
}

/**
 * There, or about to be computed again. What is being computed elsewhere has another run id. What a journal has
 * fail with one of its inputs may have been finished before that input was computed again.
 */
function isSame(task: TaskState, held: HeldResults, index: number): boolean {
  const { state } = task;
  if (task.runSpec === undefined) {
    // A copy of data has no run that it could come from.
    const isCopy = held.runIds[index] === -1;
    return isCopy && state === 'memory' && task.nbytes === held.nbytes[index];
  }
  if (task.isActor || !isRunOf(task, held.runIds[index] as number)) return false;
  if (state === 'erred') return task.runId < -1 && task.exceptionBlame !== task;
  return state === 'memory' || state === 'waiting' || state === 'queued' || state === 'no-worker';
}

/** Whether a run of this id was of this task, and not of another one under its key. */
export function isRunOf({ runId: latest }: TaskState, runId: number): boolean {
  if (latest >= 0) return runId === latest;
  return latest < -1 && runId >= firstRunOf(latest);
}

/**
 * What `TaskState.runId` is for a task from a journal that has not been assigned since: less than -1, with
 * the first run id that it may have had.
 */
export function unassignedSince(firstRunId: number): number {
  return -2 - firstRunId;
}

/** The reverse of {@link unassignedSince}. */
export function firstRunOf(runId: number): number {
  return -2 - runId;
}

function adopt(
  scope: KernelScope,
  task: TaskState,
  worker: WorkerState,
  held: HeldResults,
  index: number,
): void {
  transition(scope, task, 'released');
  scope.recommendations.withdraw(task); // It would be computed.
  becomeInactive(scope, task);
  task.blame = undefined;
  task.runId = held.runIds[index] as number;
  const nbytes = held.nbytes[index];
  if (nbytes !== undefined) setNbytes(scope.cluster, task, nbytes);
  addToMemory(scope, task, worker, held.types[index]);
}

function* runsByKey({
  keys,
  runIds,
  seceded,
}: HeldRuns): Generator<[string, { readonly runId: number; isSeceded: boolean }]> {
  for (let index = 0; index < keys.length; index++) {
    const run = { runId: runIds[index] as number, isSeceded: seceded[index] === true };
    yield [keys[index] as string, run];
  }
}
