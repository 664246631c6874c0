import type { TaskState } from '../state/task.ts';
import type { TaskStateName } from '../state/task-state-name.ts';
import { NOT_PENDING, type StartLine } from './start-line.ts';

/**
 * What should happen next: "move this task to that state". The newest is taken first; a task that is
 * recommended again gets the new target and keeps its place (Dask's `popitem` on a dictionary).
 */
export class RecommendationStack {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** Target of the recommendation that was popped last. */
  poppedTarget: TaskStateName = 'released';
  /** Recommendations of a large graph that come later, while some of them are being followed. */
  line: StartLine | undefined;

  recommend(task: TaskState, target: TaskStateName): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    if (task.pendingIndex < NOT_PENDING && this.line !== undefined) {
      this.line.retarget(task, target);
      return;
    }
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /** Takes a recommendation back. No-op when there is none. */
  withdraw(task: TaskState): void {
    if (task.pendingIndex >= 0) this.tasks[task.pendingIndex] = undefined;
    task.pendingIndex = NOT_PENDING;
  }

  /** Takes the newest recommendation: its task, with the target in {@link poppedTarget}. */
  pop(): TaskState | undefined {
    while (this.tasks.length > 0) {
      const task = this.tasks.pop();
      const target = this.targets.pop() as TaskStateName;
      if (task === undefined) continue;
      task.pendingIndex = NOT_PENDING;
      this.poppedTarget = target;
      return task;
    }
    return undefined;
  }

  /** What is recommended for this task now, if anything. */
  targetOf(task: TaskState): TaskStateName | undefined {
    return task.pendingIndex < 0 ? undefined : this.targets[task.pendingIndex];
  }
}
