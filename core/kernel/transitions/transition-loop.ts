import type { TransitionDetails } from '../../api/hooks.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import type { TaskStateName } from '../../state/task-state-name.ts';
import { reassign } from './assignment.ts';
import { invariantError } from '../errors.ts';
import type { KernelScope } from '../scope.ts';
import { DIRECT } from './transition-table.ts';

const NO_DETAILS: TransitionDetails = Object.freeze({});

/** Follows the recommendations, the newest first, until none is left. */
export function settle(scope: KernelScope): void {
  const { recommendations, story } = scope;
  story.endStep();
  while (recommendations.followNext(scope, follow));
  if (!recommendations.deferredReleases.isEmpty) recommendations.deferredReleases.turn();
}

function follow(scope: KernelScope, task: TaskState, target: TaskStateName): void {
  const { recommendations } = scope;
  if (recommendations.wasLeft(task)) {
    transition(scope, task, task.isNeeded ? target : targetOfSuperfluous(task, target));
  } else if (scope.isSliceOver && canBeLeft(scope, task, target)) {
    recommendations.deferredReleases.add(task, target);
    return;
  } else transition(scope, task, target);
  scope.story.endStep();
}

/** Visits dependents that earlier stimuli have deferred, each with all that follows, as long as the slice lasts. */
export function settleVisits(scope: KernelScope): void {
  const { visits, options } = scope;
  // Visits of dependents that have moved meanwhile cause no transition.
  for (let count = 0; count < options.sliceTransitions && !scope.isSliceOver; count++) {
    if (!visits.visitNext(scope)) return;
    settle(scope);
  }
}

/** Follows what earlier stimuli have deferred, the newest first, as long as the slice lasts. */
export function settleDeferredReleases(scope: KernelScope): void {
  const { deferredReleases } = scope.recommendations;
  while (!scope.isSliceOver && deferredReleases.followNext(scope, release));
}

function release(scope: KernelScope, task: TaskState, target: TaskStateName): void {
  if (task.isNeeded || isFailureOfOthers(task)) return;
  transition(scope, task, targetOfSuperfluous(task, target));
  settle(scope);
}

/** Releases tasks that started in this stimulus and turned out not to be needed. */
export function settleUnproven(scope: KernelScope): void {
  const { unproven } = scope;
  for (let task = unproven.pop(); task !== undefined; task = unproven.pop()) {
    if (!task.isActive || task.isNeeded) continue;
    scope.deferRelease(task, 'released');
    settle(scope);
  }
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

/**
 * Whether the step can be deferred: it only releases the task, and the state stays consistent
 * without it. This is not so when its worker, its copies or its inputs are gone.
 */
function canBeLeft({ cluster }: KernelScope, task: TaskState, target: TaskStateName): boolean {
  if (target !== 'released' && target !== 'forgotten') return false;
  if (task.isNeeded || task.hasLostDependencies || task.runSpec === undefined) return false;
  const { state } = task;
  if (state === 'memory') return task.whoHas.size > 0;
  if (state === 'erred') return true;
  if (task.blame !== undefined) return false;
  if (state === 'waiting') return task.missingDependencyCount > 0;
  return task.processingOn === undefined || cluster.isRegistered(task.processingOn);
}

/** Where a task that was left goes, when so much is recommended for it: it does not start any more. */
function targetOfSuperfluous(task: TaskState, target: TaskStateName): TaskStateName {
  if (task.dependentCount === 0 || task.hasLostDependencies) return 'forgotten';
  if (target === 'erred' || task.state === 'erred' || task.state === 'released') return target;
  return 'released';
}

/** A failure stays known as long as something depends on it. */
function isFailureOfOthers({ state, dependentCount }: TaskState): boolean {
  return state === 'erred' && dependentCount > 0;
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
