/** What workers report about tasks. Source: Dask's `stimulus_task_finished` and others. */
import type {
  LongRunning,
  Reschedule,
  RunsOver,
  TaskErred,
  TaskFinished,
} from '../../messages/stimulus.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { addReplica, addToLongRunning, learnDuration } from '../../state/relations.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { checkIdleSaturated } from '../placement/occupancy.ts';
import type { KernelScope } from '../scope.ts';
import { endRun } from '../transitions/task-effects.ts';
import { transition } from '../transitions/transition-loop.ts';

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
  const isFromHere = task.processingOn?.address === report.worker;
  if (task.runId !== report.runId || !isFromHere) {
    if (isFromHere) scope.recommend(task, 'released');
  } else if (task.retries > 0) {
    task.retries--;
    scope.recommend(task, 'waiting');
  } else {
    const { worker, failure, timings } = report;
    transition(scope, task, 'erred', {
      worker,
      failure,
      cause: task.key,
      ...(timings === undefined ? {} : { timings }),
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

/** Threads are free again that runs occupied which were taken back. Unknown ids are passed over. */
export function onRunsOver(scope: KernelScope, report: RunsOver): void {
  const worker = scope.cluster.workers.get(report.worker);
  if (worker === undefined) return;
  for (const runId of report.runIds) endRun(scope.cluster, worker, runId);
  scope.hasFreedWorker = true;
  checkIdleSaturated(scope, worker);
}

/** A thread is free again although the task continues. */
export function onLongRunning(scope: KernelScope, report: LongRunning): void {
  const task = scope.cluster.tasks.get(report.key);
  const worker = task?.processingOn;
  if (task === undefined || worker?.address !== report.worker) return;
  if (task.runId !== report.runId) return;
  if (report.computeDurationS !== undefined) {
    learnDuration(scope.cluster, task.prefix, report.computeDurationS);
  }
  addToLongRunning(scope.cluster, task, worker);
  checkIdleSaturated(scope, worker);
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
