import type { HeldResults } from '../messages/protocol.ts';
import type { BeginRecovery, RestoreTasks, Stimulus } from '../messages/stimulus.ts';
import { addReplica, removeReplica, setNbytes } from '../state/relations.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import type { WorkerStatus } from '../state/worker.ts';
import { loseCopy } from './on-data.ts';
import {
  adoptRun,
  freeKeys,
  onWorkersLost,
  setWorkerStatus,
  takeBack,
  unassignedSince,
} from './on-membership.ts';
import type { KernelScope } from './scope.ts';
import { addToMemory, becomeInactive } from './task-effects.ts';
import { settle, transition } from './transitions.ts';

// A scheduler starts from a journal, and waits for the workers that it had.

/** O(workers). All of them are paused: nothing was sent since they registered. */
export function onBeginRecovery(scope: KernelScope, { nextRunId }: BeginRecovery): void {
  scope.nextRunId = Math.max(scope.nextRunId, nextRunId);
  const recovery = new Recovery();
  for (const worker of scope.cluster.workersByRank) recovery.awaited.add(worker);
  scope.recovery = recovery;
  scope.cluster.limits.emptyBuckets();
}

/** O(tasks that wait for a worker + what the workers have reported). */
export function onEndRecovery(scope: KernelScope): void {
  const { cluster, recovery, nowMs } = scope;
  if (recovery === undefined) return;
  const lost = Array.from(recovery.awaited, ({ address }) => address);
  if (lost.length > 0) {
    onWorkersLost(scope, { op: 'workers-lost', workers: lost, stimulusId: scope.stimulusId });
  }
  scope.recovery = undefined;
  const isHere = (worker: WorkerState): boolean => cluster.isRegistered(worker);
  for (const [worker, results] of recovery.unclaimed) {
    if (!isHere(worker)) continue;
    for (const held of results) freeKeys(scope, worker, takeBack(scope, worker, held).keys);
  }
  for (const [worker, tasks] of recovery.missing) {
    for (const task of tasks) if (worker.hasWhat.has(task)) loseCopy(scope, task, worker);
  }
  settle(scope);
  for (const [worker, runs] of recovery.runs) {
    if (!isHere(worker)) continue;
    for (const [key, { runId, isSeceded }] of runs) adoptRun(scope, worker, key, runId, isSeceded);
  }
  settle(scope);
  // The time in which nothing could begin does not count.
  for (const task of cluster.unrunnable.keys()) cluster.unrunnable.set(task, nowMs);
  cluster.noWorkersSinceMs = undefined;
  for (const [worker, status] of recovery.statuses) {
    worker.lastSeenMs = nowMs;
    if (isHere(worker) && worker.status !== status) setWorkerStatus(scope, worker, status);
  }
}

/**
 * True when the stimulus has had its effect, or has none before the end: what runs have come to that are not
 * processing yet, the status of workers, and complaints about what cannot begin. O(1).
 */
export function isDeferredUntilRecovered(scope: KernelScope, stimulus: Stimulus): boolean {
  const { op } = stimulus;
  if (
    op === 'task-finished' ||
    op === 'task-erred' ||
    op === 'long-running' ||
    op === 'reschedule'
  ) {
    return isOfAwaitedRun(scope, stimulus);
  }
  if (op === 'worker-status-change' || op === 'set-worker-status') {
    const worker = scope.cluster.workers.get(stimulus.worker);
    if (worker === undefined || scope.recovery?.statuses.has(worker) !== true) return false;
    scope.recovery.statuses.set(worker, stimulus.status);
    return stimulus.status === 'running';
  }
  return op === 'check-worker-ttl' || op === 'check-no-workers-timeout';
}

type RunReport = Extract<
  Stimulus,
  { readonly op: 'task-finished' | 'task-erred' | 'long-running' | 'reschedule' }
>;

function isOfAwaitedRun(scope: KernelScope, report: RunReport): boolean {
  const { recovery, cluster } = scope;
  const { key, worker: address = '' } = report;
  const worker = cluster.workers.get(address);
  if (recovery === undefined || worker === undefined) return false;
  const runId = report.op === 'reschedule' ? undefined : report.runId;
  const run = recovery.takeRun(worker, key, runId);
  if (run === undefined) return false;
  if (report.op === 'task-finished') {
    const { nbytes = 0, type } = report;
    const held = { keys: [key], runIds: [run.runId], nbytes: [nbytes], types: [type] };
    freeKeys(scope, worker, takeBack(scope, worker, held).keys);
  } else if (report.op === 'long-running') {
    run.isSeceded = true;
    recovery.runs.get(worker)?.set(key, run);
  } else if (report.op === 'task-erred') {
    // The task is run again: what it has left of its retries is not known.
    freeKeys(scope, worker, [key]);
  }
  return true;
}

/** No-op for unknown tasks, and for those that have ended otherwise. */
export function onRestoreTasks(scope: KernelScope, stimulus: RestoreTasks): void {
  const { cluster } = scope;
  const { failures = [], actors = [], lostData = [], firstRunId = 0 } = stimulus;
  for (const key of lostData) restoreLoss(scope, cluster.tasks.get(key), firstRunId);
  for (const { key, failure, worker } of failures) {
    const task = cluster.tasks.get(key);
    if (task === undefined || task.state === 'memory' || task.state === 'erred') continue;
    scope.blame(task, failure);
    if (worker !== undefined) task.erredOn = new Set([worker]);
    transition(scope, task, 'erred', { cause: key, failure });
    settle(scope);
  }
  for (const { key, worker: address, runId, nbytes, type } of actors) {
    const worker = cluster.workers.get(address);
    const task = cluster.tasks.get(key);
    if (worker === undefined || task === undefined) continue;
    if (task.isActor && task.state === 'memory') moveActor(scope, task, worker, runId);
    if (!isToBeComputed(task)) continue;
    transition(scope, task, 'released');
    scope.withdraw(task);
    becomeInactive(scope, task);
    task.runId = runId;
    setNbytes(cluster, task, nbytes);
    worker.actors.add(task);
    addToMemory(scope, task, worker, type);
    settle(scope);
  }
}

/** It was made again. */
function moveActor(
  { cluster }: KernelScope,
  task: TaskState,
  worker: WorkerState,
  runId: number,
): void {
  task.runId = runId;
  addReplica(cluster, task, worker);
  worker.actors.add(task);
  for (const other of [...task.whoHas.items]) {
    if (other === worker) continue;
    other.actors.delete(task);
    removeReplica(cluster, task, other);
  }
}

function restoreLoss(scope: KernelScope, task: TaskState | undefined, firstRunId: number): void {
  if (task?.runId !== -1) return;
  for (const worker of [...task.whoHas.items]) loseCopy(scope, task, worker);
  if (task.runSpec !== undefined) task.runId = unassignedSince(firstRunId);
  settle(scope);
}

/** True when a task that leaves memory was data of a client, and not computed. */
export function isData({ runId }: TaskState): boolean {
  return runId === -1;
}

/** A task that failed itself, as `restore-tasks` has it. */
export function failureOf(
  task: TaskState,
): NonNullable<RestoreTasks['failures']>[number] | undefined {
  const { key, failure } = task;
  if (task.state !== 'erred' || task.exceptionBlame !== task || failure === undefined) {
    return undefined;
  }
  const [worker] = task.erredOn;
  return { key, failure, worker };
}

/** An actor that exists, as `restore-tasks` has it. */
export function actorOf(task: TaskState): NonNullable<RestoreTasks['actors']>[number] | undefined {
  const { key, runId, type = 'unknown' } = task;
  if (!task.isActor || task.state !== 'memory') return undefined;
  const host = task.whoHas.items.find((worker) => worker.actors.has(task));
  if (host === undefined) return undefined;
  return { key, worker: host.address, runId, nbytes: Math.max(0, task.nbytes), type };
}

function isToBeComputed({ state }: TaskState): boolean {
  return state === 'waiting' || state === 'queued' || state === 'no-worker';
}

/** A run that continues on a worker which came back, and whose task is not processing yet. */
interface AwaitedRun {
  readonly runId: number;
  isSeceded: boolean;
}

/**
 * The state of a scheduler that was read from a journal and waits for its workers. Until its end every
 * worker counts as paused: a task that is started now may have a result on a worker that is still to come.
 */
export class Recovery {
  /** Workers of the journal that are not back yet. */
  readonly awaited = new Set<WorkerState>();
  /** The statuses that the present workers report. */
  readonly statuses = new Map<WorkerState, WorkerStatus>();
  /** Results that no task has asked for yet: clients may say more before the end. */
  readonly unclaimed = new Map<WorkerState, HeldResults[]>();
  /** The results that workers that are back should hold, and do not. */
  readonly missing = new Map<WorkerState, readonly TaskState[]>();
  /** Runs by worker, by key: their inputs may be on workers that are still to come. */
  readonly runs = new Map<WorkerState, Map<string, AwaitedRun>>();

  /** The status that a worker gets until the end. */
  admit(worker: WorkerState, status: WorkerStatus): WorkerStatus {
    this.awaited.delete(worker);
    this.statuses.set(worker, status);
    return status === 'running' ? 'paused' : status;
  }

  forget(worker: WorkerState): void {
    this.awaited.delete(worker);
    for (const table of [this.statuses, this.unclaimed, this.missing, this.runs]) {
      table.delete(worker);
    }
  }

  /** Takes out a run that has ended or is not wanted. Undefined when there is none of this id. */
  takeRun(worker: WorkerState, key: string, runId: number | undefined): AwaitedRun | undefined {
    const runs = this.runs.get(worker);
    const run = runs?.get(key);
    if (run === undefined || (runId !== undefined && run.runId !== runId)) return undefined;
    runs?.delete(key);
    return run;
  }
}
