/** Clients put data on workers. Source: Dask's `update_data`, which lets the last of two values win. */
import type { UpdateData } from '../../messages/stimulus.ts';
import {
  addReplica,
  addWant,
  setNbytes,
  setTaskState,
  setWantedReplicas,
} from '../../state/relations.ts';
import type { TaskState, ClientState, WorkerState } from '../../state/task.ts';
import { reportState } from '../transitions/client-reports.ts';
import { checkIdleSaturated } from '../placement/occupancy.ts';
import { clientOnDemand } from './on-client.ts';
import {
  becomeInactive,
  endRun,
  recommendReadyDependents,
  sendFreeKeys,
} from '../transitions/task-effects.ts';
import type { KernelScope } from '../scope.ts';
import { settle, transition } from '../transitions/transition-loop.ts';

type DataItem = UpdateData['items'][number];

/**
 * The client put data on workers: it is in memory, and cannot be computed again. Other data than what is
 * in memory under that key is refused. O(items + their dependents).
 */
export function onUpdateData(scope: KernelScope, stimulus: UpdateData): void {
  const { cluster } = scope;
  const client = clientOnDemand(scope, stimulus.client);
  const unchanged: TaskState[] = [];
  for (const item of stimulus.items) {
    const { key, workers, replicas } = item;
    const holders = workers
      .map((address) => cluster.workers.get(address))
      .filter((worker): worker is WorkerState => worker !== undefined);
    const known = cluster.tasks.get(key);
    if (known?.state === 'memory' && isOtherData(known, item)) {
      refuse(scope, client, known, holders);
      continue;
    }
    if (holders.length === 0) {
      if (known !== undefined) {
        addWant(client, known);
        unchanged.push(known);
        continue;
      }
      const reason = 'the workers that received the data are gone';
      scope.outbox.toClient(client, { op: 'cancelled-keys', keys: [key], reason });
      continue;
    }
    const task = known ?? cluster.newTask(key);
    putInMemory(scope, task, holders, item);
    if (replicas !== undefined) setWantedReplicas(cluster, task, replicas);
    addWant(client, task);
    for (const other of task.whoWants.items) reportState(scope, task, other);
  }
  // Data under a failed key changes what others failed because of; they have to follow first.
  settle(scope);
  for (const task of unchanged) reportState(scope, task, client);
}

/**
 * Whether the item surely differs from the data in memory. By the fingerprints, if the client sends
 * one: a computed result has none. Otherwise by type and size, if it sends the type: sizes alone
 * may be estimates.
 */
export function isOtherData(task: TaskState, { nbytes, type, fingerprint }: DataItem): boolean {
  if (fingerprint !== undefined) {
    const isComputed = task.runSpec !== undefined && task.fingerprint === undefined;
    if (isComputed) return true;
    if (task.fingerprint !== undefined) return fingerprint !== task.fingerprint;
  }
  if (type === undefined) return false;
  const isOtherSize = nbytes !== undefined && task.nbytes >= 0 && nbytes !== task.nbytes;
  return isOtherSize || type !== (task.type ?? type);
}

/**
 * Drops the copies where they differ from the data in memory. The client does not begin to want the
 * key.
 */
function refuse(
  scope: KernelScope,
  client: ClientState,
  task: TaskState,
  holders: readonly WorkerState[],
): void {
  for (const worker of holders) {
    if (!task.whoHas.has(worker) && task.processingOn !== worker) sendFreeKeys(scope, task, worker);
  }
  const reason =
    task.runSpec === undefined
      ? 'other data is there under this key; choose another key, or wait until it is released'
      : 'the result of a task is there under this key; choose another key';
  scope.outbox.toClient(client, { op: 'data-refused', keys: [task.key], reason });
}

function putInMemory(
  scope: KernelScope,
  task: TaskState,
  holders: readonly WorkerState[],
  { nbytes, type, fingerprint }: DataItem,
): void {
  const { cluster } = scope;
  if (task.state !== 'memory') {
    giveUpComputing(scope, task, holders);
    setTaskState(task, 'memory');
    task.fingerprint = fingerprint;
    // Its dependents are ready as after a computation.
    recommendReadyDependents(scope, task);
  }
  if (nbytes !== undefined) setNbytes(cluster, task, nbytes);
  for (const holder of holders) addReplica(cluster, task, holder);
  task.type = type ?? task.type ?? 'unknown';
}

/**
 * Cancels the computation that the task was about to do. The workers that received the data must
 * not be asked to free it.
 */
function giveUpComputing(
  scope: KernelScope,
  task: TaskState,
  holders: readonly WorkerState[],
): void {
  const { cluster } = scope;
  const mark = scope.outbox.toWorkers.length;
  if (task.state !== 'released') transition(scope, task, 'released');
  for (const holder of holders) {
    scope.outbox.retractFreeKeys(task.key, holder, mark);
    if (endRun(cluster, holder, task.runId)) checkIdleSaturated(scope, holder);
  }
  scope.recommendations.withdraw(task);
  becomeInactive(scope, task);
  task.blame = undefined;
  task.isActor = false;
  // An answer that is on its way belongs to a result that is being freed.
  task.runId = -1;
}
