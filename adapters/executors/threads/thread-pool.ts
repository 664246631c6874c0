import { inBackground } from '../../../core/shared/background.ts';
import type { Logger, YardmasterError } from '../../../core/api/index.ts';
import type { Job } from './job.ts';
import { TaskThread, type ThreadSettings } from './task-thread.ts';

/** Settings and callbacks of a pool. */
export interface ThreadPoolOptions {
  /** Threads that occupy slots at any time. */
  readonly threadCount: number;
  readonly settings: Omit<ThreadSettings, 'onSecede' | 'onProgress' | 'onGone'>;
  /** Logs the death of threads that ran no task. */
  readonly log: Logger | undefined;
  /** These have not begun, and no thread has them any more. */
  readonly onLeft: (jobs: readonly Job[]) => void;
  /** Runs have ended, or threads have come or gone. */
  readonly onChange: () => void;
}

/**
 * The threads that run tasks. A constant number of them occupies the slots: a thread whose task has
 * seceded is supplemented by another one, and a thread that dies is replaced.
 */
export class ThreadPool {
  readonly threads = new Set<TaskThread>();
  /** Threads whose tasks have seceded. */
  private readonly seceded = new Set<TaskThread>();
  private isClosed = false;

  constructor(private readonly options: ThreadPoolOptions) {
    for (let index = 0; index < options.threadCount; index++) this.addThread();
  }

  /** A thread without work. One that died before it could start is replaced here, not in a loop. */
  idle(): TaskThread | undefined {
    for (const thread of this.threads) if (thread.isIdle) return thread;
    return this.surplus < 0 ? this.addThread() : undefined;
  }

  /** Ends all threads, whatever they do. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.threads].map((thread) => thread.close()));
  }

  /** Threads beyond `threadCount`, those of seceded tasks aside. */
  private get surplus(): number {
    return this.threads.size - this.seceded.size - this.options.threadCount;
  }

  /** A thread took the place of each that seceded; when that one counts again, one is too many. */
  private endSurplus(): void {
    if (this.surplus <= 0) return;
    for (const thread of this.threads) {
      if (!thread.isIdle) continue;
      this.threads.delete(thread);
      inBackground(thread.close(), 'a thread that is not needed did not close');
      if (this.surplus <= 0) return;
    }
  }

  private addThread(): TaskThread {
    const thread = new TaskThread({
      ...this.options.settings,
      onSecede: (thread, hasSeceded) => this.onSecede(thread, hasSeceded),
      onProgress: (thread) => this.onProgress(thread),
      onGone: (gone, error, left) => this.onGone(gone, error, left),
    });
    this.threads.add(thread);
    return thread;
  }

  private onSecede(thread: TaskThread, hasSeceded: boolean): void {
    if (hasSeceded) {
      this.seceded.add(thread);
      this.options.onLeft(thread.takeBack());
    } else this.seceded.delete(thread);
    this.endSurplus();
    this.options.onChange();
  }

  private onProgress(thread: TaskThread): void {
    if (thread.isIdle) this.seceded.delete(thread);
    this.endSurplus();
    this.options.onChange();
  }

  private onGone(
    thread: TaskThread,
    error: YardmasterError | undefined,
    left: readonly Job[],
  ): void {
    this.threads.delete(thread);
    this.seceded.delete(thread);
    this.options.onLeft(left);
    if (!this.isClosed) {
      if (error !== undefined) this.options.log?.warn({ err: error }, error.message);
      if (thread.hasStarted && this.surplus < 0) this.addThread();
    }
    this.options.onChange();
  }
}
