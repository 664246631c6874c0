/**
 * A worker is back whose connection was lost, and it kept its results. Dask has no such thing: since
 * 2022.5 its workers close. The rule for what is kept is that of `add-keys`, with the
 * run id as proof that the key still stands for the same computation.
 */
import type { HeldResults } from '../../messages/protocol.ts';
import { addReplica, setNbytes } from '../../state/relations.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { addToMemory, becomeInactive } from '../transitions/task-effects.ts';
import type { KernelScope } from '../scope.ts';
import { settle, transition } from '../transitions/transition-loop.ts';

/**
 * Records the results that are still wanted, and has the others freed: unknown ones, those that
 * were assigned anew since, and those that are not needed. O(held + their dependents).
 */
export function takeBack(scope: KernelScope, worker: WorkerState, held: HeldResults): void {
  const unwanted: string[] = [];
  const wanted: [task: TaskState, index: number][] = [];
  for (let index = 0; index < held.keys.length; index++) {
    const key = held.keys[index] as string;
    const task = scope.cluster.tasks.get(key);
    const isSame = task !== undefined && task.runId >= 0 && task.runId === held.runIds[index];
    const isWhole = held.nbytes[index] !== undefined && held.types[index] !== undefined;
    if (isSame && isWhole && isUsable(task)) wanted.push([task, index]);
    else unwanted.push(key);
  }
  const { stimulusId } = scope;
  // Before anything is sent to be computed there: it may be under one of these keys.
  if (unwanted.length > 0) {
    scope.outbox.toWorker(worker, { op: 'free-keys', keys: unwanted, stimulusId });
  }
  for (const [task, index] of wanted) {
    if (task.state === 'memory') addReplica(scope.cluster, task, worker);
    else adopt(scope, task, worker, held, index);
  }
  settle(scope);
}

/** There, or about to be computed again. What is being computed elsewhere has another run id. */
function isUsable({ state, isActor }: TaskState): boolean {
  if (isActor) return false;
  return state === 'memory' || state === 'waiting' || state === 'queued' || state === 'no-worker';
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
  const nbytes = held.nbytes[index];
  if (nbytes !== undefined) setNbytes(scope.cluster, task, nbytes);
  addToMemory(scope, task, worker, held.types[index]);
}
