import type { TaskState } from '../../state/task.ts';
import type { KernelScope } from '../scope.ts';

/**
 * A failed dependency of a failed task starts again. The task follows with the last of them: before
 * that it would wait for one that may never start.
 */
export function recover(scope: KernelScope, task: TaskState): void {
  if (task.dependencies.some((dependency) => dependency.state === 'erred')) blameAnother(task);
  else scope.recommend(task, 'waiting');
}

/**
 * What a task was failed by is being computed again while another failure still holds it back: that
 * one is to blame from here on, for the task and for what failed with it. O(failed descendants).
 */
export function blameAnother(start: TaskState): void {
  const stack = [start];
  for (let task = stack.pop(); task !== undefined; task = stack.pop()) {
    if (task.state !== 'erred' || hasLiveBlame(task)) continue;
    const other = task.dependencies.find(hasLiveBlame);
    // Without one, its dependencies are about to start again and take it along.
    if (other === undefined) continue;
    task.exceptionBlame = other.exceptionBlame;
    for (const dependent of task.dependents) stack.push(dependent);
  }
}

function hasLiveBlame({ state, exceptionBlame }: TaskState): boolean {
  if (state !== 'erred' || exceptionBlame?.failure === undefined) return false;
  return !exceptionBlame.isFailureOver;
}
