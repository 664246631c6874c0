import type { TaskState } from '../state/task.ts';
import type { TaskStateName } from '../state/task-state-name.ts';

/** Something that was recommended; reused. */
interface LogEntry {
  task: TaskState;
  target: TaskStateName;
}

/**
 * What should happen next: "move this task to that state". The newest is taken first; a task that is
 * recommended again gets the new target and keeps its place (Dask's `popitem` on a dictionary).
 *
 * It also remembers what was recommended since a mark, for the story.
 */
export class RecommendationStack {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  private readonly log: LogEntry[] = [];
  private logLength = 0;
  /** Whether a step is going on; what is recommended between two steps belongs to none. */
  private isMarked = false;
  /** Target of the recommendation that was popped last. */
  poppedTarget: TaskStateName = 'released';

  recommend(task: TaskState, target: TaskStateName): void {
    if (this.isMarked) this.write(task, target);
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /** Takes a recommendation back. No-op when there is none. */
  withdraw(task: TaskState): void {
    if (task.pendingIndex < 0) return;
    this.tasks[task.pendingIndex] = undefined;
    task.pendingIndex = -1;
  }

  /** Takes the newest recommendation: its task, with the target in {@link poppedTarget}. */
  pop(): TaskState | undefined {
    while (this.tasks.length > 0) {
      const task = this.tasks.pop();
      const target = this.targets.pop() as TaskStateName;
      if (task === undefined) continue;
      task.pendingIndex = -1;
      this.poppedTarget = target;
      return task;
    }
    return undefined;
  }

  /** Start of a step: what is recommended from here on belongs to it. */
  mark(): number {
    this.isMarked = true;
    return this.logLength;
  }

  /** What the step that began at the mark recommends for this task, if anything. */
  since(mark: number, task: TaskState): TaskStateName | undefined {
    for (let index = this.logLength - 1; index >= mark; index--) {
      const entry = this.log[index];
      if (entry?.task === task) return entry.target;
    }
    return undefined;
  }

  /** Writes keys and targets since the mark into a flat array that is reused. Returns its length. */
  copySince(mark: number, flat: string[]): number {
    let length = 0;
    for (let index = mark; index < this.logLength; index++) {
      const entry = this.log[index] as LogEntry;
      flat[length++] = entry.task.key;
      flat[length++] = entry.target;
    }
    return length;
  }

  /** Forgets the marks; between two steps. */
  resetMarks(): void {
    this.logLength = 0;
    this.isMarked = false;
  }

  private write(task: TaskState, target: TaskStateName): void {
    const entry = this.log[this.logLength++];
    if (entry === undefined) {
      this.log.push({ task, target });
      return;
    }
    entry.task = task;
    entry.target = target;
  }
}
