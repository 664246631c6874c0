import type { TransitionDetails } from '../../api/hooks.ts';
import { learnDuration, removeFromProcessing, setNbytes } from '../../state/relations.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { invariantError } from '../errors.ts';
import { checkIdleSaturated, recountSlots } from '../placement/occupancy.ts';
import { addToMemory, propagateErred, propagateReleased, takeBackRun } from './task-effects.ts';
import type { KernelScope } from '../scope.ts';

/** The worker computed it. */
export function processingToMemory(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  const worker = task.processingOn;
  if (worker === undefined || worker.address !== details.worker) {
    throw invariantError(
      `${task.key} was finished by ${details.worker ?? 'no worker'}, but is processing on ${worker?.address ?? 'nothing'}`,
      { key: task.key, worker: details.worker },
      scope.story.about([task.key]),
    );
  }
  for (const timing of details.timings ?? []) {
    task.group.addTiming(timing);
    if (timing.action === 'compute') {
      const seconds = timing.stopS - timing.startS;
      learnDuration(scope.cluster, task.prefix, seconds);
      const isChanged = task.prefix.sharing.learn(seconds, details.nbytes ?? 0);
      if (isChanged) recountSlots(scope, task.prefix);
    }
  }
  if (details.nbytes !== undefined) setNbytes(scope.cluster, task, details.nbytes);
  exitProcessing(scope, task);
  addToMemory(scope, task, worker, details.type);
}

/** The task is taken back from its worker. */
export function processingToReleased(scope: KernelScope, task: TaskState): void {
  const worker = exitProcessing(scope, task);
  if (worker !== undefined) {
    worker.actors.delete(task);
    takeBackRun(scope, task, worker);
  }
  propagateReleased(scope, task);
}

/** The task failed on its worker, its worker died once too often, or an actor that it uses is lost. */
export function processingToErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  task.processingOn?.actors.delete(task);
  const worker = exitProcessing(scope, task);
  // A worker that did not report the failure itself continues with the task until it is notified.
  const mustCancelRun = details.worker === undefined && task.exceptionBlame !== task;
  if (mustCancelRun && worker !== undefined) takeBackRun(scope, task, worker);
  propagateErred(scope, task, details);
}

/** The task leaves its worker. Returns the worker unless it is not registered any more. */
function exitProcessing(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const worker = removeFromProcessing(scope.cluster, task);
  scope.hasFreedWorker = true;
  if (!scope.cluster.isRegistered(worker)) return undefined;
  worker.occupyAll(task.restrictions?.resources, -1);
  checkIdleSaturated(scope, worker);
  return worker;
}
