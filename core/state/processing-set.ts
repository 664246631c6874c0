import type { TaskState } from './task.ts';

/** Gaps that are not worth closing. */
const GAPS_MAX = 8;

/**
 * The tasks that a worker is processing, in the order of assignment.
 *
 * A dense list in which each task knows its place: a task processes on one worker at a time, so
 * nothing has to be hashed. Adding and deleting are O(1) on average.
 */
export class ProcessingSet implements Iterable<TaskState> {
  /** Ascending by assignment, with gaps where tasks have left. */
  private readonly places: (TaskState | undefined)[] = [];
  private count = 0;

  get size(): number {
    return this.count;
  }

  has(task: TaskState): boolean {
    return this.places[task.processingIndex] === task;
  }

  /** The task must not be processing anywhere. */
  add(task: TaskState): void {
    task.processingIndex = this.places.length;
    this.places.push(task);
    this.count++;
  }

  /** The task must be here. */
  delete(task: TaskState): void {
    const { places } = this;
    if (task.processingIndex === places.length - 1) places.pop();
    else places[task.processingIndex] = undefined;
    task.processingIndex = -1;
    this.count--;
    if (places.length > 2 * this.count + GAPS_MAX) this.closeGaps();
  }

  *[Symbol.iterator](): IterableIterator<TaskState> {
    for (const task of this.places) if (task !== undefined) yield task;
  }

  private closeGaps(): void {
    const { places } = this;
    let end = 0;
    for (const task of places) {
      if (task === undefined) continue;
      places[end] = task;
      task.processingIndex = end++;
    }
    places.length = end;
  }
}
