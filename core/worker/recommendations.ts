import type { WorkerTarget, WorkerTask } from './worker-task.ts';

/**
 * Transitions to come: the latest first; a further recommendation for the same task replaces its
 * target and keeps its turn. All operations O(1).
 */
export class Recommendations {
  private readonly tasks: (WorkerTask | undefined)[] = [];
  private readonly targets: WorkerTarget[] = [];

  add(task: WorkerTask, target: WorkerTarget): void {
    if (task.pendingIndex >= 0) {
      this.targets[task.pendingIndex] = target;
      return;
    }
    task.pendingIndex = this.tasks.length;
    this.tasks.push(task);
    this.targets.push(target);
  }

  /** Takes out what is pending for one task. */
  take(task: WorkerTask): WorkerTarget | undefined {
    const index = task.pendingIndex;
    if (index < 0) return undefined;
    task.pendingIndex = -1;
    this.tasks[index] = undefined;
    return this.targets[index];
  }

  pop(): { readonly task: WorkerTask; readonly target: WorkerTarget } | undefined {
    while (this.tasks.length > 0) {
      const task = this.tasks.pop();
      const target = this.targets.pop();
      if (task === undefined || target === undefined) continue;
      task.pendingIndex = -1;
      return { task, target };
    }
    return undefined;
  }
}
