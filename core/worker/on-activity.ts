import type { ActionTiming } from '../state/groups.ts';
import type { TaskFailure } from '../state/task.ts';
import { assert } from '../util/values.ts';
import type {
  DataLost,
  ExecuteFailure,
  ExecuteOver,
  ExecutePause,
  ExecuteRejoin,
  ExecuteReschedule,
  ExecuteResume,
  ExecuteReturned,
  ExecuteSecede,
  ExecuteSuccess,
  FindMissing,
  GatherBusy,
  GatherFailure,
  GatherNetworkFailure,
  GatherSuccess,
  MemoryMeasured,
  RetryBusyWorker,
  StoreData,
} from './events.ts';
import { forgetPeer } from './on-scheduler.ts';
import type { WorkerScope } from './worker-scope.ts';
import { isBusy } from './worker-tables.ts';
import { NO_TIMINGS, type WorkerTask } from './worker-task.ts';

// What runs, transfers, timers and clients bring about.

/** Failed transfers from the same peer in succession after which the scheduler is told. */
const TRANSFER_ATTEMPTS = 3;

/** A peer that has answered so often, one time after the other, that it is busy counts as unreachable: some minutes. */
const BUSY_ANSWERS_MAX = 2000;

export function onExecuteSuccess(scope: WorkerScope, event: ExecuteSuccess): void {
  const task = endRun(scope, event.key);
  if (task.state !== 'executing') {
    scope.emit({ kind: 'drop-data', key: task.key });
    scope.recommend(task, 'released');
    return;
  }
  scope.tables.quota?.learn(task, event.nbytes);
  task.arrivedNbytes = event.nbytes;
  task.type = event.type;
  task.timings = withTransfers(task, event.timings);
  if (event.nbytes <= task.sendAlongBytes) task.value = event.value;
  scope.recommend(task, 'memory');
}

export function onExecuteFailure(scope: WorkerScope, event: ExecuteFailure): void {
  const task = endRun(scope, event.key, event.overdueRun);
  if (task.state !== 'executing') {
    scope.recommend(task, 'released');
    return;
  }
  task.failure = event.failure;
  task.timings = withTransfers(task, event.timings ?? NO_TIMINGS);
  scope.recommend(task, 'error');
}

export function onExecuteOver(scope: WorkerScope, { runId }: ExecuteOver): void {
  const { overdueRuns } = scope.tables;
  const owed = overdueRuns.get(runId)?.owed ?? [];
  overdueRuns.delete(runId);
  if (owed.length > 0) scope.reportRunsOver(owed);
}

/** Transfers of its inputs come before the run itself. */
function withTransfers(
  { timings }: WorkerTask,
  ofRun: readonly ActionTiming[],
): readonly ActionTiming[] {
  return timings.length === 0 ? ofRun : [...timings, ...ofRun];
}

export function onExecuteReschedule(scope: WorkerScope, event: ExecuteReschedule): void {
  const task = endRun(scope, event.key);
  scope.recommend(task, task.state === 'executing' ? 'rescheduled' : 'released');
}

/** Not counted as short again, so that it does not come back a second time. */
export function onExecuteReturned(scope: WorkerScope, event: ExecuteReturned): void {
  const task = endRun(scope, event.key);
  scope.tables.executedCount--;
  task.durationS = -1;
  scope.recommend(task, task.state === 'executing' ? 'waiting' : 'released');
}

/**
 * Frees the thread and the resources. The task is executing, cancelled or resumed.
 * @param overdueRun - the id of the run, if its code goes on: what it owes is reported with its end
 */
function endRun(scope: WorkerScope, key: string, overdueRun?: number): WorkerTask {
  const { tables } = scope;
  const task = tables.tasks.get(key);
  assert(task !== undefined && tables.executing.has(task), `"${key}" ended but did not run`);
  tables.endRun(task);
  tables.executedCount++;
  if (overdueRun !== undefined) {
    const own = task.state === 'executing' ? [task.runId] : [];
    tables.overdueRuns.set(overdueRun, { owed: [...task.owedRunIds, ...own], limit: task.limit });
    task.owedRunIds = [];
  }
  scope.settleRuns(task);
  return task;
}

/** Keys that are missing from the answer are not on the peer. */
export function onGatherSuccess(scope: WorkerScope, event: GatherSuccess): void {
  const arrived = new Map(event.keys.map((key, index) => [key, event.nbytes[index] ?? 0]));
  const runIds = new Map(event.keys.map((key, index) => [key, event.runIds?.[index] ?? -1]));
  scope.tables.ensurePeer(event.worker).busyAnswers = 0;
  const tasks = endTransfer(scope, event.worker);
  scope.tables.failedTransfers.delete(event.worker);
  if (event.timing !== undefined) addTransfer(tasks, event.timing);
  const denied: string[] = [];
  for (const task of tasks) {
    const nbytes = arrived.get(task.key);
    if (nbytes === undefined) scope.tables.removeHolder(task, event.worker);
    task.denials = nbytes === undefined ? task.denials + 1 : 0;
    if (task.state !== 'flight') {
      if (nbytes !== undefined) scope.emit({ kind: 'drop-data', key: task.key });
      scope.recommend(task, 'released');
    } else if (nbytes === undefined) {
      scope.recommend(task, 'fetch');
      if (task.denials % TRANSFER_ATTEMPTS === 0) denied.push(task.key);
    } else {
      task.arrivedNbytes = nbytes;
      task.copiedRunId = runIds.get(task.key) ?? -1;
      scope.recommend(task, 'memory');
    }
  }
  if (denied.length === 0) return;
  const { worker: deniedBy, stimulusId } = event;
  scope.report({ op: 'request-refresh-who-has', keys: denied, deniedBy, stimulusId });
}

/** Tries other holders at once. Where all are busy, the scheduler may know of more. */
export function onGatherBusy(scope: WorkerScope, event: GatherBusy): void {
  const { tables } = scope;
  const { worker, stimulusId } = event;
  const peer = tables.ensurePeer(worker);
  if (++peer.busyAnswers === BUSY_ANSWERS_MAX) {
    tables.failedTransfers.set(worker, TRANSFER_ATTEMPTS - 1);
    const reason = `it has answered ${BUSY_ANSWERS_MAX} times that it is busy`;
    onGatherNetworkFailure(scope, { op: 'gather-network-failure', worker, reason, stimulusId });
    return;
  }
  peer.isBusy = true;
  tables.failedTransfers.delete(worker);
  const stuck: string[] = [];
  for (const task of endTransfer(scope, worker)) {
    if (task.state !== 'flight') {
      scope.recommend(task, 'released');
      continue;
    }
    scope.recommend(task, 'fetch');
    if (hasOnlyBusyHolders(scope, task)) stuck.push(task.key);
  }
  scope.emit({ kind: 'retry-busy-later', worker });
  if (stuck.length === 0) return;
  scope.report({ op: 'request-refresh-who-has', keys: stuck, stimulusId });
}

/** As with Dask, a transfer counts for the first task that waits for it, and once. */
function addTransfer(tasks: readonly WorkerTask[], timing: ActionTiming): void {
  for (const { waiters } of tasks) {
    for (const waiter of waiters) {
      waiter.timings = [...waiter.timings, timing];
      return;
    }
  }
}

function hasOnlyBusyHolders({ tables }: WorkerScope, task: WorkerTask): boolean {
  for (const address of task.holders) {
    if (tables.peers.get(address)?.isBusy !== true) return false;
  }
  return true;
}

/**
 * Counts the peer as gone with all it held, rather than wait for the scheduler to say so. A peer that is still there
 * and fails again and again is reported, because the scheduler can have the work done elsewhere.
 */
export function onGatherNetworkFailure(scope: WorkerScope, event: GatherNetworkFailure): void {
  const { tables } = scope;
  const isGone = tables.peers.get(event.worker)?.isGone === true;
  const tasks = endTransfer(scope, event.worker);
  for (const task of tasks) {
    scope.recommend(task, task.state === 'flight' ? 'fetch' : 'released');
  }
  forgetPeer(scope, event.worker);
  if (isGone) return;
  const failures = (tables.failedTransfers.get(event.worker) ?? 0) + 1;
  tables.failedTransfers.set(event.worker, failures % TRANSFER_ATTEMPTS);
  if (failures === TRANSFER_ATTEMPTS) reportUnreachable(scope, event, tasks);
}

/** Reports the results that only the unreachable peer has. Copies for their own sake are given up. */
function reportUnreachable(
  scope: WorkerScope,
  { worker: address, reason = 'the transfer failed', stimulusId }: GatherNetworkFailure,
  tasks: readonly WorkerTask[],
): void {
  const stuck = tasks.filter(({ state, holders }) => state === 'flight' && holders.size === 0);
  if (stuck.length === 0) return;
  for (const task of stuck) {
    task.isReplicaWanted = false;
    if (task.waiters.size === 0) scope.recommend(task, 'released');
  }
  const keys = stuck.map(({ key }) => key);
  const unreachable = { address, reason };
  scope.report({ op: 'request-refresh-who-has', keys, unreachable, stimulusId });
}

/**
 * The copies have arrived but cannot be kept. The scheduler has not requested the copies but tasks
 * that need them, so these tasks fail instead of waiting for ever.
 */
export function onGatherFailure(scope: WorkerScope, event: GatherFailure): void {
  for (const task of endTransfer(scope, event.worker)) {
    scope.recommend(task, 'released');
    if (task.state !== 'flight') continue;
    task.isReplicaWanted = false;
    for (const waiter of task.waiters) fail(scope, waiter, event.failure);
  }
}

function fail(scope: WorkerScope, task: WorkerTask, failure: TaskFailure): void {
  task.failure = failure;
  task.timings = NO_TIMINGS;
  scope.recommend(task, 'error');
}

/** The tasks of a transfer that has ended. They are in flight, cancelled or resumed. */
function endTransfer({ tables }: WorkerScope, address: string): readonly WorkerTask[] {
  const peer = tables.peers.get(address);
  const transfer = peer?.transfer;
  assert(peer !== undefined && transfer !== undefined, `nothing was under way from ${address}`);
  peer.transfer = undefined;
  tables.transferCount--;
  tables.incomingBytes -= transfer.nbytes;
  for (const task of transfer.tasks) task.comingFrom = undefined;
  tables.releasePeer(peer);
  return transfer.tasks;
}

/** Asks the scheduler where missing results are. The host sends this event now and then. */
export function onFindMissing(scope: WorkerScope, event: FindMissing): void {
  const { missing } = scope.tables;
  if (missing.size === 0) return;
  const keys = Array.from(missing, (task) => task.key);
  scope.report({ op: 'request-refresh-who-has', keys, stimulusId: event.stimulusId });
}

export function onRetryBusyWorker({ tables }: WorkerScope, event: RetryBusyWorker): void {
  const peer = tables.peers.get(event.worker);
  if (peer === undefined) return;
  peer.isBusy = false;
  tables.releasePeer(peer);
}

/**
 * Accepts data that a client has put into the store. It is dropped under a key that is to be computed or is being
 * fetched here, or whose cancelled run has not ended.
 */
export function onStoreData(scope: WorkerScope, event: StoreData): void {
  const { tables } = scope;
  for (const [index, key] of event.keys.entries()) {
    const nbytes = event.nbytes[index] ?? 0;
    const task = tables.ensureTask(key);
    task.reservation = Math.max(task.reservation, event.reservation ?? 0);
    if (task.state === 'memory') {
      tables.nbytes += nbytes - task.nbytes;
      task.nbytes = nbytes;
    } else if (task.isToBeComputed || isBusy(tables, task)) {
      task.reservation = 0;
      scope.emit({ kind: 'drop-data', key });
    } else {
      task.arrivedNbytes = nbytes;
      scope.recommend(task, 'memory');
    }
  }
}

/** Tasks that were held back may fit now. */
export function onMemoryMeasured({ tables }: WorkerScope, event: MemoryMeasured): void {
  if (tables.quota !== undefined) tables.quota.processBytes = event.processBytes;
}

/** Reports the loss to the scheduler, which has results without another copy computed again. */
export function onDataLost(scope: WorkerScope, event: DataLost): void {
  for (const key of event.keys) {
    const task = scope.tables.tasks.get(key);
    if (task?.state === 'memory') scope.recommend(task, 'released');
  }
}

// Tasks that continue without a thread, and that request a thread again.

/** The run continues, and another one may begin. The run keeps its resources. */
export function onExecuteSecede(scope: WorkerScope, event: ExecuteSecede): void {
  const { tables, stimulusId } = scope;
  const task = tables.tasks.get(event.key);
  if (task === undefined || !tables.executing.has(task) || tables.seceded.has(task)) return;
  if (task.isConcurrent) return; // It has no thread.
  tables.secede(task);
  const { key, state, owedRunIds } = task;
  const { computeDurationS } = event;
  for (const runId of state === 'executing' ? [task.runId] : owedRunIds) {
    scope.report({ op: 'long-running', key, runId, computeDurationS, stimulusId });
  }
}

/** It gets the next thread that is free, before any task that has not begun. */
export function onExecuteRejoin(scope: WorkerScope, { key }: ExecuteRejoin): void {
  const { tables } = scope;
  const task = tables.tasks.get(key);
  if (task !== undefined && tables.seceded.has(task)) tables.rejoining.add(task);
  else scope.emit({ kind: 'rejoined', key }); // It has its thread.
}

// Runs that wait for the next call of their function. The scheduler remembers which they are.

/** Others may have its place in its limit. */
export function onExecutePause(scope: WorkerScope, { key }: ExecutePause): void {
  const runId = limitedRun(scope, key);
  if (runId === undefined) return;
  scope.report({ op: 'run-paused', key, runId, stimulusId: scope.stimulusId });
}

/** It goes on when its limit has room. */
export function onExecuteResume(scope: WorkerScope, { key }: ExecuteResume): void {
  const runId = limitedRun(scope, key);
  if (runId === undefined) scope.emit({ kind: 'resumed', key });
  else scope.report({ op: 'run-resumes', key, runId, stimulusId: scope.stimulusId });
}

/** The id of the run; undefined for one that has no limit or was taken back. */
function limitedRun({ tables }: WorkerScope, key: string): number | undefined {
  const task = tables.tasks.get(key);
  return task?.state === 'executing' && task.limit !== '' ? task.runId : undefined;
}

/** Gives free threads to those that have waited for longest. Also while the worker is paused. */
export function rejoinWaiting(scope: WorkerScope): void {
  const { tables } = scope;
  for (const task of tables.rejoining) {
    if (tables.occupiedThreads > tables.options.threadCount - 1) return;
    tables.rejoin(task);
    scope.emit({ kind: 'rejoined', key: task.key });
  }
}
