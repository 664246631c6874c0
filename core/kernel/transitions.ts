import type { TransitionDetails } from '../api/hooks.ts';
import { LOST_INPUT } from '../messages/to-client.ts';
import {
  learnDuration,
  removeFromProcessing,
  setNbytes,
  setTaskState,
  startWaiting,
} from '../state/relations.ts';
import { ByState, type TaskStateName } from '../state/state-names.ts';
import type { TaskLimit } from '../state/task-limits.ts';
import { NO_TASKS, type TaskState, type WorkerState } from '../state/task.ts';
import { secondsText } from '../util/units.ts';
import { outOf } from '../util/values.ts';
import { isRelease, targetOfSuperfluous, type Work } from './agenda.ts';
import { assignToWorker, reassign } from './assignment.ts';
import { checkIdleSaturated, recountSlots } from './occupancy.ts';
import { isRootish, placeParked, placeQueued, placeTask } from './placement.ts';
import { invariantError, schedulerFailure } from './ports.ts';
import { enqueue, leaveQueue, leaveUnrunnable, noteRefusal, park } from './queues.ts';
import type { KernelScope } from './scope.ts';
import {
  addToMemory,
  becomeInactive,
  blameAnother,
  blamesWhatHoldsItBack,
  dropFireAndForget,
  erredDependency,
  firstFailure,
  freeReplicas,
  nothingToBlame,
  propagateErred,
  propagateForgotten,
  propagateReleased,
  recover,
  removeKey,
  reportErred,
  sendFreeKeys,
  takeBackRun,
} from './task-effects.ts';
import { checkReady } from './validate.ts';

const NO_DETAILS: TransitionDetails = Object.freeze({});

/** Follows the recommendations, the newest first, until none is left or the rest can come later. */
export function settle(scope: KernelScope): void {
  const { recommendations, story } = scope;
  story.endStep();
  for (let task = recommendations.take(); task !== undefined; task = recommendations.take()) {
    follow(scope, task, recommendations.taken);
  }
  if (scope.present?.hasUnturned === true) scope.present.turn();
}

function follow(scope: KernelScope, task: TaskState, target: TaskStateName): void {
  if (target === 'erred') task.blame ??= firstFailure(task);
  if (scope.recommendations.wasLeft(task)) {
    transition(scope, task, task.isNeeded ? target : targetOfSuperfluous(task, target));
  } else if (!scope.leaves(task, target)) transition(scope, task, target);
  scope.story.endStep();
}

/** Releases tasks that started and turned out not to be needed, when nothing is left that may need them. */
export function settleUnproven(scope: KernelScope): void {
  const { unproven } = scope;
  if (unproven.length === 0 || scope.hasLeft) return;
  for (let task = unproven.pop(); task !== undefined; task = unproven.pop()) {
    if (task.isNeeded || !(task.isActive || task.state === 'memory')) continue;
    scope.recommendRelease(task, 'released');
    settle(scope);
  }
  // An array that was emptied by `pop` keeps its memory, which a large graph has filled.
  unproven.length = 0;
}

/** Does as much of the agenda as one stimulus may: the works take turns, and each begins with what it has left. */
export function onContinue(scope: KernelScope): void {
  const { agenda } = scope;
  for (let turns = agenda.length; turns > 0 && !scope.isSliceOver; turns--) {
    const work = agenda.shift() as Work;
    agenda.push(work);
    if (takeTurn(scope, work)) break;
  }
  // What is queued comes after what starts with the same stimulus.
  scope.holdsQueue ||= agenda.some(startsNext);
}

/** Returns whether the handler ran: it pauses by its own measure. */
function takeTurn(scope: KernelScope, work: Work): boolean {
  while (followLeft(scope, work)) if (scope.isSliceOver) return false;
  if (work.rest === undefined || !work.isReady()) return false;
  scope.continueWork(work);
  work.advance();
  return true;
}

function startsNext(work: Work): boolean {
  const { next } = work;
  return next !== undefined && !isRelease(work.targetOf(next));
}

/** Follows what is left of releases, ends what must not stay undone, and drops everything else. */
export function clearAgenda(scope: KernelScope): void {
  for (const work of scope.agenda) {
    while (work.mustEnd && work.rest !== undefined) {
      scope.continueWork(work);
      work.advance();
    }
    work.rest = undefined;
    while (followLeft(scope, work));
  }
}

/** Follows the next recommendation that the work has left. Returns false when there is none. */
function followLeft(scope: KernelScope, work: Work): boolean {
  const task = work.next;
  if (task === undefined) return false;
  scope.continueWork(work);
  const next = nextOf(task, work.remove(task));
  if (next !== undefined) transition(scope, task, next);
  settle(scope);
  return true;
}

/** The next state of a task that was left, by the state that it has by now. */
function nextOf(task: TaskState, target: TaskStateName): TaskStateName | undefined {
  const { state } = task;
  if (isRelease(target) && !task.isNeeded) {
    // A failure stays known as long as something depends on it.
    if (state === 'erred' && task.dependentCount > 0) return undefined;
    return targetOfSuperfluous(task, target);
  }
  if (state === 'erred') {
    // It may have been given up and wanted again since it was to start again.
    if (target !== 'waiting' && blamesWhatHoldsItBack(task)) return undefined;
    if (erredDependency(task) === undefined) return 'waiting';
    // It follows with the last of them: before that it would wait for one that may never start.
    blameAnother(task);
    return undefined;
  }
  const isOpen = state === 'waiting' || (state === 'released' && !isRelease(target));
  if (!isOpen) return undefined;
  const blame = firstFailure(task);
  if (blame !== undefined) {
    task.blame = blame;
    return 'erred';
  }
  if (state === 'waiting') return task.missingDependencyCount === 0 ? 'processing' : undefined;
  return target === 'waiting' || task.isNeeded ? 'waiting' : undefined;
}

/**
 * Moves one task one step, through `released` where there is no direct way. Nothing happens when it
 * is there already or is forgotten.
 *
 * @throws YardmasterError `ERR_TRANSITION` when there is no way at all; carries the task's story
 */
export function transition(
  scope: KernelScope,
  task: TaskState,
  finish: TaskStateName,
  details: TransitionDetails = NO_DETAILS,
): void {
  const start = task.state;
  if (start === finish || start === 'forgotten') return;
  countTransition(scope, task);
  scope.stepping = task;
  const mark = scope.story.mark();
  const direct = DIRECT.of(start)?.of(finish);
  if (direct !== undefined) {
    direct(scope, task, details);
    finishStep(scope, task, start, details, mark);
    return;
  }
  if (start === 'released' || finish === 'released') throw impossible(scope, task, finish);
  // No direct way: release it first, and follow what that recommends for the task itself.
  transition(scope, task, 'released');
  scope.stepping = task;
  const target = scope.recommendations.targetOf(task) ?? finish;
  const second = DIRECT.of('released')?.of(target);
  if (second === undefined) throw impossible(scope, task, target);
  second(scope, task, NO_DETAILS);
  finishStep(scope, task, 'released', NO_DETAILS, mark);
}

/**
 * The step of a processing task to another worker, which leaves it processing: recorded and
 * observed like any other. `details.worker` is the former worker.
 */
export function stepToWorker(scope: KernelScope, task: TaskState, worker: WorkerState): void {
  countTransition(scope, task);
  scope.stepping = task;
  const mark = scope.story.mark();
  const from = reassign(scope, task, worker);
  finishStep(scope, task, 'processing', { worker: from.address }, mark);
  scope.story.endStep();
}

function finishStep(
  scope: KernelScope,
  task: TaskState,
  start: TaskStateName,
  details: TransitionDetails,
  mark: number,
): void {
  const { stimulusId } = scope;
  scope.story.record(mark, task.key, start, task.state, scope.nowMs);
  const observers = scope.ports.hooks.taskTransition;
  for (let index = 0; index < observers.length; index++) {
    observers[index]!(task, start, task.state, stimulusId, details);
  }
  scope.stepping = undefined;
}

/** Counted before the work, so that an endless loop is caught. */
function countTransition(scope: KernelScope, task: TaskState): void {
  scope.transitionCounter++;
  if (scope.transitionCounter < scope.options.transitionCounterMax) return;
  throw invariantError(
    `more than ${scope.options.transitionCounterMax} transitions: an endless loop around ${task.toString()}?`,
    { key: task.key, stimulusId: scope.stimulusId },
    scope.story.about([task.key]),
  );
}

function impossible(scope: KernelScope, task: TaskState, finish: TaskStateName): Error {
  return invariantError(
    `impossible transition of ${task.key} from ${task.state} to ${finish} (${scope.stimulusId})`,
    { key: task.key, start: task.state, finish, stimulusId: scope.stimulusId },
    scope.story.about([task.key]),
    'ERR_TRANSITION',
  );
}

/**
 * One step of a task. It changes the state, recommends what should follow, and puts messages into the
 * outbox; it never takes a second step itself. It may leave the task where it was.
 */
type Transition = (scope: KernelScope, task: TaskState, details: TransitionDetails) => void;

const NOWHERE: ReadonlySet<string> = new Set();

/**
 * The direct transitions. Any other pair goes through `released`, or is impossible.
 * Source: the transitions of Dask's scheduler.
 */
export const TRANSITIONS: Readonly<
  Record<TaskStateName, Partial<Record<TaskStateName, Transition>>>
> = {
  released: {
    waiting: releasedToWaiting,
    erred: releasedToErred,
    forgotten: releasedToForgotten,
  },
  waiting: {
    released: waitingToReleased,
    processing: waitingToProcessing,
    'no-worker': waitingToNoWorker,
    queued: waitingToQueued,
    memory: waitingToMemory,
  },
  queued: {
    released: queuedToReleased,
    processing: queuedToProcessing,
    erred: queuedToErred,
  },
  'no-worker': {
    released: noWorkerToReleased,
    processing: noWorkerToProcessing,
    erred: noWorkerToErred,
  },
  processing: {
    released: processingToReleased,
    memory: processingToMemory,
    erred: processingToErred,
  },
  memory: {
    released: memoryToReleased,
    forgotten: memoryToForgotten,
    erred: memoryToErred,
  },
  erred: {
    released: erredToReleased,
  },
  forgotten: {},
};

/** {@link TRANSITIONS} for the loop: `DIRECT.of(start)?.of(finish)`. */
const DIRECT = new ByState({
  released: new ByState(TRANSITIONS.released),
  waiting: new ByState(TRANSITIONS.waiting),
  queued: new ByState(TRANSITIONS.queued),
  'no-worker': new ByState(TRANSITIONS['no-worker']),
  processing: new ByState(TRANSITIONS.processing),
  memory: new ByState(TRANSITIONS.memory),
  erred: new ByState(TRANSITIONS.erred),
});

/** Computation begins: the task waits for its dependencies, which are computed if they have to be. */
function releasedToWaiting(scope: KernelScope, task: TaskState): void {
  if (task.hasLostDependencies) {
    scope.recommend(task, 'forgotten');
    return;
  }
  task.blame = firstFailure(task);
  if (task.blame !== undefined) {
    // Dask 2022.12 moves the task to `waiting` here, where it stays for ever.
    scope.recommend(task, 'erred');
    return;
  }
  setTaskState(task, 'waiting');
  let missing = 0;
  for (const dependency of task.dependencies) {
    if (dependency.whoHas.size > 0) continue;
    missing++;
    if (dependency.state === 'released') scope.recommend(dependency, 'waiting');
  }
  task.missingDependencyCount = missing;
  startWaiting(task);
  if (!task.isNeeded) scope.unproven.push(task);
  if (missing === 0) scope.recommend(task, 'processing');
}

/** The failure of a dependency reaches a task that is not on its way. */
function releasedToErred(scope: KernelScope, task: TaskState): void {
  task.blame ??= firstFailure(task);
  if (task.blame === undefined) throw nothingToBlame(scope, task);
  setTaskState(task, 'erred');
  for (const dependent of task.dependentsWithForgotten) failDependent(scope, dependent);
  becomeInactive(scope, task);
  reportErred(scope, task);
  dropFireAndForget(scope, task);
}

function failDependent(scope: KernelScope, dependent: TaskState): void {
  if (dependent.state === 'forgotten' || dependent.whoHas.size > 0) return;
  if (dependent.state === 'erred') {
    blameAnother(dependent);
    return;
  }
  scope.recommend(dependent, 'erred');
}

/** The task is not needed, or it can never be computed again. */
function releasedToForgotten(scope: KernelScope, task: TaskState): void {
  if (!mayBeForgotten(task)) return;
  reportCancelled(scope, task);
  propagateForgotten(scope, task);
  removeKey(scope, task);
}

/** True when nothing is lost by forgetting it, or nothing can be saved by keeping it. */
function mayBeForgotten(task: TaskState): boolean {
  if (task.runSpec === undefined || task.hasLostDependencies) return true;
  return task.whoWants.size === 0 && task.waiterCount === 0 && task.dependentCount === 0;
}

/** Clients that still want a task that is forgotten must not wait for it. */
function reportCancelled(scope: KernelScope, task: TaskState): void {
  const reason = task.hasLostDependencies
    ? LOST_INPUT
    : 'its data is lost and cannot be computed again';
  for (const intake of scope.intakes) intake.cancel([task], { reason });
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'cancelled-keys', keys: [task.key], reason });
  }
}

/** The task is not needed now; if it is after all, it starts again. */
function waitingToReleased(scope: KernelScope, task: TaskState): void {
  setTaskState(task, 'released');
  task.missingDependencyCount = 0;
  becomeInactive(scope, task);
  if (task.hasLostDependencies) scope.recommend(task, 'forgotten');
  else if (task.blame === undefined && task.isNeeded) scope.recommend(task, 'waiting');
  // Its failure needs to know its waiters.
  else if (task.blame === undefined) task.waiterCount = 0;
}

/** All inputs are there: a worker is chosen. */
function waitingToProcessing(scope: KernelScope, task: TaskState): void {
  checkReady(scope, task);
  const { limit } = task;
  if (limit?.holdsBack === true) {
    if (limit.isQueueFull && task.runId < 0) refuse(scope, task, limit);
    else scope.recommend(task, 'queued');
    return;
  }
  const placement = placeTask(scope, task);
  if (typeof placement === 'string') scope.recommend(task, placement);
  else assignToWorker(scope, task, placement);
}

/** As many wait for the limit as may, and the task has never been sent to a worker. */
function refuse(scope: KernelScope, task: TaskState, limit: TaskLimit): void {
  const { key } = task;
  const { name, max, runningCount, waitingCount } = limit;
  const retryAfterMs = Math.ceil(limit.startsInMs(1000 * task.prefix.durationEstimateS));
  const when = retryAfterMs > 0 ? `in about ${secondsText(retryAfterMs / 1000)}` : 'later';
  const failure = schedulerFailure(
    'ERR_QUEUE_FULL',
    `${key} was refused: ${waitingCount} tasks wait for the limit ${name} already, and ${outOf(runningCount, max)} run. ` +
      `Come back ${when}, or raise maxQueued.`,
    { key, limit: name, queuedCount: waitingCount, runningCount, max, retryAfterMs },
  );
  scope.cluster.limits.noteRefusal(limit);
  scope.blame(task, failure);
  scope.recommend(task, 'erred');
}

/** No acceptable worker is running, the policy rejects all of them now, or a rule holds the task back. */
function waitingToNoWorker(scope: KernelScope, task: TaskState): void {
  checkReady(scope, task);
  const { limit } = task;
  if (limit?.isFullWithoutWorker === true && task.runId < 0) refuse(scope, task, limit);
  else park(scope, task);
}

/** A root-ish task is held back until a worker has an open slot, one with a limit until there is room. */
function waitingToQueued(scope: KernelScope, task: TaskState): void {
  checkReady(scope, task);
  enqueue(scope, task);
}

/**
 * A result arrives for a task that was considered lost. No-op: the worker that computed it has been
 * asked to free it, so it must be computed again.
 */
function waitingToMemory(): void {
  return;
}

function noWorkerToReleased(scope: KernelScope, task: TaskState): void {
  leaveUnrunnable(scope, task);
  propagateReleased(scope, task);
}

/**
 * A suitable worker came, or one has less to do. The task stays when the policy or a rule refuses it again, and is queued
 * when its limit has no room. It needs no open slot, even if its group has become root-ish, because slots are offered to
 * queued tasks; but one that a rule held back starts as if it were new.
 */
function noWorkerToProcessing(scope: KernelScope, task: TaskState): void {
  if (task.limit?.holdsBack === true) {
    leaveUnrunnable(scope, task);
    enqueue(scope, task);
    return;
  }
  const isHeld = scope.rules.isHeld(task);
  if (!isHeld && scope.ruled.has(task) && isRootish(scope, task)) {
    scope.recommend(task, 'released');
    return;
  }
  const worker = isHeld ? undefined : placeParked(scope, task);
  if (worker === undefined) {
    noteRefusal(scope, task);
    return;
  }
  leaveUnrunnable(scope, task);
  assignToWorker(scope, task, worker);
}

/** No suitable worker came in time. */
function noWorkerToErred(scope: KernelScope, task: TaskState, details: TransitionDetails): void {
  leaveUnrunnable(scope, task);
  propagateErred(scope, task, details);
}

function queuedToReleased(scope: KernelScope, task: TaskState): void {
  leaveQueue(scope, task);
  propagateReleased(scope, task);
}

/**
 * A worker has an open slot, or the limit of the task has room. A task without a limit stays queued when the policy finds
 * no slot after all; one with a limit, or one that a rule holds back, must not stand in the way of others.
 */
function queuedToProcessing(scope: KernelScope, task: TaskState): void {
  if (task.limit !== undefined || scope.rules.isHeld(task)) {
    const placement = placeTask(scope, task);
    leaveQueue(scope, task);
    if (typeof placement === 'string') park(scope, task);
    else assignToWorker(scope, task, placement);
    return;
  }
  const worker = placeQueued(scope, task);
  if (worker === undefined) return;
  leaveQueue(scope, task);
  assignToWorker(scope, task, worker);
}

/** No worker came in time. */
function queuedToErred(scope: KernelScope, task: TaskState, details: TransitionDetails): void {
  leaveQueue(scope, task);
  propagateErred(scope, task, details);
}

function processingToMemory(scope: KernelScope, task: TaskState, details: TransitionDetails): void {
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
      learnDuration(scope.cluster, task.prefix, worker, seconds);
      const changed = task.prefix.learn(seconds, details.nbytes ?? 0);
      if (changed !== 'none') recountSlots(scope, changed === 'these' ? task.prefix : undefined);
    }
  }
  if (details.nbytes !== undefined) setNbytes(scope.cluster, task, details.nbytes);
  exitProcessing(scope, task);
  addToMemory(scope, task, worker, details.type, details.timings);
}

/** The task is taken back from its worker. */
function processingToReleased(scope: KernelScope, task: TaskState): void {
  task.processingOn?.actors.delete(task);
  takeBack(scope, task);
  propagateReleased(scope, task);
}

/** The task failed on its worker, its worker died once too often, or an actor that it uses is lost. */
function processingToErred(scope: KernelScope, task: TaskState, details: TransitionDetails): void {
  task.processingOn?.actors.delete(task);
  // A worker that did not report the failure itself continues with the task until it is notified.
  if (details.worker === undefined && task.exceptionBlame !== task) takeBack(scope, task);
  else exitProcessing(scope, task);
  propagateErred(scope, task, details);
}

/** The task leaves its worker, which gives up the run. */
function takeBack(scope: KernelScope, task: TaskState): void {
  const isSeceded = task.processingOn?.longRunning.has(task) === true;
  const worker = exitProcessing(scope, task);
  if (worker !== undefined) takeBackRun(scope, task, worker, isSeceded);
}

/** The task leaves its worker. Returns the worker unless it is not registered any more. */
function exitProcessing(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const worker = removeFromProcessing(scope.cluster, task);
  scope.hasFreedWorker = true;
  scope.changedWorker = worker;
  if (!scope.cluster.isRegistered(worker)) return undefined;
  worker.occupyAll(task.restrictions?.resources, -1);
  checkIdleSaturated(scope, worker);
  return worker;
}

/** The result is released, or its last copy is gone. If it is needed, it is computed again. */
function memoryToReleased(scope: KernelScope, task: TaskState): void {
  if (task.isActor && task.whoWants.size > 0) {
    scope.recommend(task, 'erred');
    return;
  }
  if (task.runSpec === undefined && task.waiterCount > 0) {
    // Data that cannot be computed again is never released under its waiters, only lost.
    scope.recommend(task, 'forgotten');
    return;
  }
  dropActor(task);
  task.fingerprint = undefined;
  freeReplicas(scope, task);
  setTaskState(task, 'released');
  if (task.runSpec === undefined || task.hasLostDependencies) scope.recommend(task, 'forgotten');
  else if (task.isNeeded) scope.recommend(task, 'waiting');
  for (const dependent of task.waiterCount === 0 ? NO_TASKS : task.dependentsWithForgotten) {
    if (dependent.state !== 'waiting' && dependent.isActive) scope.recommend(dependent, 'waiting');
  }
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'lost-data', key: task.key });
  }
}

/** The worker with an actor is gone, and its state with it. Other results are computed again. */
function memoryToErred(scope: KernelScope, task: TaskState, details: TransitionDetails): void {
  if (!task.isActor) {
    memoryToReleased(scope, task);
    return;
  }
  dropActor(task);
  freeReplicas(scope, task);
  const failure =
    details.failure ??
    schedulerFailure(
      'ERR_ACTOR_LOST',
      `the worker that held the actor ${task.key} is gone, and the state of the actor with it; retry makes it anew`,
      { key: task.key },
    );
  scope.blame(task, failure);
  for (const dependent of task.dependents) {
    // What failed before keeps its blame, which those that failed with it share.
    if (dependent.whoHas.size === 0 && dependent.state !== 'erred')
      scope.recommend(dependent, 'erred');
  }
  const { worker } = details;
  propagateErred(scope, task, worker === undefined ? {} : { worker });
}

/** The result is not needed, or it is pure data that is gone. */
function memoryToForgotten(scope: KernelScope, task: TaskState): void {
  if (!mayBeForgotten(task)) return;
  dropActor(task);
  reportCancelled(scope, task);
  propagateForgotten(scope, task);
  removeKey(scope, task);
}

function dropActor(task: TaskState): void {
  if (!task.isActor) return;
  for (const worker of task.whoHas.items) worker.actors.delete(task);
}

/**
 * The failure is forgotten, here and on the workers; tasks that failed because of it may continue.
 */
function erredToReleased(scope: KernelScope, task: TaskState): void {
  const { erredOn } = task;
  task.blame = undefined;
  task.erredOn = NOWHERE;
  setTaskState(task, 'released');
  recover(scope, task.dependentsWithForgotten);
  for (const address of erredOn) {
    const worker = scope.cluster.workers.get(address);
    if (worker !== undefined) sendFreeKeys(scope, task, worker);
  }
  for (const client of task.whoWants.items) {
    scope.outbox.toClient(client, { op: 'task-retried', key: task.key });
  }
}
