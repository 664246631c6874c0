import type { TaskLimitDescription } from '../messages/from-client.ts';
import { TaskQueue } from './task-queue.ts';
import type { TaskState } from './task.ts';

/** What bounds the tasks that have it, in the whole cluster. Written by `TaskLimits` alone. */
export class TaskLimit {
  /** Tasks with this limit that are not forgotten. */
  taskCount = 0;
  /** Those that are processing, and runs of them that were taken back and may not have ended. */
  runningCount = 0;
  /** Those in `queued`: they wait for this limit. */
  queuedCount = 0;

  /** @param terms - as the last submission says that names the limit */
  constructor(public terms: TaskLimitDescription) {}

  get name(): string {
    return this.terms.name;
  }

  get max(): number {
    return this.terms.max;
  }

  get hasRoom(): boolean {
    return this.runningCount < this.max;
  }

  /** True when a task that is new and has to wait is refused. */
  get isQueueFull(): boolean {
    return this.queuedCount >= (this.terms.maxQueued ?? Infinity);
  }

  /** True when a task that is ready has to wait: there is no room, or others came before it. */
  get holdsBack(): boolean {
    return !this.hasRoom || this.queuedCount > 0;
  }
}

/** The limits that tasks have, by name. A limit is there as long as a task has it, or a run of one may not have ended. */
export class TaskLimits implements Iterable<TaskLimit> {
  private readonly byName = new Map<string, TaskLimit>();
  private readonly queues = new Map<TaskLimit, TaskQueue>();
  /** Those with room that tasks wait for. */
  readonly open = new Set<TaskLimit>();
  /** Of runs that were taken back, by run id. */
  private readonly endingRuns = new Map<number, TaskLimit>();

  get size(): number {
    return this.byName.size;
  }

  [Symbol.iterator](): IterableIterator<TaskLimit> {
    return this.byName.values();
  }

  get(name: string): TaskLimit | undefined {
    return this.byName.get(name);
  }

  /** A limit that there is not yet. */
  add(terms: TaskLimitDescription): TaskLimit {
    const limit = new TaskLimit(terms);
    this.byName.set(terms.name, limit);
    this.queues.set(limit, new TaskQueue());
    return limit;
  }

  /** Its tasks in `queued`. */
  queueOf(limit: TaskLimit): TaskQueue {
    return this.queues.get(limit) as TaskQueue;
  }

  /** A task that has none has this one from now on. */
  join(task: TaskState, limit: TaskLimit): void {
    task.limit = limit;
    limit.taskCount++;
  }

  /** Of each limit its tasks, in their order here. O(tasks). */
  members(tasks: Iterable<TaskState>): Map<TaskLimit, TaskState[]> {
    const members = new Map<TaskLimit, TaskState[]>();
    for (const limit of this) members.set(limit, []);
    for (const task of tasks) {
      const { limit } = task;
      if (limit === undefined) continue;
      const its = members.get(limit);
      if (its === undefined) members.set(limit, [task]);
      else its.push(task);
    }
    return members;
  }

  /** What was said last counts. What runs or waits already continues. */
  setTerms(limit: TaskLimit, terms: TaskLimitDescription): void {
    limit.terms = terms;
    this.review(limit);
  }

  /** The task is forgotten. */
  leave({ limit }: TaskState): void {
    if (limit === undefined) return;
    limit.taskCount--;
    this.dropUnused(limit);
  }

  /** The task waits in `queued`. */
  enqueue(limit: TaskLimit, task: TaskState): void {
    this.queueOf(limit).add(task);
    limit.queuedCount++;
    this.review(limit);
  }

  dequeue(limit: TaskLimit, task: TaskState): void {
    this.queueOf(limit).delete(task);
    limit.queuedCount--;
    this.review(limit);
  }

  /** A task with this limit begins, or ends. */
  count(limit: TaskLimit, change: 1 | -1): void {
    limit.runningCount += change;
    this.review(limit);
  }

  /** A run is taken back: it counts until the worker says that it has ended, or is gone. */
  addEndingRun(limit: TaskLimit, runId: number): void {
    this.endingRuns.set(runId, limit);
    this.count(limit, 1);
  }

  /** No-op for other runs. */
  endRun(runId: number): void {
    const limit = this.endingRuns.get(runId);
    if (limit === undefined) return;
    this.endingRuns.delete(runId);
    this.count(limit, -1);
    this.dropUnused(limit);
  }

  /** Runs of a limit that were taken back and may not have ended. O(such runs). */
  endingRunsOf(limit: TaskLimit): number[] {
    return [...this.endingRuns].flatMap(([runId, its]) => (its === limit ? [runId] : []));
  }

  /**
   * These are the tasks, none of them runs or waits, and of the runs that were taken back these have not ended.
   * O(tasks + limits).
   */
  reset(tasks: Iterable<TaskState>, endingRuns: ReadonlySet<number>): void {
    for (const limit of this) {
      limit.taskCount = 0;
      limit.runningCount = 0;
      limit.queuedCount = 0;
      this.queueOf(limit).clear();
    }
    this.open.clear();
    for (const { limit } of tasks) {
      if (limit === undefined) continue;
      limit.taskCount++;
      this.byName.set(limit.name, limit);
      if (!this.queues.has(limit)) this.queues.set(limit, new TaskQueue());
    }
    for (const [runId, limit] of this.endingRuns) {
      if (endingRuns.has(runId)) limit.runningCount++;
      else this.endingRuns.delete(runId);
    }
    for (const limit of [...this]) this.dropUnused(limit);
  }

  private review(limit: TaskLimit): void {
    if (limit.hasRoom && limit.queuedCount > 0) this.open.add(limit);
    else this.open.delete(limit);
  }

  private dropUnused(limit: TaskLimit): void {
    if (limit.taskCount + limit.runningCount > 0) return;
    this.byName.delete(limit.name);
    this.queues.delete(limit);
  }
}
