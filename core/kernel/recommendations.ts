import type { TaskStateName } from '../state/state-names.ts';
import type { TaskState } from '../state/task.ts';
import { isLeft, isRelease, LeftRecommendations } from './agenda.ts';

/**
 * Recommendations to move a task to a state. The newest is taken first; a task that is
 * recommended again gets the new target and keeps its place (Dask's `popitem` on a dictionary).
 */
export class RecommendationStack {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** The recommendations that long stimuli have left to later ones. */
  readonly left = new LeftRecommendations();
  /** Tasks whose release was left, and that the present stimulus has to do with: they are followed now. */
  private readonly takenUp = new Set<TaskState>();

  recommend(task: TaskState, target: TaskStateName): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    if (isLeft(task) && isRelease(this.left.remove(task))) this.takenUp.add(task);
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /**
   * Takes a recommendation back; the release of what is not needed stays left. No-op when there is none.
   * @returns whether the release of the task was left, and has been taken up
   */
  withdraw(task: TaskState): boolean {
    if (isLeft(task)) {
      if (!isRelease(this.left.targetOf(task))) this.left.remove(task);
      return false;
    }
    if (task.pendingIndex >= 0) this.tasks[task.pendingIndex] = undefined;
    task.pendingIndex = -1;
    return this.takenUp.delete(task);
  }

  /** True when the present stimulus has nothing more to follow. */
  get isEmpty(): boolean {
    return this.tasks.length === 0;
  }

  /** True when the release of the task that was popped was left by an earlier stimulus. */
  wasLeft(task: TaskState): boolean {
    return this.takenUp.size > 0 && this.takenUp.delete(task);
  }

  /** Takes the newest recommendation and follows it. Returns false when there is none. */
  followNext<Scope>(scope: Scope, follow: Follow<Scope>): boolean {
    while (this.tasks.length > 0) {
      const task = this.tasks.pop();
      const target = this.targets.pop() as TaskStateName;
      if (task === undefined) continue;
      task.pendingIndex = -1;
      follow(scope, task, target);
      return true;
    }
    return false;
  }

  /** Drops everything that is recommended, also for later stimuli. O(tasks that are recommended). */
  clear(): void {
    for (const task of this.tasks) if (task !== undefined) task.pendingIndex = -1;
    this.tasks.length = 0;
    this.targets.length = 0;
    this.takenUp.clear();
    this.left.clear();
  }

  /** The present recommendation for this task, if there is one. */
  targetOf(task: TaskState): TaskStateName | undefined {
    return task.pendingIndex < 0 ? undefined : this.targets[task.pendingIndex];
  }
}

/** Moves a task on to the recommended state. Made once, so that a recommendation costs no closure. */
type Follow<Scope> = (scope: Scope, task: TaskState, target: TaskStateName) => void;
