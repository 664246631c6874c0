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
    if (task.state !== 'erred' || blamesWhatHoldsItBack(task)) continue;
    const other = task.dependencies.find(({ state }) => state === 'erred');
    // Without one, its dependencies are about to start again and take it along.
    if (other === undefined) continue;
    task.blame = other.blame;
    for (const dependent of task.dependents) stack.push(dependent);
  }
}

/** Whether a failed task failed itself, or with a dependency that is failed for the same reason. */
export function blamesWhatHoldsItBack({ blame, failure, dependencies }: TaskState): boolean {
  if (failure !== undefined) return true;
  return dependencies.some((dependency) => {
    return dependency.state === 'erred' && dependency.blame === blame;
  });
}
