import type {
  LongRunning,
  Reschedule,
  RunPaused,
  RunResumes,
  RunsOver,
  StealProposal,
  StealResponse,
  StealTasks,
  TaskErred,
  TaskFinished,
} from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import {
  addReplica,
  addToLongRunning,
  askBack,
  learnDuration,
  refuseSteal,
  rememberSteal,
} from '../state/relations.ts';
import { Steal, type TaskState, type WorkerState } from '../state/task.ts';
import { fitsInto, sendResume } from './assignment.ts';
import { checkIdleSaturated } from './occupancy.ts';
import type { KernelScope } from './scope.ts';
import { countOverdueRun, endRun } from './task-effects.ts';
import { stepToWorker, transition } from './transitions.ts';

// What workers report about tasks. Source: Dask's `stimulus_task_finished` and others.

/** O(1), and O(dependents + dependencies) for the task itself. */
export function onTaskFinished(scope: KernelScope, report: TaskFinished): void {
  const { cluster } = scope;
  const run = cluster.runs.find(report.runId, report.key);
  const worker = senderOf(cluster, report, run);
  if (worker === undefined) return;
  const task = run ?? cluster.tasks.get(report.key);
  if (task === undefined || isNotExpected(task)) {
    freeKey(scope, report);
  } else if (task.runId !== report.runId) {
    onStaleAnswer(scope, task, report);
  } else if (task.state === 'memory') {
    addReplica(cluster, task, worker);
  } else if (task.processingOn !== undefined && task.processingOn !== worker) {
    freeKey(scope, report);
  } else {
    if (report.metadata !== undefined) task.metadata = { ...task.metadata, ...report.metadata };
    transition(scope, task, 'memory', report);
  }
}

/** A retry is left: the task starts again. Otherwise it fails, and its dependents with it. */
export function onTaskErred(scope: KernelScope, report: TaskErred): void {
  const task = scope.cluster.tasks.get(report.key);
  if (task?.state !== 'processing') return;
  const { processingOn } = task;
  if (processingOn?.address !== report.worker) return;
  if (task.runId !== report.runId) {
    scope.recommend(task, 'released');
    return;
  }
  if (report.isOverdue === true) countOverdueRun(scope.cluster, task, processingOn);
  if (task.retries > 0) {
    task.retries--;
    scope.recommend(task, 'waiting');
  } else {
    const { worker, failure, timings } = report;
    transition(scope, task, 'erred', {
      worker,
      failure,
      cause: task.key,
      timings,
    });
  }
}

/** The task is placed anew; no failure, and no retry is used up. */
export function onReschedule(scope: KernelScope, { key, worker }: Reschedule): void {
  const task = scope.cluster.tasks.get(key);
  if (task?.state !== 'processing') return;
  if (worker !== undefined && task.processingOn?.address !== worker) return;
  scope.recommend(task, 'released');
}

/** Runs have ended that were taken back, or were overdue: what they occupied is free again. Unknown ids are passed over. */
export function onRunsOver(scope: KernelScope, report: RunsOver): void {
  const worker = scope.cluster.workers.get(report.worker);
  if (worker === undefined) return;
  for (const runId of report.runIds) endRun(scope.cluster, worker, runId);
  scope.hasFreedWorker = true;
  scope.changedWorker = worker;
  checkIdleSaturated(scope, worker);
}

/** A thread is free again although the task continues. */
export function onLongRunning(scope: KernelScope, report: LongRunning): void {
  const task = scope.cluster.tasks.get(report.key);
  const worker = scope.cluster.workers.get(report.worker);
  if (worker?.endingRuns.delete(report.runId) === true) {
    // It was taken back while the report was on its way.
    worker.lingeringRuns.add(report.runId);
    checkIdleSaturated(scope, worker);
    return;
  }
  if (task === undefined || worker === undefined || task.processingOn !== worker) return;
  if (task.runId !== report.runId) return;
  if (report.computeDurationS !== undefined) {
    learnDuration(scope.cluster, task.prefix, worker, report.computeDurationS);
  }
  addToLongRunning(scope.cluster, task, worker);
  checkIdleSaturated(scope, worker);
}

/** Its limit has room for another one. */
export function onRunPaused({ cluster }: KernelScope, report: RunPaused): void {
  const task = runOf(cluster, report);
  if (task !== undefined) cluster.limits.pause(task);
}

/** It goes on when its limit has room; at once, if it counts already. */
export function onRunResumes(scope: KernelScope, report: RunResumes): void {
  const { cluster } = scope;
  const task = runOf(cluster, report);
  if (task?.processingOn === undefined || cluster.limits.endPause(task)) return;
  sendResume(scope, task, task.processingOn);
}

/** The task of a run that is the present one. */
function runOf(
  { tasks }: ClusterState,
  { key, worker, runId }: RunPaused | RunResumes,
): TaskState | undefined {
  const task = tasks.get(key);
  return task?.processingOn?.address === worker && task.runId === runId ? task : undefined;
}

/** As a rule who has the run: the table of workers need not be asked then. */
function senderOf(
  cluster: ClusterState,
  { worker }: TaskFinished,
  run: TaskState | undefined,
): WorkerState | undefined {
  const expected = run?.processingOn;
  return expected?.address === worker ? expected : cluster.workers.get(worker);
}

function isNotExpected({ state }: TaskState): boolean {
  return state === 'released' || state === 'queued' || state === 'no-worker' || state === 'erred';
}

/** The answer belongs to an older assignment. When it comes from the present one, both lost track. */
function onStaleAnswer(scope: KernelScope, task: TaskState, report: TaskFinished): void {
  if (task.processingOn?.address === report.worker) scope.recommend(task, 'released');
  else freeKey(scope, report);
}

function freeKey(scope: KernelScope, { key, worker }: TaskFinished): void {
  const sender = scope.cluster.workers.get(worker);
  if (sender === undefined) return;
  scope.outbox.toWorker(sender, { op: 'free-keys', keys: [key], stimulusId: scope.stimulusId });
}

// Work stealing, as far as it is the kernel's: tasks are asked back from the workers that are
// processing them, and go to others when they have not begun. Who should have what is decided by a
// plugin. Source: Dask's `WorkStealing`.

/** In these states the worker has given the task up by the time it answers. */
const GIVEN_UP: ReadonlySet<string> = new Set(['waiting', 'ready', 'constrained']);
/** In these states the worker has begun the task, and continues. */
const BEGUN: ReadonlySet<string> = new Set([
  'executing',
  'long-running',
  'memory',
  'error',
  'cancelled',
  'resumed',
]);
/** Topic under which steals are published. */
const TOPIC = 'stealing';
/** Tasks that one event names. */
const NAMED_MAX = 100;

/** Asks the victims for the tasks; one message for each victim. O(proposals + victims). */
export function onStealTasks(scope: KernelScope, { proposals, victims = [] }: StealTasks): void {
  const { cluster, stimulusId } = scope;
  const asked = new Map<WorkerState, { readonly keys: string[]; readonly runIds: number[] }>();
  const named: StealProposal[] = [];
  let count = 0;
  for (const proposal of proposals) {
    const task = cluster.tasks.get(proposal.key);
    const thief = cluster.workers.get(proposal.thief);
    const victim = task?.processingOn;
    if (task === undefined || thief === undefined || victim?.address !== proposal.victim) continue;
    if (!mayAsk(scope, task, victim, thief)) continue;
    askBack(cluster, task, new Steal(victim, thief, proposal.victimS, proposal.thiefS));
    let request = asked.get(victim);
    if (request === undefined) {
      request = { keys: [], runIds: [] };
      asked.set(victim, request);
    }
    request.keys.push(task.key);
    request.runIds.push(task.runId);
    if (count++ < NAMED_MAX) named.push(proposal);
  }
  for (const [victim, { keys, runIds }] of asked) {
    scope.outbox.toWorker(victim, { op: 'steal-request', keys, runIds, stimulusId });
  }
  // Until they answer, what they are asked for does not count: else the next round asks for more.
  const looked = victims.map((address) => cluster.workers.get(address));
  for (const victim of new Set([...asked.keys(), ...looked])) {
    if (victim === undefined) continue;
    judgeWithoutAsked(scope, victim);
  }
  if (count > 0) scope.outbox.event(TOPIC, { action: 'asked', stimulusId, count, tasks: named });
}

/**
 * Tasks that it is asked for do not count. The inputs that several of these tasks share are counted for
 * each; when more is asked for than the worker has, its load counts as it is.
 */
function judgeWithoutAsked(scope: KernelScope, victim: WorkerState): void {
  const { occupancyS, inFlightS } = victim;
  const leftS = occupancyS + inFlightS;
  checkIdleSaturated(scope, victim, leftS < 0 ? occupancyS : leftS);
}

/** O(tasks that are answered for). */
export function onStealResponse(scope: KernelScope, response: StealResponse): void {
  const worker = scope.cluster.workers.get(response.worker);
  if (worker === undefined) return;
  const { keys, runIds, states } = response;
  const outcomes = new Map<Outcome, string[]>();
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index] as string;
    const task = scope.cluster.tasks.get(key);
    // An answer about another assignment, or from another worker than it is on, has no effect.
    const isStale = task?.processingOn !== worker || task.runId !== runIds[index];
    const outcome = isStale ? 'stale' : settleSteal(scope, task, states[index] ?? '');
    const others = outcomes.get(outcome);
    if (others === undefined) outcomes.set(outcome, [key]);
    else if (others.length < NAMED_MAX) others.push(key);
  }
  scope.outbox.event(TOPIC, {
    action: 'answered',
    stimulusId: scope.stimulusId,
    worker: worker.address,
    count: keys.length,
    ...Object.fromEntries(outcomes),
  });
}

type Outcome = 'moved' | 'refused' | 'rescheduled' | 'stale';

function settleSteal(scope: KernelScope, task: TaskState, state: string): Outcome {
  const { cluster } = scope;
  const { steal } = task;
  if (BEGUN.has(state)) {
    refuseSteal(cluster, task);
    if (steal === undefined) return 'refused';
    checkIdleSaturated(scope, steal.thief);
    checkIdleSaturated(scope, steal.victim);
    return 'refused';
  }
  const isAsked = steal?.state === 'asked';
  if (isAsked && GIVEN_UP.has(state) && canTake(scope, task, steal.victim, steal.thief)) {
    stepToWorker(scope, task, steal.thief);
    rememberSteal(task, steal);
    return 'moved';
  }
  // The victim will not compute it any more, so it is placed anew.
  scope.recommend(task, 'released');
  return 'rescheduled';
}

function mayAsk(
  scope: KernelScope,
  task: TaskState,
  victim: WorkerState,
  thief: WorkerState,
): boolean {
  if (thief === victim || victim.longRunning.has(task)) return false;
  const isFree = task.steal === undefined || task.steal.state === 'moved';
  return isFree && canTake(scope, task, victim, thief);
}

/** The thief is registered and running, suits the task by restrictions and rules, and has memory for its inputs. */
function canTake(
  scope: KernelScope,
  task: TaskState,
  victim: WorkerState,
  thief: WorkerState,
): boolean {
  const { cluster } = scope;
  if (cluster.workers.get(thief.address) !== thief || thief.status !== 'running') return false;
  return cluster.suits(task, thief, victim) !== 'no' && fitsInto(scope, task, thief);
}
