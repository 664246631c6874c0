import { MinHeap } from '../util/heaps.ts';
import type { Amount, Count, Interval, Name, Positive } from '../util/values.ts';
import { TaskQueue } from './task-queue.ts';
import type { TaskState } from './task.ts';
import { type Rate, TokenBucket } from './token-bucket.ts';
import { pushTo } from '../util/collections.ts';

/** Limits without a task that are kept because they have not recovered from what started; then the oldest half goes. */
const SPENT_MAX = 10_000;

/** Names of limits whose refusals are counted. */
const REFUSALS_MAX = 1000;

/** The terms of a limit, as a submission states them. */
export interface TaskLimitDescription {
  readonly name: Name;
  /** At most so many run at the same time. Default: any number. */
  readonly max?: Positive;
  /** One starts in each such time, in the long run. Default: no rate. */
  readonly intervalMs?: Interval;
  /** Starts that may follow each other at once after a pause. Default 1. */
  readonly burst?: Amount;
  /** At most so many wait: others that would have to fail. Default: any number. */
  readonly maxQueued?: Count;
}

/** Knows the time of the present stimulus. */
interface Now {
  readonly nowMs: number;
}

/** A bound of the tasks that have it, in the whole cluster. Written by `TaskLimits` alone. */
export class TaskLimit {
  /** Tasks with this limit that are not forgotten. */
  taskCount = 0;
  /** Those that are processing and not paused, and runs of them that were taken back and may not have ended. */
  runningCount = 0;
  /** Those in `queued`: they wait for this limit. */
  readonly queued = new TaskQueue();
  /** Those that are processing and do not count, as their function is not called before their next try. */
  readonly paused = new Set<TaskState>();
  /** Of these, those whose pause is over. They go on before others start. */
  readonly resuming = new Set<TaskState>();
  /** Those in `no-worker`: there is no worker for them at present. */
  parkedCount = 0;
  /** The starts that its rate allows; undefined: any number. */
  bucket: TokenBucket | undefined;
  /** The time at which it is looked at again because tasks wait for its rate; Infinity: never. */
  wakeAtMs = Infinity;

  /** @param terms - as the last submission says that names the limit */
  constructor(
    public terms: TaskLimitDescription,
    private readonly clock: Now,
  ) {}

  get name(): string {
    return this.terms.name;
  }

  /** Infinity: any number. */
  get max(): number {
    return this.terms.max ?? Infinity;
  }

  /** Milliseconds from one start to the next, in the long run; undefined: no rate is set. */
  get intervalMs(): number | undefined {
    return this.terms.intervalMs;
  }

  /** True when as many run, or are about to go on, as may. */
  get isFull(): boolean {
    return this.runningCount + this.resuming.size >= this.max;
  }

  /** True when one of those whose pause is over may go on. */
  get mayResume(): boolean {
    return this.resuming.size > 0 && this.runningCount < this.max;
  }

  get hasRoom(): boolean {
    return !this.isFull && this.bucket?.has(this.clock.nowMs) !== false;
  }

  /** True when it has started more of late than a new limit of its name would know of. */
  get isSpent(): boolean {
    return this.bucket?.isFull(this.clock.nowMs) === false;
  }

  /** Tasks that wait for it: also those without a worker for which it has no room. */
  get waitingCount(): number {
    return this.queued.size + Math.max(0, this.parkedCount - this.room);
  }

  /** True when a task that is new and has to wait is refused. */
  get isQueueFull(): boolean {
    return this.waitingCount >= (this.terms.maxQueued ?? Infinity);
  }

  /** The same for a task for which there is no worker. */
  get isFullWithoutWorker(): boolean {
    return this.isQueueFull && this.parkedCount >= this.room;
  }

  /**
   * Milliseconds until one of the tasks that wait starts, about: by the rate, and by those that run.
   * @param durationMs - of such a task
   */
  startsInMs(durationMs: number): number {
    const byRate = (this.bucket?.dueMs ?? -Infinity) - this.clock.nowMs;
    return Math.max(0, byRate, this.isFull ? durationMs / Math.max(1, this.runningCount) : 0);
  }

  /** Tasks that may start now. */
  private get room(): number {
    const free = Math.max(0, this.max - this.runningCount - this.resuming.size);
    return Math.min(free, this.bucket?.startsAt(this.clock.nowMs) ?? Infinity);
  }

  /** True when a task that is ready has to wait: there is no room, or others came before it. */
  get holdsBack(): boolean {
    return !this.hasRoom || this.queued.size > 0;
  }
}

interface Wake {
  readonly atMs: number;
  readonly limit: TaskLimit;
}

/**
 * The limits that tasks have, by name. A limit is there as long as a task has it, a run of one may not have ended, or its
 * rate has not recovered from those that started.
 */
export class TaskLimits implements Iterable<TaskLimit> {
  private readonly byName = new Map<string, TaskLimit>();
  /** Those with room that tasks wait for. */
  readonly open = new Set<TaskLimit>();
  /** Those with room for a task whose pause is over. */
  readonly resumable = new Set<TaskLimit>();
  /** Of runs that were taken back, by run id. */
  private readonly endingRuns = new Map<number, TaskLimit>();
  /** Without a task, and spent when they lost the last one; in this order. */
  private readonly spent = new Set<TaskLimit>();
  /** The times at which limits are reviewed for whose rate tasks wait: of a limit the one counts that it has itself. */
  private readonly wakes = new MinHeap<Wake>(
    (a, b) => a.atMs - b.atMs || (a.limit.name < b.limit.name ? -1 : 1),
  );

  /** Tasks that were refused because as many waited as may, by name of the limit, which may be gone; the newest names. */
  readonly refusals = new Map<string, number>();

  constructor(private readonly clock: Now) {}

  get size(): number {
    return this.byName.size;
  }

  [Symbol.iterator](): IterableIterator<TaskLimit> {
    return this.byName.values();
  }

  get(name: string): TaskLimit | undefined {
    return this.byName.get(name);
  }

  /**
   * A limit that there is not yet.
   * @param bucket - what was saved of its rate. Default: nothing has started for long
   */
  add(terms: TaskLimitDescription, bucket?: readonly [tokens: number, sinceMs: number]): TaskLimit {
    const limit = new TaskLimit(terms, this.clock);
    const rate = rateOf(terms);
    if (rate !== undefined) {
      limit.bucket = new TokenBucket(rate, ...(bucket ?? [rate.burst, this.clock.nowMs]));
    }
    this.byName.set(terms.name, limit);
    return limit;
  }

  /** The time at which a limit whose rate tasks wait for is to be looked at; undefined: there is none. */
  get wakeAtMs(): number | undefined {
    for (let first = this.wakes.peek(); first !== undefined; first = this.wakes.peek()) {
      if (first.atMs === first.limit.wakeAtMs) return first.atMs;
      this.wakes.pop();
    }
    return undefined;
  }

  /** Finds the limits that have room now because time has passed. O(log limits) for each. */
  passTime(): void {
    const { nowMs } = this.clock;
    while ((this.wakeAtMs ?? Infinity) <= nowMs) {
      const { limit } = this.wakes.pop() as Wake;
      limit.wakeAtMs = Infinity;
      this.review(limit);
    }
  }

  /** A task that has none has this one from now on. */
  join(task: TaskState, limit: TaskLimit): void {
    task.limit = limit;
    limit.taskCount++;
    this.spent.delete(limit);
  }

  /** Of each limit its tasks, in their order here. O(tasks). */
  members(tasks: Iterable<TaskState>): Map<TaskLimit, TaskState[]> {
    const members = new Map<TaskLimit, TaskState[]>();
    for (const limit of this) members.set(limit, []);
    for (const task of tasks) {
      const { limit } = task;
      if (limit === undefined) continue;
      pushTo(members, limit, task);
    }
    return members;
  }

  /** The latest terms count. Tasks that run or wait already continue. No-op for equal terms, as most tasks of a graph have. */
  setTerms(limit: TaskLimit, terms: TaskLimitDescription): void {
    if (isSame(limit.terms, terms)) return;
    const rate = rateOf(terms);
    const { nowMs } = this.clock;
    if (rate === undefined) limit.bucket = undefined;
    else if (limit.bucket === undefined) limit.bucket = new TokenBucket(rate, rate.burst, nowMs);
    else limit.bucket.setRate(rate, nowMs);
    limit.terms = terms;
    this.review(limit);
  }

  /** It is not known what has started of late. */
  emptyBuckets(): void {
    for (const { bucket } of this) bucket?.set(0, this.clock.nowMs);
  }

  /** The task is forgotten. */
  leave({ limit }: TaskState): void {
    if (limit === undefined) return;
    limit.taskCount--;
    this.dropUnused(limit);
  }

  /** The task waits in `queued`. */
  enqueue(limit: TaskLimit, task: TaskState): void {
    limit.queued.add(task);
    this.review(limit);
  }

  /** There is no worker for as many more, or fewer, of its tasks. */
  park({ limit }: TaskState, change: 1 | -1): void {
    if (limit !== undefined) limit.parkedCount += change;
  }

  noteRefusal({ name }: TaskLimit): void {
    const count = this.refusals.get(name) ?? 0;
    this.refusals.delete(name);
    this.refusals.set(name, count + 1);
    for (const oldest of this.refusals.keys()) {
      if (this.refusals.size <= REFUSALS_MAX) break;
      this.refusals.delete(oldest);
    }
  }

  dequeue(limit: TaskLimit, task: TaskState): void {
    limit.queued.delete(task);
    this.review(limit);
  }

  /** A task with this limit is sent to a worker. */
  start(limit: TaskLimit): void {
    limit.bucket?.take(this.clock.nowMs);
    this.review(limit);
  }

  /** A task with this limit is on a worker, or not any more. */
  count(limit: TaskLimit, change: 1 | -1): void {
    limit.runningCount += change;
    this.review(limit);
  }

  /** The task does not count until it may go on. No-op without a limit. */
  pause(task: TaskState): void {
    const { limit } = task;
    if (limit === undefined || limit.paused.has(task)) return;
    limit.paused.add(task);
    this.count(limit, -1);
  }

  /**
   * The pause of the task is over.
   * @returns false when it counts already
   */
  endPause(task: TaskState): boolean {
    const { limit } = task;
    if (limit?.paused.has(task) !== true) return false;
    limit.resuming.add(task);
    this.review(limit);
    return true;
  }

  /** The tasks that may go on, which count from now on. */
  resumed(): TaskState[] {
    const resumed: TaskState[] = [];
    for (const limit of [...this.resumable]) {
      for (const task of limit.resuming) {
        if (!limit.mayResume) break;
        limit.resuming.delete(task);
        limit.paused.delete(task);
        limit.runningCount++;
        resumed.push(task);
      }
      this.review(limit);
    }
    return resumed;
  }

  /** The task with this limit is not on its worker any more. */
  end(limit: TaskLimit, task: TaskState): void {
    if (!limit.paused.delete(task)) return this.count(limit, -1);
    limit.resuming.delete(task);
    this.review(limit);
  }

  /** A run is taken back, or overdue: it counts until the worker says that it has ended, or is gone. */
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
      limit.parkedCount = 0;
      limit.queued.clear();
      limit.paused.clear();
      limit.resuming.clear();
    }
    this.open.clear();
    this.resumable.clear();
    this.spent.clear();
    for (const { limit } of tasks) {
      if (limit === undefined) continue;
      limit.taskCount++;
      this.byName.set(limit.name, limit);
    }
    for (const [runId, limit] of this.endingRuns) {
      if (endingRuns.has(runId)) limit.runningCount++;
      else this.endingRuns.delete(runId);
    }
    for (const limit of [...this]) this.dropUnused(limit);
  }

  /** True when it is there only because it is spent. */
  isKept(limit: TaskLimit): boolean {
    return this.spent.has(limit);
  }

  private review(limit: TaskLimit): void {
    const waits = limit.queued.size > 0;
    if (waits && limit.hasRoom) this.open.add(limit);
    else this.open.delete(limit);
    if (limit.mayResume) this.resumable.add(limit);
    else this.resumable.delete(limit);
    const isPaced = waits && !limit.isFull && !this.open.has(limit);
    const atMs = isPaced ? (limit.bucket?.dueMs ?? Infinity) : Infinity;
    if (atMs === limit.wakeAtMs) return;
    limit.wakeAtMs = atMs;
    if (atMs < Infinity) this.wakes.push({ atMs, limit });
  }

  /** No-op for a limit that a task has, or that a run may have. */
  dropUnused(limit: TaskLimit): void {
    if (limit.taskCount + limit.runningCount > 0) return;
    if (limit.isSpent) {
      this.spent.add(limit);
      if (this.spent.size > SPENT_MAX) this.dropSpent();
    } else this.drop(limit);
  }

  /** Drops those that have recovered, and if that is not half of them, the oldest. O(spent limits). */
  private dropSpent(): void {
    for (const limit of this.spent) if (!limit.isSpent) this.drop(limit);
    for (const limit of this.spent) if (this.spent.size > SPENT_MAX / 2) this.drop(limit);
  }

  private drop(limit: TaskLimit): void {
    this.spent.delete(limit);
    this.byName.delete(limit.name);
  }
}

function isSame(terms: TaskLimitDescription, others: TaskLimitDescription): boolean {
  if (terms.max !== others.max || terms.maxQueued !== others.maxQueued) return false;
  return terms.intervalMs === others.intervalMs && terms.burst === others.burst;
}

function rateOf({ intervalMs, burst = 1 }: TaskLimitDescription): Rate | undefined {
  return intervalMs === undefined ? undefined : { intervalMs, burst };
}
