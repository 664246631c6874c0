import type { TransitionDetails } from '../api/hooks.ts';
import type { TaskState } from '../state/task.ts';
import type { TaskStateName } from '../state/task-state-name.ts';
import type { WorkerState } from '../state/worker.ts';
import { reassign } from './dispatch.ts';
import { invariantError } from './errors.ts';
import type { KernelScope } from './scope.ts';
import { directTransition } from './transition-table.ts';

const NO_DETAILS: TransitionDetails = Object.freeze({});

/** Follows the recommendations, the newest first, until none is left. */
export function settle(scope: KernelScope): void {
  const { recommendations, story } = scope;
  story.endStep();
  for (let task = recommendations.pop(); task !== undefined; task = recommendations.pop()) {
    transition(scope, task, recommendations.poppedTarget);
    story.endStep();
  }
}

/** Gives up what started in this stimulus and turned out to be needed by nobody. */
export function settleUnproven(scope: KernelScope): void {
  const { unproven } = scope;
  for (let task = unproven.pop(); task !== undefined; task = unproven.pop()) {
    if (!task.isInPlay || task.isNeeded) continue;
    scope.recommend(task, 'released');
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
  const mark = scope.story.mark();
  const direct = directTransition(start, finish);
  if (direct !== undefined) {
    direct(scope, task, details);
    finishStep(scope, task, start, details, mark);
    return;
  }
  if (start === 'released' || finish === 'released') throw impossible(scope, task, finish);
  // No direct way: release it first, and follow what that recommends for the task itself.
  transition(scope, task, 'released');
  const target = scope.recommendations.targetOf(task) ?? finish;
  const second = directTransition('released', target);
  if (second === undefined) throw impossible(scope, task, target);
  second(scope, task, NO_DETAILS);
  finishStep(scope, task, 'released', NO_DETAILS, mark);
}

/**
 * The step of a processing task to another worker, which leaves it processing: recorded and told like
 * any other. `details.worker` is the one that has given it up.
 */
export function stepToWorker(scope: KernelScope, task: TaskState, worker: WorkerState): void {
  countTransition(scope, task);
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
