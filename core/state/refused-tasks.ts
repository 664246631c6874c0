import type { TaskState } from './task.ts';

/**
 * Tasks in `no-worker` because a policy answered "no worker now" although some may run them, in the order
 * in which they were refused first.
 */
export class RefusedTasks implements Iterable<TaskState> {
  private readonly tasks = new Set<TaskState>();
  /** Goes through all of them, a few with each heartbeat; live, as iterators of sets are. */
  private cursor: IterableIterator<TaskState> | undefined;

  get size(): number {
    return this.tasks.size;
  }

  /** No-op for a task that is already in it, which keeps its place. */
  add(task: TaskState): void {
    this.tasks.add(task);
  }

  delete(task: TaskState): void {
    this.tasks.delete(task);
  }

  clear(): void {
    this.tasks.clear();
    this.cursor = undefined;
  }

  /** The oldest first; live, so that tasks may leave while they are gone through. */
  [Symbol.iterator](): IterableIterator<TaskState> {
    return this.tasks.values();
  }

  /** How many tasks have had their turn in this round. O(tasks). */
  get seenCount(): number {
    if (this.cursor === undefined) return 0;
    const seen = this.tasks.size - [...this.cursor].length;
    // It has been gone through, and begins where it was.
    this.skip(seen);
    return seen;
  }

  /** Begins a round in which so many tasks have had their turn. O(count). */
  skip(count: number): void {
    this.cursor = this.tasks.values();
    for (let skipped = 0; skipped < count; skipped++) this.cursor.next();
  }

  /** The next tasks in rotation, at most `count`; fewer at the end of a round. O(count). */
  nextInTurn(count: number): TaskState[] {
    const next: TaskState[] = [];
    while (next.length < count && this.tasks.size > 0) {
      this.cursor ??= this.tasks.values();
      const step = this.cursor.next();
      if (step.done !== true) {
        next.push(step.value);
        continue;
      }
      this.cursor = undefined;
      if (next.length > 0) break;
    }
    return next;
  }
}
