import type { TaskState } from './task.ts';

const SIZE_MIN = 1 << 8;
const SIZE_MAX = 1 << 16;

/**
 * Finds the task that an answer of a worker is about, by the run id that it carries: one step, where
 * the table of all keys costs several that miss the cache.
 *
 * Run ids are numbered upwards, so their low bits are a place. Of two tasks that claim the same place
 * the newer one has it, and the other one is found by its key: the table is a short cut, never the
 * truth.
 */
export class RunTable {
  private places: (TaskState | undefined)[] = [];
  private mask = SIZE_MIN - 1;

  /** The task has been assigned: its run id is new. */
  add(task: TaskState): void {
    const other = this.places[task.runId & this.mask];
    if (other !== undefined && this.mask < SIZE_MAX - 1) this.grow();
    this.put(task);
  }

  /** The assignment has ended. No-op when the task has no place. */
  delete(task: TaskState): void {
    const place = task.runId & this.mask;
    if (this.places[place] === task) this.places[place] = undefined;
  }

  clear(): void {
    this.places = [];
    this.mask = SIZE_MIN - 1;
  }

  /** The task of that key and run id, if it has its place. */
  find(runId: number, key: string): TaskState | undefined {
    const task = this.places[runId & this.mask];
    return task?.runId === runId && task.key === key ? task : undefined;
  }

  private put(task: TaskState): void {
    const place = task.runId & this.mask;
    // Without holes, so that it stays a plain list.
    while (this.places.length <= place) this.places.push(undefined);
    this.places[place] = task;
  }

  private grow(): void {
    const before = this.places;
    this.places = [];
    this.mask = 2 * this.mask + 1;
    for (const task of before) if (task !== undefined) this.put(task);
  }
}
