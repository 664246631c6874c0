/** The candidates of a policy that bounds its reach: a handful, however large the cluster is. */
import type { Reach } from '../../api/policies.ts';
import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { empty } from '../../util/empty.ts';
import type { InputTable } from './input-table.ts';
import type { KernelScope } from '../scope.ts';

/** Inputs with more copies than this do not make their holders candidates. */
export const COMMON_COPIES = 32;

/**
 * The best holders and the least busy others, in no order that matters, in an array that is reused.
 * O(holders * reach + reach²), and O(valid workers * reach) when the task is restricted.
 *
 * @param valid - running workers that satisfy the restrictions, not empty; undefined: all of them do
 */
export function reachedWorkers(
  { cluster, inputs, reached }: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
  reach: Reach,
): readonly WorkerState[] {
  empty(reached);
  if (valid !== undefined && valid.size <= reach.holders + reach.others) {
    for (const worker of valid) reached.push(worker);
    return reached;
  }
  const isBetter = (a: WorkerState, b: WorkerState): boolean => holdsMore(inputs, a, b);
  for (const holder of inputs.holders) {
    if (valid?.has(holder) === false) continue;
    keepBest(reached, holder, reach.holders, isBetter);
  }
  addOthers(reached, cluster, task, valid, reach.others);
  // There are neither holders nor free candidates: any worker is better than none.
  if (reached.length === 0) addOthers(reached, cluster, task, valid, 1);
  return reached;
}

function addOthers(
  reached: WorkerState[],
  cluster: ClusterState,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
  count: number,
): void {
  const others: WorkerState[] = [];
  if (valid === undefined) {
    cluster.openSlots.smallestInto(others, count);
    // The others are full; those whose turn it is stand for all of them.
    for (let turn = 0; others.length < count && turn < count; turn++) {
      const worker = cluster.running.at((cluster.assignedCount + turn) % cluster.running.size);
      if (worker !== undefined && !others.includes(worker)) others.push(worker);
    }
  } else {
    const isLess = (a: WorkerState, b: WorkerState): boolean => isFreer(task, a, b);
    for (const worker of valid) keepBest(others, worker, count, isLess);
  }
  for (const worker of others) if (!reached.includes(worker)) reached.push(worker);
}

/** Puts a worker into an ascending list of at most `size`. */
function keepBest(
  best: WorkerState[],
  worker: WorkerState,
  size: number,
  comesBefore: (a: WorkerState, b: WorkerState) => boolean,
): void {
  let at = best.length;
  while (at > 0 && comesBefore(worker, best[at - 1] as WorkerState)) at--;
  if (at >= size) return;
  best.splice(at, 0, worker);
  if (best.length > size) best.pop();
}

function holdsMore(inputs: InputTable, a: WorkerState, b: WorkerState): boolean {
  const bytes = inputs.missingBytes(a) - inputs.missingBytes(b);
  return bytes === 0 ? isLessBusy(a, b) : bytes < 0;
}

function isFreer(task: TaskState, a: WorkerState, b: WorkerState): boolean {
  const isFree = hasFreeResources(task, a);
  return isFree === hasFreeResources(task, b) ? isLessBusy(a, b) : isFree;
}

function isLessBusy(a: WorkerState, b: WorkerState): boolean {
  const load = a.processing.size / a.threadCount - b.processing.size / b.threadCount;
  return load === 0 ? a.rank < b.rank : load < 0;
}

/** Whether the resources that a task asks for are free on a worker; a task without any finds them everywhere. */
export function hasFreeResources(task: TaskState, worker: WorkerState): boolean {
  for (const [resource, amount] of task.restrictions?.resources ?? []) {
    const used = worker.usedResources.get(resource) ?? 0;
    if (used + amount > (worker.resources.get(resource) ?? 0)) return false;
  }
  return true;
}
