import type { Clock, RunAborted, Timer } from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import type { ThreadPool } from './thread-pool.ts';
import type { Job } from './job.ts';
import type { TaskThread } from './task-thread.ts';
import { abandonedError, closedResult, failed } from './thread-errors.ts';

/** Upper bound of the short runs that are queued at a thread. */
const LINE_LENGTH_MAX = 256;
/** A thread with more is not handed others yet: each message wakes it up, which costs as much as many tasks. */
const LINE_LENGTH_LOW = 8;
/**
 * Milliseconds after which short runs are taken back from a thread that has begun none of its
 * queue.
 */
const HELD_UP_MS = 20;

/**
 * Assigns runs to threads. A long run gets a thread for itself. Short runs share threads and queue
 * there; one message hands over many of them. When the run before them takes long, they are taken
 * back.
 */
export class RunDispatcher {
  /** Long runs, each of which needs a thread for itself; short runs share threads. */
  private readonly waiting: Job[] = [];
  private waitingShort: Job[] = [];
  /** Runs that need no thread for themselves. */
  private readonly concurrent: Job[] = [];
  private isDealDue = false;
  private watch: Timer | undefined;
  private isClosed = false;

  /** @param heldUpMs - see `ThreadExecutorOptions` */
  constructor(
    private readonly crew: ThreadPool,
    private readonly clock: Clock,
    private readonly heldUpMs = HELD_UP_MS,
  ) {}

  /** What is given in one turn is dealt together. */
  add(job: Job): void {
    if (job.isOver) return;
    if (job.isConcurrent) this.concurrent.push(job);
    else if (job.isShort) this.waitingShort.push(job);
    else this.waiting.push(job);
    if (this.isDealDue) return;
    this.isDealDue = true;
    queueMicrotask(() => {
      this.isDealDue = false;
      this.deal();
    });
  }

  /** Queues runs again that have not begun. Aborted runs go back to their owner at once. */
  addAgain(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      if (job.isAborted && job.mayReturn) job.end({ kind: 'returned' });
      else this.add(job);
    }
  }

  /** Begins runs once more whose thread has ended, each as soon as it has a slot. */
  runAgain(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      if (job.isAborted) job.end(failed(abandonedError(job)));
      else if (job.slotState === 'occupied') this.add(job);
      else {
        const ready = job.slot?.rejoin() ?? Promise.resolve();
        inBackground(
          ready.then(() => this.add(job)),
          (error) => job.end(failed(error)),
        );
      }
    }
  }

  /** Hands over what threads can take now. */
  deal(): void {
    if (this.isClosed) {
      const jobs = [...this.waiting, ...this.waitingShort, ...this.concurrent];
      this.waiting.length = 0;
      this.waitingShort.length = 0;
      this.concurrent.length = 0;
      for (const job of jobs) {
        job.end(closedResult(job.task.key));
      }
      return;
    }
    this.dealConcurrent();
    while (this.waiting.length > 0) {
      const thread = this.crew.idle();
      if (thread === undefined) break;
      thread.hand([this.waiting.shift() as Job]);
    }
    if (this.waitingShort.length === 0) return;
    this.dealShort();
    this.watchLines();
  }

  abort(job: Job, reason: RunAborted | undefined): void {
    if (job.isOver || job.isAborted) return;
    job.isAborted = true;
    job.abortReason = reason;
    const { thread } = job;
    if (thread === undefined) {
      if (job.mayReturn) this.giveBack(job);
      return; // Otherwise it is aborted when it begins.
    }
    if (job.isShort) this.addAgain(thread.takeBack());
    // What has not begun is on no thread any more.
    if (job.thread === thread) thread.abort(job);
  }

  /** All that waits, and all that still comes, fails. */
  close(): void {
    this.isClosed = true;
    this.watch?.cancel();
    this.deal();
  }

  /** The thread with the fewest gets each. */
  private dealConcurrent(): void {
    while (this.concurrent.length > 0) {
      const thread = this.crew.leastWaiting();
      if (thread === undefined) return;
      thread.begin(this.concurrent.shift() as Job);
    }
  }

  /** Lines become about equally long. */
  private dealShort(): void {
    const takers = this.takers();
    if (takers.length === 0) return;
    let total = this.waitingShort.length;
    for (const { length } of takers) total += length;
    const share = Math.min(LINE_LENGTH_MAX, Math.ceil(total / takers.length));
    let dealt = 0;
    for (const thread of takers) {
      const count = share - thread.length;
      if (count <= 0 || dealt === this.waitingShort.length) continue;
      thread.hand(this.waitingShort.slice(dealt, dealt + count));
      dealt += count;
    }
    this.waitingShort = this.waitingShort.slice(dealt);
  }

  /**
   * Threads that shall get short runs now: those with a short queue, if threads may have queues.
   */
  private takers(): TaskThread[] {
    const takers: TaskThread[] = [];
    let isOneFree = false;
    for (const thread of this.crew.threads) {
      if (!thread.takesShort) continue;
      isOneFree = true;
      if (thread.length <= LINE_LENGTH_LOW) takers.push(thread);
    }
    if (isOneFree) return takers;
    const thread = this.crew.idle();
    return thread === undefined ? [] : [thread];
  }

  private giveBack(job: Job): void {
    for (const list of [this.waiting, this.waitingShort, this.concurrent]) {
      const index = list.indexOf(job);
      if (index >= 0) list.splice(index, 1);
    }
    job.end({ kind: 'returned' });
  }

  /** Checks, while runs are queued, whether any of them begins. */
  private watchLines(): void {
    if (this.watch !== undefined) return;
    this.watch = this.clock.setTimer(this.heldUpMs, () => {
      this.watch = undefined;
      let isMoving = false;
      for (const thread of this.crew.threads) {
        if (!thread.isHeldUp()) isMoving ||= thread.takesShort;
        else this.giveUp(thread.takeBack());
      }
      if (!isMoving) this.giveUp(this.waitingShort.splice(0));
      for (const thread of this.crew.threads) if (thread.length > 1) this.watchLines();
      if (this.waitingShort.length > 0) this.watchLines();
    });
  }

  private giveUp(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      job.end({ kind: 'returned' });
    }
  }
}
