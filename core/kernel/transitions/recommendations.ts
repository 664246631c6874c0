import type { TaskState } from '../../state/task.ts';
import type { TaskStateName } from '../../state/task-state-name.ts';
import { isDeferred, DeferredReleases, type Follow } from './deferred-releases.ts';
import type { PendingStarts } from '../graph/pending-starts.ts';

/**
 * What should happen next: "move this task to that state". The newest is taken first; a task that is
 * recommended again gets the new target and keeps its place (Dask's `popitem` on a dictionary).
 */
export class RecommendationStack {
  private readonly tasks: (TaskState | undefined)[] = [];
  private readonly targets: TaskStateName[] = [];
  /** Recommendations of a large graph that come later, while some of them are being followed. */
  line: PendingStarts | undefined;
  /** Releases that earlier stimuli have deferred. */
  readonly deferredReleases = new DeferredReleases();
  /** Of these, tasks that this stimulus has to do with: they are followed now. */
  private readonly takenUp = new Set<TaskState>();

  recommend(task: TaskState, target: TaskStateName): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    if (task.startIndex >= 0) {
      if (this.line !== undefined) {
        this.line.retarget(task, target);
        return;
      }
      task.startIndex = -1;
    } else if (isDeferred(task)) {
      this.deferredReleases.remove(task);
      this.takenUp.add(task);
    }
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /** The task is not needed. A release that was deferred before keeps its turn. */
  deferRelease(task: TaskState, target: 'released' | 'forgotten'): void {
    if (isDeferred(task)) this.deferredReleases.retarget(task, target);
    else this.recommend(task, target);
  }

  /** Takes a recommendation back. No-op when there is none. */
  withdraw(task: TaskState): void {
    if (isDeferred(task)) return;
    if (task.pendingIndex >= 0) this.tasks[task.pendingIndex] = undefined;
    task.pendingIndex = -1;
    task.startIndex = -1;
    if (this.takenUp.delete(task)) this.deferredReleases.add(task, 'released');
  }

  /** Whether the task that was popped was left by an earlier stimulus. */
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
    this.line = undefined;
    this.takenUp.clear();
    this.deferredReleases.clear();
  }

  /** What is recommended for this task now, if anything. */
  targetOf(task: TaskState): TaskStateName | undefined {
    return task.pendingIndex < 0 ? undefined : this.targets[task.pendingIndex];
  }
}
