import type {
  AddKeys,
  MoveReplicas,
  ReleaseWorkerData,
  RequestRefreshWhoHas,
  UnreachablePeer,
  UpdateData,
  WantReplicas,
} from '../messages/stimulus.ts';
import {
  addReplica,
  addTranslation,
  addWant,
  removeReplica,
  setNbytes,
  setTaskState,
  setWantedReplicas,
} from '../state/relations.ts';
import { byPriority, type ClientState, type TaskState, type WorkerState } from '../state/task.ts';
import { checkIdleSaturated } from './occupancy.ts';
import { clientOnDemand } from './on-client.ts';
import { replicaLocations } from './placement.ts';
import { schedulerFailure } from './ports.ts';
import { avoidWorker, hasUntriedWorker } from './restrictions.ts';
import type { KernelScope } from './scope.ts';
import {
  becomeInactive,
  endRun,
  recommendReadyDependents,
  reportState,
  sendFreeKeys,
} from './task-effects.ts';
import { settle, transition } from './transitions.ts';

// Clients put data on workers. Source: Dask's `update_data`, which lets the last of two values win.

type DataItem = UpdateData['items'][number];

/**
 * The client put data on workers: it is in memory, and cannot be computed again. Where the key stands for
 * something else it is refused. O(items + their dependents).
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
    if (known !== undefined && standsForOther(known, item)) {
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
 * True when the key stands for other data, or for a task that is wanted. In Dask, whose clients send no fingerprint,
 * the data takes the place of the result, which the clients that wait for the task then get unasked.
 */
export function standsForOther(task: TaskState, item: DataItem): boolean {
  const isWanted = task.runSpec !== undefined && task.isNeeded;
  const isInUse = task.state === 'memory' || (isWanted && item.fingerprint !== undefined);
  return isInUse && isOtherData(task, item);
}

/**
 * True when the item surely differs from the data in memory. By the fingerprints, if the client sends
 * one: a computed result has none. Otherwise by type and size, if it sends the type: sizes alone
 * may be estimates.
 */
function isOtherData(task: TaskState, { nbytes, type, fingerprint }: DataItem): boolean {
  if (fingerprint !== undefined) {
    const isComputed = task.runSpec !== undefined && task.fingerprint === undefined;
    if (isComputed) return true;
    if (task.fingerprint !== undefined) return fingerprint !== task.fingerprint;
  }
  if (type === undefined) return false;
  const isOtherSize = nbytes !== undefined && task.nbytes >= 0 && nbytes !== task.nbytes;
  return isOtherSize || type !== (task.type ?? type);
}

/** Drops the copies that differ from what the key stands for. The client does not begin to want the key. */
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
      : 'a task of this key is wanted, or its result is there; choose another key';
  scope.outbox.toClient(client, { op: 'data-refused', keys: [task.key], reason });
}

function putInMemory(
  scope: KernelScope,
  task: TaskState,
  holders: readonly WorkerState[],
  { nbytes, type, fingerprint, reservation = 0 }: DataItem,
): void {
  const { cluster } = scope;
  task.reservation = Math.max(task.reservation, reservation);
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
  scope.withdraw(task);
  becomeInactive(scope, task);
  task.blame = undefined;
  task.isActor = false;
  // An answer that is on its way belongs to a result that is being freed.
  task.runId = -1;
}

// Copies of results appear, vanish and move. Source: Dask's `add_keys`, `request_acquire_replicas`.

/** Records copies of results in memory; the worker is asked to drop the others. */
export function onAddKeys(scope: KernelScope, { worker: address, keys }: AddKeys): void {
  const worker = scope.cluster.workers.get(address);
  if (worker === undefined) return;
  const unwanted: string[] = [];
  for (const key of keys) {
    const task = scope.cluster.tasks.get(key);
    if (task?.state === 'memory') noteCopy(scope, task, worker);
    else unwanted.push(key);
  }
  if (unwanted.length > 0) {
    const { stimulusId } = scope;
    scope.outbox.toWorker(worker, { op: 'remove-replicas', keys: unwanted, stimulusId });
  }
}

function noteCopy({ cluster }: KernelScope, task: TaskState, worker: WorkerState): void {
  if (cluster.languages.size > 1 && cluster.isTranslation(task, worker)) {
    addTranslation(cluster, task, worker);
  } else addReplica(cluster, task, worker);
}

/** Copies are gone. Where it was the last one, the result is computed again where it is needed. */
export function onReleaseWorkerData(
  scope: KernelScope,
  { worker: address, keys, reservation = Infinity }: ReleaseWorkerData,
): void {
  const { cluster } = scope;
  const worker = cluster.workers.get(address);
  if (worker === undefined) return;
  for (const key of keys) {
    // As a rule the scheduler has let it go itself, and does not know the key any more.
    const task = cluster.tasks.get(key);
    if (task === undefined || !worker.hasWhat.has(task)) continue;
    // The order was about data before this one.
    if (task.reservation <= reservation) loseCopy(scope, task, worker);
  }
}

/** A copy is gone. The result is computed again if it was the last one and is needed. */
export function loseCopy(scope: KernelScope, task: TaskState, worker: WorkerState): void {
  removeReplica(scope.cluster, task, worker);
  // What others have of an actor are handles to it.
  if (worker.actors.delete(task)) scope.recommend(task, 'erred');
  else if (task.whoHas.size === 0) scope.recommend(task, 'released');
}

/** Answers where results are now. O(keys), and with an unreachable holder O(their dependents). */
export function onRequestRefreshWhoHas(scope: KernelScope, report: RequestRefreshWhoHas): void {
  const worker = scope.cluster.workers.get(report.worker);
  if (worker === undefined) return;
  const known: TaskState[] = [];
  const unknown: string[] = [];
  for (const key of report.keys) {
    const task = scope.cluster.tasks.get(key);
    if (task === undefined) unknown.push(key);
    else known.push(task);
  }
  const { stimulusId } = scope;
  if (report.deniedBy !== undefined) loseDenied(scope, known, report.deniedBy);
  if (report.unreachable !== undefined) moveDependents(scope, worker, known, report.unreachable);
  if (known.length > 0) {
    const replicas = replicaLocations(known);
    scope.outbox.toWorker(worker, { op: 'refresh-who-has', replicas, stimulusId });
  }
  if (unknown.length > 0) {
    scope.outbox.toWorker(worker, { op: 'free-keys', keys: unknown, stimulusId });
  }
}

/**
 * A worker has answered again and again that it does not hold results that count as its own: they are lost there, and the worker
 * frees them if it has them after all.
 */
function loseDenied(scope: KernelScope, tasks: readonly TaskState[], address: string): void {
  const holder = scope.cluster.workers.get(address);
  if (holder === undefined) return;
  const lost = tasks.filter((task) => task.whoHas.has(holder));
  if (lost.length === 0) return;
  for (const task of lost) loseCopy(scope, task, holder);
  const keys = lost.map(({ key }) => key);
  const { stimulusId } = scope;
  scope.outbox.toWorker(holder, { op: 'free-keys', keys, stimulusId });
  scope.outbox.event('scheduler', { action: 'denied-results', worker: address, keys });
}

/**
 * A worker cannot get results from the worker that holds them. The tasks for which it wants them go to workers where they
 * have not been tried, and fail when they were tried too often; without another worker the same one tries again.
 */
function moveDependents(
  scope: KernelScope,
  worker: WorkerState,
  inputs: readonly TaskState[],
  { address, reason }: UnreachablePeer,
): void {
  const holder = scope.cluster.workers.get(address);
  if (holder === undefined) return; // It has left meanwhile.
  const stuck = new Set<TaskState>();
  for (const input of inputs) {
    if (!input.whoHas.has(holder)) continue;
    for (const task of input.dependentsWithForgotten) {
      if (task.processingOn === worker) stuck.add(task);
    }
  }
  if (stuck.size === 0) return;
  const { allowedFailures } = scope.options;
  scope.outbox.event('scheduler', {
    action: 'unreachable-worker',
    worker: worker.address,
    peer: address,
    reason,
    keys: Array.from(stuck, ({ key }) => key),
  });
  for (const task of [...stuck].sort((a, b) => byPriority(b, a))) {
    avoidWorker(task, worker);
    task.suspicious++;
    if (task.suspicious <= allowedFailures) {
      if (hasUntriedWorker(scope.cluster, task)) scope.recommend(task, 'released');
      continue;
    }
    const attempts = allowedFailures + 1;
    const failure = schedulerFailure(
      'ERR_UNREACHABLE',
      `the inputs of ${task.key} could not be fetched in ${attempts} attempts; in the last one ${worker.address} could not reach ${address}: ${reason}. ` +
        'Each worker has to reach the addresses of all others; see --host of yardmaster worker.',
      { key: task.key, worker: worker.address, peer: address, attempts },
    );
    scope.withdraw(task);
    transition(scope, task, 'erred', { cause: task.key, failure });
  }
}

/**
 * The Active Memory Manager acts. All copies are requested before any is dropped. A copy counts when
 * the worker reports it; a dropped one is gone at once, and a worker that refuses announces it again.
 */
export function onMoveReplicas(scope: KernelScope, { acquire, remove }: MoveReplicas): void {
  for (const { worker: address, keys } of acquire) {
    const worker = scope.cluster.workers.get(address);
    if (worker !== undefined) requestAcquire(scope, worker, keys);
  }
  for (const { worker: address, keys } of remove) {
    const worker = scope.cluster.workers.get(address);
    if (worker !== undefined) requestRemove(scope, worker, keys);
  }
}

/** Nothing moves yet: the Active Memory Manager makes the copies. Unknown keys are left out. */
export function onWantReplicas({ cluster }: KernelScope, { keys, replicas }: WantReplicas): void {
  for (const key of keys) {
    const task = cluster.tasks.get(key);
    if (task !== undefined) setWantedReplicas(cluster, task, replicas);
  }
}

function requestAcquire(scope: KernelScope, worker: WorkerState, keys: readonly string[]): void {
  if (worker.status !== 'running') return;
  const tasks: TaskState[] = [];
  for (const key of keys) {
    const task = scope.cluster.tasks.get(key);
    if (task?.state !== 'memory' || task.isActor || worker.hasWhat.has(task)) continue;
    if (scope.cluster.isTranslation(task, worker)) continue; // It would never count.
    tasks.push(task);
  }
  if (tasks.length === 0) return;
  const { stimulusId } = scope;
  scope.outbox.toWorker(worker, {
    op: 'acquire-replicas',
    replicas: replicaLocations(tasks),
    stimulusId,
  });
}

/** The last copy is never dropped, whatever was asked for. */
function requestRemove(scope: KernelScope, worker: WorkerState, keys: readonly string[]): void {
  const dropped: string[] = [];
  for (const key of keys) {
    const task = scope.cluster.tasks.get(key);
    if (task === undefined || task.whoHas.size < 2 || !worker.hasWhat.has(task)) continue;
    if (worker.actors.size > 0 && worker.actors.has(task)) continue;
    removeReplica(scope.cluster, task, worker);
    dropped.push(key);
  }
  if (dropped.length === 0) return;
  const { stimulusId } = scope;
  scope.outbox.toWorker(worker, { op: 'remove-replicas', keys: dropped, stimulusId });
}
