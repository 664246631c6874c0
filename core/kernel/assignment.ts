import type { ComputeTask } from '../messages/to-worker.ts';
import {
  addToLongRunning,
  addToProcessing as linkProcessing,
  nbytesOf,
  removeFromProcessing,
  setTaskState,
} from '../state/relations.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import { EVENT_LOOP_RESOURCE } from '../util/event-loop.ts';
import { checkIdleSaturated } from './occupancy.ts';
import { schedulerFailure } from './ports.ts';
import type { KernelScope } from './scope.ts';

// Sending a task to a worker.

/** The task goes to the worker: books its load there and sends it. */
export function assignToWorker(scope: KernelScope, task: TaskState, worker: WorkerState): void {
  const { cluster } = scope;
  const isRepeated = beginRun(scope, task);
  if (task.limit !== undefined) cluster.limits.start(task.limit);
  book(scope, task, worker);
  setTaskState(task, 'processing');
  checkIdleSaturated(scope, worker);
  cluster.assignedCount++;
  if (task.isActor) worker.actors.add(task);
  send(scope, task, worker, isRepeated);
}

/** The worker runs the task already, as the run that the task has the id of: books its load there. */
export function keepRun(scope: KernelScope, task: TaskState, worker: WorkerState): void {
  const { cluster } = scope;
  book(scope, task, worker);
  setTaskState(task, 'processing');
  cluster.runs.add(task);
  checkIdleSaturated(scope, worker);
  cluster.assignedCount++;
  if (task.isActor) worker.actors.add(task);
  if (task.limit !== undefined) sendResume(scope, task, worker);
}

/** The run counts for its limit. Without effect for a run that has not asked whether it may go on. */
export function sendResume(
  { outbox, stimulusId }: KernelScope,
  { key, runId }: TaskState,
  worker: WorkerState,
): void {
  outbox.toWorker(worker, { op: 'resume-run', key, runId, stimulusId });
}

/**
 * The task, which its worker has given up, goes to another one with all that is booked for it. Both
 * are judged afterwards, when the sum over all workers is what it was. Returns the worker that had it.
 */
export function reassign(scope: KernelScope, task: TaskState, worker: WorkerState): WorkerState {
  const { cluster } = scope;
  const from = removeFromProcessing(cluster, task);
  scope.hasFreedWorker = true;
  scope.changedWorker = from;
  const isRepeated = beginRun(scope, task);
  from.occupyAll(task.restrictions?.resources, -1);
  book(scope, task, worker);
  if (from.actors.delete(task)) worker.actors.add(task);
  checkIdleSaturated(scope, worker);
  checkIdleSaturated(scope, from);
  send(scope, task, worker, isRepeated);
  return from;
}

/** A task that takes a share of an event loop is no load for the threads of the worker. */
function book({ cluster }: KernelScope, task: TaskState, worker: WorkerState): void {
  linkProcessing(cluster, task, worker);
  const resources = task.restrictions?.resources;
  if (resources === undefined) return;
  worker.occupyAll(resources, 1);
  if (resources.has(EVENT_LOOP_RESOURCE)) addToLongRunning(cluster, task, worker);
}

/**
 * Before anything is booked: so a run that was not sent is told by its number from one that was. Returns whether the task
 * may have been assigned before: also after a restart, when the journal does not say so.
 */
function beginRun(scope: KernelScope, task: TaskState): boolean {
  const isRepeated = task.runId !== -1;
  if (task.runId >= 0) task.reschedules++;
  task.runId = scope.nextRunId++;
  return isRepeated;
}

function send(scope: KernelScope, task: TaskState, worker: WorkerState, isRepeated: boolean): void {
  scope.cluster.runs.add(task);
  if (refuseOversized(scope, task, worker)) return;
  scope.outbox.toWorker(worker, computeTask(scope, task, isRepeated));
}

function computeTask(scope: KernelScope, task: TaskState, isRepeated: boolean): ComputeTask {
  const { restrictions, annotations, dependencies } = task;
  const resources = restrictions?.resources;
  const sendAlongBytes = task.whoWants.size === 0 ? 0 : scope.options.sendAlongBytes;
  // Made in one go: to copy an object and add to it costs a microsecond.
  return {
    op: 'compute-task',
    key: task.key,
    runId: task.runId,
    priority: [task.negatedUserPriority, task.generation, task.rank],
    arrival: task.arrival,
    runSpec: task.runSpec,
    dependencies: scope.locations.of(dependencies),
    durationS: task.prefix.durationEstimateS,
    stimulusId: scope.stimulusId,
    ...(sendAlongBytes === 0 ? undefined : { sendAlongBytes }),
    ...(resources === undefined ? undefined : { resources: Object.fromEntries(resources) }),
    ...(task.limit === undefined ? undefined : { limit: task.limit.name }),
    ...(task.isActor ? { actor: true } : undefined),
    ...(annotations === undefined ? undefined : { annotations }),
    ...(isRepeated ? { isRepeated } : undefined),
  };
}

/** True when the worker has memory for all inputs of the task at once, as far as that matters. */
export function fitsInto(scope: KernelScope, task: TaskState, worker: WorkerState): boolean {
  if (task.dependencies.length === 0 || !scope.options.refuseOversizedInputs) return true;
  const { memoryLimitBytes } = worker;
  return memoryLimitBytes === 0 || inputBytesOf(scope, task) <= memoryLimitBytes;
}

function inputBytesOf({ cluster }: KernelScope, { dependencies }: TaskState): number {
  let inputBytes = 0;
  for (const dependency of dependencies) inputBytes += nbytesOf(cluster, dependency);
  return inputBytes;
}

/** Inputs that can never fit make the task fail here, before they take the worker down. */
function refuseOversized(scope: KernelScope, task: TaskState, worker: WorkerState): boolean {
  if (fitsInto(scope, task, worker)) return false;
  const { memoryLimitBytes } = worker;
  const inputBytes = inputBytesOf(scope, task);
  const failure = schedulerFailure(
    'ERR_OUT_OF_MEMORY',
    `${task.key} needs ${inputBytes} bytes of inputs at once, and worker ${worker.address} has ` +
      `${memoryLimitBytes} bytes of memory in all. Make the inputs smaller, or reduce them in steps.`,
    {
      key: task.key,
      inputBytes,
      worker: worker.address,
      memoryLimitBytes,
      dependentCount: task.dependents.length,
    },
  );
  scope.blame(task, failure);
  scope.recommend(task, 'erred');
  return true;
}
