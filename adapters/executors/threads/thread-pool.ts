import { inBackground } from '../../../core/shared/background.ts';
import type { Logger } from '../../../core/api/index.ts';
import type { Job } from './job.ts';
import { TaskThread } from './task-thread.ts';
import type { ThreadEnd, ThreadSettings } from './thread-settings.ts';

/** Settings and callbacks of a pool. */
export interface ThreadPoolOptions {
  /** Threads that occupy slots at any time. */
  readonly threadCount: number;
  readonly settings: Omit<ThreadSettings<TaskThread>, 'onSlotChange' | 'onProgress' | 'onGone'>;
  /** Logs the death of threads that ran no task. */
  readonly log: Logger | undefined;
  /** These have not begun, and no thread has them any more. */
  readonly onLeft: (jobs: readonly Job[]) => void;
  /** These had begun on a thread that died of something else. */
  readonly onInterrupted: (jobs: readonly Job[]) => void;
  /** Runs have ended, or threads have come or gone. */
  readonly onChange: () => void;
}

/**
 * The threads that run tasks. A constant number of them takes runs: a thread whose task has seceded to compute
 * on is supplemented by another one, and a thread that dies is replaced.
 */
export class ThreadPool {
  readonly threads = new Set<TaskThread>();
  private isClosed = false;

  constructor(private readonly options: ThreadPoolOptions) {
    for (let index = 0; index < options.threadCount; index++) this.addThread();
  }

  /**
   * A thread that can begin a run, with as few waiting runs as possible: it may be about to compute. A thread
   * that died before it could start is replaced here, not in a loop.
   */
  idle(): TaskThread | undefined {
    let best: TaskThread | undefined;
    for (const thread of this.threads) {
      if (!thread.isIdle) continue;
      if (thread.waitingCount === 0) return thread;
      if (best === undefined || thread.waitingCount < best.waitingCount) best = thread;
    }
    return best ?? (this.surplus < 0 ? this.addThread() : undefined);
  }

  /**
   * The thread that shall run another task beside those that it has: one that computes nothing now, if all have as
   * many waiting runs.
   */
  leastWaiting(): TaskThread | undefined {
    let best: TaskThread | undefined;
    for (const thread of this.threads) {
      if (thread.isExtra) continue;
      const difference = best === undefined ? -1 : thread.waitingCount - best.waitingCount;
      if (difference < 0 || (difference === 0 && thread.isIdle && best?.isIdle === false)) {
        best = thread;
      }
    }
    return best ?? (this.surplus < 0 ? this.addThread() : undefined);
  }

  /** Ends all threads, whatever they do. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.threads].map((thread) => thread.close()));
  }

  /** Threads beyond `threadCount`, without those that take no runs at present. */
  private get surplus(): number {
    let surplus = -this.options.threadCount;
    for (const thread of this.threads) if (!thread.isExtra) surplus++;
    return surplus;
  }

  /** A thread took the place of each that seceded; when that one counts again, one is too many. */
  private endSurplus(): void {
    if (this.threads.size <= this.options.threadCount || this.surplus <= 0) return;
    for (const thread of this.threads) {
      if (!thread.isIdle || thread.waitingCount > 0) continue;
      this.threads.delete(thread);
      inBackground(thread.close(), 'a thread that is not needed did not close');
      if (this.surplus <= 0) return;
    }
  }

  private addThread(): TaskThread {
    const thread = new TaskThread({
      ...this.options.settings,
      onSlotChange: (changed) => this.onSlotChange(changed),
      onProgress: () => this.onProgress(),
      onGone: (gone, end) => this.onGone(gone, end),
    });
    this.threads.add(thread);
    return thread;
  }

  private onSlotChange(thread: TaskThread): void {
    if (thread.isExtra) this.options.onLeft(thread.takeBack());
    this.onProgress();
  }

  private onProgress(): void {
    this.endSurplus();
    this.options.onChange();
  }

  private onGone(thread: TaskThread, { error, left, interrupted }: ThreadEnd): void {
    const { log, onLeft, onInterrupted, onChange } = this.options;
    this.threads.delete(thread);
    onLeft(left);
    onInterrupted(interrupted);
    if (!this.isClosed) {
      if (error !== undefined) log?.warn({ err: error }, error.message);
      if (interrupted.length > 0) {
        const keys = interrupted.map(({ key }) => key);
        log?.info(
          { keys },
          `${keys.length} tasks waited on a thread that ended, and are run again`,
        );
      }
      if (thread.hasStarted && this.surplus < 0) this.addThread();
    }
    onChange();
  }
}
