import type { TaskState } from './task.ts';

/** Longer lists of dependents are swept by and by. */
const SWEPT_AT_ONCE_MAX = 10_000;
/** Dependents of a longer list that are looked at whenever one is forgotten. */
const SWEPT_PER_DROP = 8;

/** Takes the forgotten dependents off the list, when most of it is forgotten. */
export function dropForgotten(task: TaskState): void {
  const list = task.dependentsWithForgotten;
  if (list.length > SWEPT_AT_ONCE_MAX) sweepSome(task);
  else task.dependentsWithForgotten = list.filter(({ state }) => state !== 'forgotten');
}

/**
 * Moves some of the forgotten dependents behind the others, and takes them off when all have been seen. Nothing else
 * leaves the list meanwhile, nor moves up: a walk through it from its end misses nothing.
 */
function sweepSome(task: TaskState): void {
  const list = task.dependentsWithForgotten;
  const sweep = task.sweep?.list === list ? task.sweep : { list, seen: 0, kept: 0 };
  task.sweep = sweep;
  for (let count = 0; count < SWEPT_PER_DROP && sweep.seen < list.length; count++) {
    const dependent = list[sweep.seen] as TaskState;
    if (dependent.state !== 'forgotten') {
      list[sweep.seen] = list[sweep.kept] as TaskState;
      list[sweep.kept++] = dependent;
    }
    sweep.seen++;
  }
  if (sweep.seen < list.length) return;
  list.length = sweep.kept;
  task.sweep = undefined;
}
