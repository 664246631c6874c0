import { IndexedHeap } from '../util/heaps.ts';
import { byPriority, type TaskState } from './task.ts';

/** Positions in the heap are 0 and more, -1 is outside, and position p of the run is -2 - p. */
const NOWHERE = -1;
const RUN_START = -2;
/** Spent positions at the start of the run that are not worth a copy. */
const SPENT_MAX = 1000;

/**
 * Tasks by priority, the best first.
 *
 * A graph's tasks become ready in the order of their priorities, so most of them are appended to a
 * sorted run: O(1) to add and to take. Those that come out of order go into a heap. The next task is
 * the better one of the two heads.
 */
export class TaskQueue implements Iterable<TaskState> {
  private readonly heap = new IndexedHeap<TaskState>(byPriority);
  /** Ascending, with gaps where tasks have left the queue; the part before `head` is spent. */
  private run: (TaskState | undefined)[] = [];
  private head = 0;
  private runCount = 0;
  /** The task that was appended last, though it may have left. */
  private runEnd: TaskState | undefined = undefined;

  get size(): number {
    return this.runCount + this.heap.size;
  }

  /** @param task - whatever a policy takes for one */
  has(task: object): boolean {
    const { place = NOWHERE } = task as Partial<TaskState>;
    return place <= RUN_START ? this.run[RUN_START - place] === task : this.heap.has(task);
  }

  /** No-op when the task is in the queue. */
  add(task: TaskState): void {
    if (this.has(task)) return;
    if (this.runCount === 0) this.restartRun();
    else if (byPriority(this.runEnd as TaskState, task) > 0) {
      this.heap.add(task);
      return;
    }
    task.place = RUN_START - this.run.length;
    this.run.push(task);
    this.runEnd = task;
    this.runCount++;
  }

  /** Returns false when the task was not in the queue. */
  delete(task: TaskState): boolean {
    if (task.place > RUN_START) return this.heap.delete(task);
    const index = RUN_START - task.place;
    if (this.run[index] !== task) return false;
    this.run[index] = undefined;
    task.place = NOWHERE;
    this.runCount--;
    return true;
  }

  /**
   * Changes the priority of a task, wherever the task is; a queued one is queued anew. No task that
   * this queue has ever had may get another one in any other way: the last one that was appended is what later
   * ones are compared with. O(log n), and O(gaps at the end) for that one.
   */
  reorder(task: TaskState, change: (task: TaskState) => void): void {
    const isQueued = this.delete(task);
    if (task === this.runEnd) this.trimRun();
    change(task);
    if (isQueued) this.add(task);
  }

  /** The best task, or undefined. */
  peek(): TaskState | undefined {
    const first = this.firstOfRun();
    const top = this.heap.peek();
    if (first === undefined) return top;
    if (top === undefined) return first;
    return byPriority(first, top) < 0 ? first : top;
  }

  clear(): void {
    for (const task of this.run) if (task !== undefined) task.place = NOWHERE;
    this.restartRun();
    this.runCount = 0;
    this.heap.clear();
  }

  /** The tasks in the order in which they will leave. O(n log n); for views and tests. */
  sorted(): TaskState[] {
    return [...this].sort(byPriority);
  }

  /** In no order that matters. */
  *[Symbol.iterator](): IterableIterator<TaskState> {
    for (const task of this.run) if (task !== undefined) yield task;
    yield* this.heap;
  }

  private firstOfRun(): TaskState | undefined {
    if (this.runCount === 0) return undefined;
    while (this.run[this.head] === undefined) this.head++;
    if (this.head > SPENT_MAX && this.head > this.run.length / 2) this.dropSpent();
    return this.run[this.head];
  }

  /** A queue that never empties must not grow for ever. O(tasks), once for as many that left. */
  private dropSpent(): void {
    this.run = this.run.slice(this.head);
    this.head = 0;
    for (let index = 0; index < this.run.length; index++) {
      const task = this.run[index];
      if (task !== undefined) task.place = RUN_START - index;
    }
  }

  /** Takes gaps off the end of the run, so that it ends with a task that is queued. */
  private trimRun(): void {
    if (this.runCount === 0) return;
    while (this.run.at(-1) === undefined) this.run.pop();
    this.runEnd = this.run.at(-1);
  }

  private restartRun(): void {
    this.run = [];
    this.head = 0;
    this.runEnd = undefined;
  }
}
