import type { WorkerLoss } from '../api/hooks.ts';
import type { EndingRuns, HeldResults, HeldRuns } from '../messages/protocol.ts';
import type {
  HeartbeatWorker,
  RegisterWorker,
  RemoveWorker,
  SchedulerStalled,
  SetWorkerStatus,
  WorkersLost,
  WorkerStatusChange,
} from '../messages/stimulus.ts';
import {
  addReplica,
  addToLongRunning,
  dropTranslations,
  learnExecTime,
  removeReplica,
  setNbytes,
} from '../state/relations.ts';
import { byPriority, type TaskState } from '../state/task.ts';
import { WorkerState, type WorkerStatus } from '../state/worker.ts';
import { heartbeatIntervalMs } from '../util/event-loop.ts';
import { countOf } from '../util/values.ts';
import { keepRun } from './assignment.ts';
import { checkIdleSaturated } from './occupancy.ts';
import { slotLimitOf } from './placement.ts';
import { schedulerFailure } from './ports.ts';
import { avoidWorker, describeRestrictions } from './restrictions.ts';
import type { KernelScope } from './scope.ts';
import { addToMemory, becomeInactive, takeBackRun } from './task-effects.ts';
import { settle, transition } from './transitions.ts';

// Workers come, change and go. Source: Dask's `add_worker`, `remove_worker`.

/** Silence of this many heartbeats is forgiven, however short the configured time to live is. */
const HEARTBEATS_FORGIVEN = 10;

/** The host refuses addresses and names that are taken before it comes to this. O(workers). */
export function onRegisterWorker(scope: KernelScope, stimulus: RegisterWorker): void {
  const { cluster, ports } = scope;
  const { identity, metrics } = stimulus;
  if (isAwaited(scope, stimulus)) return;
  if (cluster.workers.has(identity.address) || cluster.aliases.has(identity.name)) return;
  const worker = new WorkerState(identity, cluster.nextSequence(), cluster.costs, scope.nowMs);
  const status = scope.recovery?.admit(worker, stimulus.status) ?? stimulus.status;
  worker.status = status;
  worker.slotLimit = slotLimitOf(scope, worker);
  cluster.addWorker(worker);
  if (metrics !== undefined) takeMetrics(scope, worker, metrics);
  if (status === 'running') cluster.running.add(worker);
  checkIdleSaturated(scope, worker);
  for (const hook of ports.hooks.workerAdded) hook(worker, scope.stimulusId);
  onReturn(scope, worker, stimulus);
  if (status === 'running') recommendUnrunnable(scope, worker);
}

/** A worker that the journal knows is back. Returns false for any other one. */
function isAwaited(scope: KernelScope, stimulus: RegisterWorker): boolean {
  const { cluster, recovery } = scope;
  const { identity, status, metrics } = stimulus;
  const worker = cluster.workers.get(identity.address);
  if (worker === undefined || recovery?.awaited.has(worker) !== true) return false;
  if (worker.serverId !== identity.serverId) return false;
  const admitted = recovery.admit(worker, status);
  if (worker.status !== admitted) setWorkerStatus(scope, worker, admitted);
  if (metrics !== undefined) takeMetrics(scope, worker, metrics);
  onAwaitedReturn(scope, worker, stimulus);
  return true;
}

/** O(running tasks of the worker). */
export function onHeartbeat(scope: KernelScope, stimulus: HeartbeatWorker): void {
  const { cluster } = scope;
  const worker = cluster.workers.get(stimulus.worker);
  if (worker === undefined) return;
  takeMetrics(scope, worker, stimulus.metrics);
  worker.timeDelayMs = scope.nowMs - stimulus.workerNowMs;
  let offersMore = false;
  for (const [resource, amount] of Object.entries(stimulus.resources ?? {})) {
    if (amount > (worker.resources.get(resource) ?? 0)) offersMore = true;
    cluster.setResource(worker, resource, amount);
  }
  if (offersMore && worker.status === 'running') recommendUnrunnable(scope, worker);
  const executing = new Map<TaskState, number>();
  for (const [key, seconds] of stimulus.executing) {
    const task = cluster.tasks.get(key);
    if (task === undefined || !worker.processing.has(task)) continue;
    executing.set(task, seconds);
    learnExecTime(cluster, task.prefix, seconds);
  }
  worker.executing = executing;
}

/** A worker that stops running keeps its tasks, and gets no more. */
export function onStatusChange(scope: KernelScope, stimulus: WorkerStatusChange): void {
  const worker = scope.cluster.workers.get(stimulus.worker);
  if (worker === undefined || worker.status === stimulus.status) return;
  setWorkerStatus(scope, worker, stimulus.status);
}

/**
 * The scheduler decides and notifies the worker, which reports the same status when it has
 * followed.
 */
export function onSetWorkerStatus(scope: KernelScope, stimulus: SetWorkerStatus): void {
  const worker = scope.cluster.workers.get(stimulus.worker);
  if (worker === undefined || worker.status === stimulus.status) return;
  const { status, stimulusId } = stimulus;
  scope.outbox.toWorker(worker, { op: 'worker-status-change', status, stimulusId });
  setWorkerStatus(scope, worker, status);
}

export function setWorkerStatus(
  scope: KernelScope,
  worker: WorkerState,
  status: WorkerStatus,
): void {
  const { cluster, ports } = scope;
  const before = worker.status;
  worker.status = status;
  scope.outbox.event(worker.address, { action: 'worker-status-change', before, after: status });
  if (status === 'running') cluster.running.add(worker);
  else cluster.running.delete(worker);
  checkIdleSaturated(scope, worker);
  for (const hook of ports.hooks.workerStatusChanged) hook(worker, scope.stimulusId);
  if (status === 'running') recommendUnrunnable(scope, worker);
}

export function onRemoveWorker(scope: KernelScope, stimulus: RemoveWorker): void {
  const worker = scope.cluster.workers.get(stimulus.worker);
  if (worker !== undefined) removeWorkers(scope, [worker], stimulus);
}

/** Workers leave together, and cannot be reached any more. */
export function onWorkersLost(scope: KernelScope, stimulus: WorkersLost): void {
  const addresses = new Set(stimulus.workers);
  const lost = [...addresses].flatMap((address) => scope.cluster.workers.get(address) ?? []);
  if (lost.length > 0) removeWorkers(scope, lost, { expected: false, close: false });
}

type Departure = Pick<RemoveWorker, 'expected' | 'close' | 'restart'>;

/**
 * Workers leave together. The tasks that they were processing are placed anew, on other workers;
 * results that only they held are computed again where that is possible. O(tasks processing and
 * held there + workers²).
 */
function removeWorkers(
  scope: KernelScope,
  leaving: readonly WorkerState[],
  departure: Departure,
): void {
  const { cluster, outbox, stimulusId } = scope;
  for (const worker of leaving) {
    if (departure.close) {
      const restart = departure.restart === true ? { restart: true } : undefined;
      const reason = 'scheduler-remove-worker';
      outbox.toWorker(worker, { op: 'close', reason, ...restart, stimulusId });
    }
    worker.status = 'closed';
    if (!departure.expected) cluster.noteLost(worker);
    cluster.openSlots.delete(worker);
    cluster.removeWorker(worker);
    scope.recovery?.awaited.delete(worker);
  }
  const { expected } = departure;
  const losses = leaving.map((worker): WorkerLoss => {
    const processing = releaseProcessing(scope, worker, expected);
    return { expected, processing, ...releaseReplicas(scope, worker) };
  });
  for (const worker of leaving) {
    dropTranslations(cluster, worker);
    for (const runId of worker.endingRuns) cluster.limits.endRun(runId);
    for (const runId of worker.lingeringRuns) cluster.limits.endRun(runId);
  }
  settle(scope);
  leaving.forEach((worker, index) => tellRemoved(scope, worker, losses[index] as WorkerLoss));
}

export function tellRemoved(scope: KernelScope, worker: WorkerState, loss: WorkerLoss): void {
  const { outbox, stimulusId } = scope;
  const { address } = worker;
  outbox.event(address, { action: 'remove-worker', stimulusId, ...loss });
  outbox.event('all', { action: 'remove-worker', worker: address, stimulusId, ...loss });
  for (const hook of scope.ports.hooks.workerRemoved) hook(worker, stimulusId, loss);
  for (const other of scope.cluster.workersByRank) {
    outbox.toWorker(other, { op: 'remove-worker', worker: address, stimulusId });
  }
}

/**
 * Time in which the scheduler could not hear is neither silence of workers nor time for which tasks have
 * waited. O(workers + tasks that wait for a worker).
 */
export function onSchedulerStalled(scope: KernelScope, { stalledMs }: SchedulerStalled): void {
  const { cluster, nowMs } = scope;
  for (const worker of cluster.workersByRank) {
    worker.deafMs = Math.min(worker.deafMs + stalledMs, nowMs - worker.lastSeenMs);
  }
  const discount = (sinceMs: number): number => Math.min(sinceMs + stalledMs, nowMs);
  for (const [task, sinceMs] of cluster.unrunnable) cluster.unrunnable.set(task, discount(sinceMs));
  const { noWorkersSinceMs } = cluster;
  if (noWorkersSinceMs !== undefined) cluster.noWorkersSinceMs = discount(noWorkersSinceMs);
}

/** Removes all workers that have been silent for too long, together: none gets a task of another. O(workers). */
export function onCheckWorkerTtl(scope: KernelScope): void {
  const { cluster, options, outbox, nowMs } = scope;
  const forgivenMs = HEARTBEATS_FORGIVEN * heartbeatIntervalMs(cluster.workers.size);
  const ttlMs = Math.max(options.workerTtlMs, forgivenMs);
  const silent: WorkerState[] = [];
  for (const worker of cluster.workersByRank) {
    const { address, lastSeenMs, deafMs } = worker;
    const silentMs = nowMs - lastSeenMs - deafMs;
    if (silentMs <= ttlMs) continue;
    silent.push(worker);
    outbox.event('scheduler', { action: 'worker-ttl-timed-out', worker: address, silentMs });
  }
  if (silent.length === 0) return;
  removeWorkers(scope, silent, { expected: false, close: true, restart: true });
}

/** Fails tasks for which there has been no suitable worker for too long. O(tasks that wait so). */
export function onCheckNoWorkersTimeout(scope: KernelScope): void {
  const { cluster, options } = scope;
  const { noWorkersTimeoutMs } = options;
  const noWorkersSinceMs = refreshNoWorkersClock(scope);
  for (const [task, sinceMs] of cluster.unrunnable) {
    if (scope.nowMs - sinceMs < noWorkersTimeoutMs) continue;
    if (scope.rules.isHeld(task)) continue;
    failWithoutWorker(scope, task, noWorkersSinceMs !== undefined);
  }
  if (noWorkersSinceMs === undefined) return;
  if (scope.nowMs - noWorkersSinceMs < noWorkersTimeoutMs) return;
  for (const task of cluster.queued.sorted()) failWithoutWorker(scope, task, true);
  const { limits } = cluster;
  for (const limit of [...limits.open]) {
    for (const task of limit.queued.sorted()) failWithoutWorker(scope, task, true);
  }
}

/** Since when tasks have been waiting without any running worker. */
export function refreshNoWorkersClock({ cluster, nowMs }: KernelScope): number | undefined {
  const { queued, unrunnable, limits } = cluster;
  const hasWork = queued.size > 0 || unrunnable.size > 0 || limits.open.size > 0;
  if (cluster.running.size > 0 || !hasWork) cluster.noWorkersSinceMs = undefined;
  else cluster.noWorkersSinceMs ??= nowMs;
  return cluster.noWorkersSinceMs;
}

function takeMetrics(
  scope: KernelScope,
  worker: WorkerState,
  metrics: HeartbeatWorker['metrics'],
): void {
  const { costs, workers } = scope.cluster;
  worker.lastSeenMs = scope.nowMs;
  worker.deafMs = 0;
  worker.metrics = metrics;
  scope.hasNewMetrics = true;
  scope.changedWorker = worker;
  worker.measuredNbytes = worker.nbytes;
  const unmanaged = metrics.memoryBytes - worker.nbytes + metrics.spilledMemoryBytes;
  const { recentToOldMs } = scope.options;
  worker.unmanagedHistory.add(scope.nowMs, Math.max(0, unmanaged), recentToOldMs);
  if (metrics.bandwidth !== undefined && metrics.bandwidth > 0) {
    costs.bandwidthSamples++;
    const isFirst = scope.options.isBandwidthGuessed && costs.bandwidthSamples < workers.size;
    const share = 1 / (isFirst ? costs.bandwidthSamples : workers.size);
    costs.bandwidth = costs.bandwidth * (1 - share) + metrics.bandwidth * share;
  }
}

/** Tasks that waited for a worker like this one, the best last, so that it is taken first. */
function recommendUnrunnable(scope: KernelScope, worker: WorkerState): void {
  const { cluster } = scope;
  const waiting = [...cluster.unrunnable.keys()];
  const fitting = waiting.filter((task) => cluster.suits(task, worker) !== 'no');
  for (const task of fitting.sort((a, b) => byPriority(b, a))) {
    scope.recommend(task, 'processing');
  }
}

function releaseProcessing(scope: KernelScope, worker: WorkerState, expected: boolean): string[] {
  const keys: string[] = [];
  for (const task of [...worker.processing]) {
    keys.push(task.key);
    if (expected) {
      scope.recommend(task, 'released');
      continue;
    }
    task.suspicious++;
    task.prefix.suspicious++;
    if (scope.options.avoidUsedWorkers) avoidWorker(task, worker);
    if (task.suspicious <= scope.options.allowedFailures) scope.recommend(task, 'released');
    else failKilled(scope, task, worker);
  }
  return keys;
}

function releaseReplicas(
  scope: KernelScope,
  worker: WorkerState,
): { readonly recomputed: string[]; readonly lost: string[] } {
  const recomputed: string[] = [];
  const lost: string[] = [];
  for (const task of [...worker.hasWhat]) {
    removeReplica(scope.cluster, task, worker);
    if (worker.actors.delete(task)) {
      scope.recommend(task, 'erred');
      lost.push(task.key);
    } else if (task.whoHas.size > 0) {
      continue;
    } else if (task.runSpec === undefined) {
      scope.recommend(task, 'forgotten');
      lost.push(task.key);
    } else {
      scope.recommend(task, 'released');
      recomputed.push(task.key);
    }
  }
  return { recomputed, lost };
}

function failKilled(scope: KernelScope, task: TaskState, worker: WorkerState): void {
  const attempts = scope.options.allowedFailures + 1;
  const failure = schedulerFailure(
    'ERR_KILLED_WORKER',
    `${task.key} was tried ${countOf(attempts, 'time')}, and each time its worker died while it was there, ` +
      `${worker.name} last${memoryText(worker)}. It may use too much memory or end the process; see the workers' logs.`,
    { key: task.key, lastWorker: worker.address, allowedFailures: scope.options.allowedFailures },
  );
  scope.withdraw(task);
  transition(scope, task, 'erred', { worker: worker.address, cause: task.key, failure });
}

function memoryText({ memory, memoryLimitBytes }: WorkerState): string {
  if (memoryLimitBytes === 0 || memory.process === 0) return '';
  return `, which had ${Math.round((100 * memory.process) / memoryLimitBytes)} % of its memory in use`;
}

function failWithoutWorker(scope: KernelScope, task: TaskState, noneAtAll: boolean): void {
  const { noWorkersTimeoutMs } = scope.options;
  const restrictions = describeRestrictions(scope.cluster, task);
  const reason = scope.rules.reasonOf(task) ?? 'the policy wanted none of the workers';
  const why = noneAtAll ? 'there was no running worker' : reason;
  const failure = schedulerFailure(
    'ERR_NO_WORKER',
    `${task.key} waited ${noWorkersTimeoutMs} ms and ${why}. Start one, or raise noWorkersTimeout.`,
    {
      key: task.key,
      timeoutMs: noWorkersTimeoutMs,
      ...(restrictions === '' ? {} : { restrictions }),
    },
  );
  scope.outbox.event('scheduler', { action: 'no-workers-timeout-exceeded', key: task.key });
  transition(scope, task, 'erred', { cause: task.key, failure });
}

// A worker is back whose connection was lost, and it kept its results. Dask has no such thing: since
// 2022.5 its workers close. The rule for what is kept is that of `add-keys`, with the
// run id as proof that the key still stands for the same computation.

/** Takes a worker back, with the results and runs that it brings. */
function onReturn(
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
  if (runs.ending !== undefined) countEnding(scope, worker, runs.ending);
  if (recovery === undefined) adoptRuns(scope, worker, runs);
  else recovery.runs.set(worker, new Map(runsByKey(runs)));
}

/** A worker of the journal is back. What the journal says that it holds, and it does not, will be lost. */
function onAwaitedReturn(
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
    runs,
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
    if (dependency.isActive && !dependency.isNeeded) scope.recommendRelease(dependency, 'released');
  }
}

/** Before anything is sent to be computed there: it may be under one of these keys. */
export function freeKeys(scope: KernelScope, worker: WorkerState, keys: readonly string[]): void {
  if (keys.length === 0) return;
  scope.outbox.toWorker(worker, { op: 'free-keys', keys, stimulusId: scope.stimulusId });
}

/** Code that nobody wants any more counts here as it did where the run was taken back. */
function countEnding(
  scope: KernelScope,
  worker: WorkerState,
  { runIds, limits: names, seceded }: EndingRuns,
): void {
  const { limits } = scope.cluster;
  for (const [index, runId] of runIds.entries()) {
    if (worker.endingRuns.has(runId) || worker.lingeringRuns.has(runId)) continue;
    (seceded[index] === true ? worker.lingeringRuns : worker.endingRuns).add(runId);
    const name = names[index] ?? '';
    // The terms come with the next task.
    if (name !== '') limits.addEndingRun(limits.get(name) ?? limits.add({ name }), runId);
  }
  checkIdleSaturated(scope, worker);
}

/** Runs whose tasks are still to be computed continue as theirs; the others are taken back. */
function adoptRuns(scope: KernelScope, worker: WorkerState, runs: HeldRuns): void {
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
  const isFull = task?.limit?.isFull === true;
  if (task === undefined || !isReady || isFull || !isRunOf(task, runId)) {
    if (task?.processingOn !== worker)
      takeBackRun(scope, { key, runId, limit: task?.limit }, worker, isSeceded);
    return;
  }
  transition(scope, task, 'released');
  scope.withdraw(task); // It would be placed.
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

/** True when a run of this id was of this task, and not of another one under its key. */
function isRunOf({ runId: latest }: TaskState, runId: number): boolean {
  if (latest >= 0) return runId === latest;
  return latest < -1 && runId >= firstRunOf(latest);
}

/**
 * The `TaskState.runId` of a task from a journal that has not been assigned since: less than -1, with
 * the first run id that it may have had.
 */
export function unassignedSince(firstRunId: number): number {
  return -2 - firstRunId;
}

/** The reverse of {@link unassignedSince}. */
function firstRunOf(runId: number): number {
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
  scope.withdraw(task); // It would be computed.
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
