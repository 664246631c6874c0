import type { TaskState } from '../../state/task.ts';
import type { TaskStateName } from '../../state/task-state-name.ts';

/** Moves a task on to the recommended state. Made once, so that a recommendation costs no closure. */
export type Follow<Scope> = (scope: Scope, task: TaskState, target: TaskStateName) => void;

/**
 * Tasks that are not needed, whose release a long stimulus has deferred to later ones, the newest
 * first. Meanwhile they keep their state: results are held, and tasks that were sent to workers are
 * computed. A task that is needed again when its turn comes is kept.
 */
export class DeferredReleases {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** A field, because it is read after each stimulus. */
  isEmpty = true;
  /** Where those begin that came in the order in which they would have been followed. */
  private unturned = 0;

  has(task: TaskState): boolean {
    return isDeferred(task) && this.tasks[task.deferredIndex] === task;
  }

  /** The task comes after those that were left before it and since the last {@link turn}. */
  add(task: TaskState, target: TaskStateName): void {
    task.startIndex = -1;
    task.deferredIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
    this.isEmpty = false;
  }

  /** What was left first from now on, or since the last time, comes first. O(what was left since). */
  turn(): void {
    const { tasks, targets, unturned } = this;
    this.unturned = tasks.length;
    if (tasks.length - unturned < 2) return;
    const newest = tasks.splice(unturned);
    const newTargets = targets.splice(unturned);
    for (let index = newest.length - 1; index >= 0; index--) {
      const task = newest[index];
      if (task !== undefined) this.add(task, newTargets[index] as TaskStateName);
    }
    this.unturned = tasks.length;
  }

  retarget(task: TaskState, target: TaskStateName): void {
    this.targets[task.deferredIndex] = target;
  }

  /** The task is needed again. No-op when its release was not deferred. */
  keep(task: TaskState): void {
    if (isDeferred(task)) this.remove(task);
  }

  clear(): void {
    for (const task of this.tasks) if (task !== undefined) task.deferredIndex = -1;
    this.tasks.length = 0;
    this.trim();
    this.targets.length = 0;
  }

  /** Takes a task out. */
  remove(task: TaskState): void {
    this.tasks[task.deferredIndex] = undefined;
    task.deferredIndex = -1;
    this.trim();
  }

  /** Takes the next task and follows what was recommended for it. Returns false when there is none. */
  followNext<Scope>(scope: Scope, follow: Follow<Scope>): boolean {
    const task = this.tasks.pop();
    if (task === undefined) return false;
    const target = this.targets.pop() as TaskStateName;
    task.deferredIndex = -1;
    this.trim();
    follow(scope, task, target);
    return true;
  }

  /** The last one is always a task. */
  private trim(): void {
    const { tasks, targets } = this;
    while (tasks.length > 0 && tasks[tasks.length - 1] === undefined) {
      tasks.pop();
      targets.pop();
    }
    this.isEmpty = tasks.length === 0;
    this.unturned = Math.min(this.unturned, tasks.length);
  }
}

/** Whether the task is released at a later stimulus, unless it is needed by then. */
export function isDeferred({ deferredIndex }: TaskState): boolean {
  return deferredIndex >= 0;
}

/** Whether the key stands for nothing any more: the task is left, and all that is missing is a last step. */
export function isAllButForgotten(task: TaskState): boolean {
  return (
    isDeferred(task) && task.state === 'released' && task.dependentCount === 0 && !task.isNeeded
  );
}
