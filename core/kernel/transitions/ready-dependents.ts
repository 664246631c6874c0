/** Dependents of a result that are too many to start at once. */
import { byPriority, type TaskState } from '../../state/task.ts';
import { sortInSlices } from '../../util/sort-in-slices.ts';
import { Pace } from '../pace.ts';
import type { KernelScope } from '../scope.ts';

/** Dependents that are collected, or compared, in the time of one transition. */
const LOOKED_AT = 4;

/** From now on the dependents of the task count its result as missing, until continuations start them. */
export function startLater(scope: KernelScope, task: TaskState): void {
  scope.startingLater.push(task);
  scope.continuations.push(startInSlices(scope, task, task.dependentsWithForgotten.slice()));
}

/** @param dependents - a copy: the list may change meanwhile */
function* startInSlices(
  scope: KernelScope,
  task: TaskState,
  dependents: readonly TaskState[],
): Generator<void, void> {
  const slice = LOOKED_AT * scope.options.sliceTransitions;
  const pace = new Pace(slice);
  const waiting: TaskState[] = [];
  let isSorted = true;
  for (const dependent of dependents) {
    if (pace.isPauseDue()) yield;
    if (dependent.state !== 'waiting') continue;
    const last = waiting.at(-1);
    isSorted &&= last === undefined || byPriority(last, dependent) < 0;
    waiting.push(dependent);
  }
  const sorted = isSorted ? waiting : yield* sortInSlices(waiting, byPriority, slice);
  for (let next = 0; next < sorted.length;) {
    const end = next + Math.max(1, scope.shareOf(sorted.length - next));
    for (let index = end - 1; index >= next; index--) startIfReady(scope, sorted[index]);
    next = end;
    if (next < sorted.length) yield;
  }
  const index = scope.startingLater.indexOf(task);
  if (index >= 0) scope.startingLater.splice(index, 1);
}

/** The result may be lost again by now, and others may have come. */
function startIfReady(scope: KernelScope, task: TaskState | undefined): void {
  if (task?.state !== 'waiting') return;
  let missing = 0;
  for (const dependency of task.dependencies) if (dependency.whoHas.size === 0) missing++;
  task.missingDependencyCount = missing;
  if (missing === 0) scope.recommend(task, 'processing');
}
