import { availableParallelism } from 'node:os';

import {
  type AbortRun,
  type ActorCall,
  type AsidePlace,
  type Clock,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type Logger,
  RunAborted,
  type TaskSlot,
  type TaskStack,
  type Timer,
  YardmasterError,
} from '../../core/api/index.ts';
import { type ClusterReach, describeFailure } from '../tasks/index.ts';
import { AsideRunner } from '../executor-inline/index.ts';
import { ActorThreads } from './actor-threads.ts';
import { Job } from './job.ts';
import { closedError, TaskThread } from './task-thread.ts';
import { stacksOf } from './thread-stacks.ts';

export interface ThreadExecutorOptions {
  /** Threads, each of which runs one task at a time. Default: one for each core. */
  readonly threadCount?: number;
  /** Times the runs. */
  readonly clock: Clock;
  /** Megabytes of the JavaScript heap of each thread. Default: Node's. */
  readonly heapLimitMb?: number;
  /**
   * Bytes that tasks may leave behind in a thread (copies of inputs, values that were returned) before it
   * collects them. Default: the engine does as it likes, which with few large buffers is late.
   */
  readonly tidyBytes?: number;
  /**
   * Milliseconds that a task may go on after it was aborted; then its thread is ended and replaced.
   * Infinity: it may for ever. Default 5000.
   */
  readonly abortGraceMs?: number;
  /** Milliseconds after which short runs come back when none of their line has begun. Default 20. */
  readonly heldUpMs?: number;
  /** Told when a thread dies without a task. Default: nobody. */
  readonly log?: Logger;
  /** How tasks reach their cluster. Default: they cannot. */
  readonly cluster?: ClusterReach;
}

/** Short runs that a thread may have in line. */
const LINE_LENGTH_MAX = 256;
/** A thread with more is not handed others yet: each message wakes it up, which costs as much as many tasks. */
const LINE_LENGTH_LOW = 8;
const NO_SLOT: TaskSlot = { secede: () => undefined, rejoin: () => Promise.resolve() };

/**
 * Runs tasks in threads of this process. A thread that dies (`process.exit`, out of memory, an error
 * that nothing catches) fails its task and is replaced; no other task notices.
 *
 * Short runs are dealt to the threads ahead of time, many with one message. They come back when what
 * is before them takes long.
 */
export class ThreadExecutor implements Executor {
  readonly threadCount: number;
  onActorLost: ((key: string) => void) | undefined;
  private readonly actors: ActorThreads;
  private readonly threads = new Set<TaskThread>();
  /** Threads whose tasks go on beside those that count. */
  private readonly seceded = new Set<TaskThread>();
  /** Those that want a thread of their own, and short ones that share. */
  private readonly waiting: Job[] = [];
  private waitingShort: Job[] = [];
  private isDispatching = false;
  private watch: Timer | undefined;
  private here: AsideRunner | undefined;
  private closing: Promise<void> | undefined;

  constructor(private readonly options: ThreadExecutorOptions) {
    this.threadCount = options.threadCount ?? availableParallelism();
    if (!Number.isInteger(this.threadCount) || this.threadCount < 1) {
      throw new YardmasterError('ERR_CONFIG', `${this.threadCount} is not a number of threads`, {
        threadCount: this.threadCount,
      });
    }
    const { clock, heapLimitMb, tidyBytes, cluster, log } = options;
    this.actors = new ActorThreads({
      nowMs: () => clock.nowMs(),
      threadsMax: this.threadCount,
      heapLimitMb,
      tidyBytes,
      cluster,
      log,
      onLost: (key) => this.onActorLost?.(key),
    });
    for (let index = 0; index < this.threadCount; index++) this.addThread();
  }

  run(task: ExecutableTask, signal: AbortSignal, slot?: TaskSlot): Promise<ExecutionResult> {
    return new Promise((resolve) => {
      if (task.actorAt !== undefined) {
        const abort = this.beginActor(task, task.actorAt, (result) => {
          signal.removeEventListener('abort', onGivenUp);
          resolve(result);
        });
        const onGivenUp = (): void => abort();
        signal.addEventListener('abort', onGivenUp, { once: true });
        return;
      }
      const onAbort = (): void => {
        const { reason } = signal as { readonly reason: unknown };
        this.abort(job, reason instanceof RunAborted ? reason : undefined);
      };
      const job = new Job(
        { ...task, isShort: false },
        slot,
        (result) => {
          signal.removeEventListener('abort', onAbort);
          resolve(result);
        },
        false,
      );
      this.enlist(job);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  begin(
    task: ExecutableTask,
    slot: TaskSlot = NO_SLOT,
    onEnd: (result: ExecutionResult) => void,
  ): AbortRun {
    if (task.actorAt !== undefined) return this.beginActor(task, task.actorAt, onEnd);
    const job = new Job(task, slot, onEnd, true);
    this.enlist(job);
    return (reason) => this.abort(job, reason);
  }

  callActor(call: ActorCall): Promise<ExecutionResult> {
    return this.actors.call(call);
  }

  releaseActor(key: string): void {
    this.actors.release(key);
  }

  runAside(
    task: ExecutableTask,
    place: AsidePlace,
    signal: AbortSignal,
  ): Promise<readonly ExecutionResult[]> {
    if (this.closing !== undefined) return Promise.resolve([closedResult(task.key)]);
    if (place === 'threads') {
      return Promise.all([...this.threads].map((thread) => thread.runAside(task)));
    }
    this.here ??= new AsideRunner(this.options);
    return this.here.run(task, signal);
  }

  async callStacks(): Promise<ReadonlyMap<string, TaskStack>> {
    const running = [...this.threads].flatMap((thread) => thread.running ?? []);
    try {
      const stacks = await stacksOf(new Set(running.map(({ threadId }) => threadId)));
      return new Map(
        running.map(({ key, threadId: thread }) => [
          key,
          { thread, frames: stacks.get(thread) ?? [] },
        ]),
      );
    } catch (error) {
      const unseen = `Node's inspector cannot be used: ${(error as Error).message}`;
      return new Map(
        running.map(({ key, threadId: thread }) => [key, { thread, frames: [], unseen }]),
      );
    }
  }

  /** Of each thread as it last told; what a task occupies while it runs is not known. */
  get memoryBytes(): number {
    let total = this.actors.memoryBytes;
    for (const thread of this.threads) total += thread.memoryBytes;
    return total;
  }

  collectGarbage(): void {
    for (const thread of this.threads) thread.collectGarbage();
    this.actors.collectGarbage();
  }

  close(): Promise<void> {
    this.watch?.cancel();
    this.here?.close();
    this.closing ??= Promise.all([
      this.actors.close(),
      ...[...this.threads].map((thread) => thread.close()),
    ]).then(() => undefined);
    this.dispatch();
    return this.closing;
  }

  /** One that is given up and not made in time loses its thread, unless others live there. */
  private beginActor(
    task: ExecutableTask,
    actorAt: string,
    onEnd: (result: ExecutionResult) => void,
  ): AbortRun {
    const { clock, abortGraceMs = 5000 } = this.options;
    let timer: Timer | undefined;
    const making =
      this.closing === undefined
        ? this.actors.make(task, actorAt)
        : Promise.resolve(closedResult(task.key));
    void making.then((result) => {
      timer?.cancel();
      onEnd(result);
    });
    return () => {
      timer ??= clock.setTimer(abortGraceMs, () => this.actors.release(task.key));
    };
  }

  /** What is given in one turn is dealt together. */
  private enlist(job: Job): void {
    if (job.isShort) this.waitingShort.push(job);
    else this.waiting.push(job);
    if (this.isDispatching) return;
    this.isDispatching = true;
    queueMicrotask(() => {
      this.isDispatching = false;
      this.dispatch();
    });
  }

  private dispatch(): void {
    if (this.closing !== undefined) {
      for (const job of [...this.waiting.splice(0), ...this.waitingShort.splice(0)]) {
        job.end(closedResult(job.task.key));
      }
      return;
    }
    while (this.waiting.length > 0) {
      const thread = this.idleThread();
      if (thread === undefined) break;
      thread.hand([this.waiting.shift() as Job]);
    }
    if (this.waitingShort.length === 0) return;
    this.dealShort();
    this.watchLines();
  }

  /** A thread that died before it could start is replaced when it is needed, not in a loop. */
  private idleThread(): TaskThread | undefined {
    for (const thread of this.threads) if (thread.isIdle) return thread;
    return this.surplus < 0 ? this.addThread() : undefined;
  }

  /** Lines become about equally long. */
  private dealShort(): void {
    const takers: TaskThread[] = [];
    let isOneFree = false;
    for (const thread of this.threads) {
      if (!thread.takesShort) continue;
      isOneFree = true;
      if (thread.length <= LINE_LENGTH_LOW) takers.push(thread);
    }
    if (isOneFree && takers.length === 0) return;
    if (takers.length === 0) {
      const thread = this.idleThread();
      if (thread !== undefined) takers.push(thread);
    }
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

  private abort(job: Job, reason: RunAborted | undefined): void {
    if (job.isOver || job.isAborted) return;
    job.isAborted = true;
    job.abortReason = reason;
    const { thread } = job;
    if (thread === undefined) {
      if (job.mayReturn) this.giveBack(job);
      return; // Else it is told when it begins.
    }
    if (job.isShort) this.enlistAgain(thread.takeBack());
    // What has not begun is on no thread any more.
    if (job.thread === thread) thread.tellAbort(job);
  }

  /** Nothing happened to these yet; those that nobody wants go back at once. */
  private enlistAgain(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      if (job.isAborted && job.mayReturn) job.end({ kind: 'returned' });
      else this.enlist(job);
    }
  }

  private giveBack(job: Job): void {
    for (const list of [this.waiting, this.waitingShort]) {
      const index = list.indexOf(job);
      if (index >= 0) list.splice(index, 1);
    }
    job.end({ kind: 'returned' });
  }

  /** As long as runs stand in line, looks whether any of them begins. */
  private watchLines(): void {
    if (this.watch !== undefined) return;
    const { clock, heldUpMs = 20 } = this.options;
    this.watch = clock.setTimer(heldUpMs, () => {
      this.watch = undefined;
      let isMoving = false;
      for (const thread of this.threads) {
        if (!thread.isHeldUp()) isMoving ||= thread.takesShort;
        else this.giveUp(thread.takeBack());
      }
      if (!isMoving) this.giveUp(this.waitingShort.splice(0));
      for (const thread of this.threads) if (thread.length > 1) this.watchLines();
      if (this.waitingShort.length > 0) this.watchLines();
    });
  }

  private giveUp(jobs: readonly Job[]): void {
    for (const job of jobs) {
      job.thread = undefined;
      job.end({ kind: 'returned' });
    }
  }

  /** Threads beyond `threadCount`, those of seceded tasks aside. */
  private get surplus(): number {
    return this.threads.size - this.seceded.size - this.threadCount;
  }

  /** A thread took the place of each that seceded; when that one counts again, one is too many. */
  private endSurplus(): void {
    if (this.surplus <= 0) return;
    for (const thread of this.threads) {
      if (!thread.isIdle) continue;
      this.threads.delete(thread);
      void thread.close();
      if (this.surplus <= 0) return;
    }
  }

  private onSecede(thread: TaskThread, hasSeceded: boolean): void {
    if (hasSeceded) {
      this.seceded.add(thread);
      this.enlistAgain(thread.takeBack());
    } else this.seceded.delete(thread);
    this.endSurplus();
    this.dispatch();
  }

  private onProgress(thread: TaskThread): void {
    if (thread.isIdle) this.seceded.delete(thread);
    this.endSurplus();
    this.dispatch();
  }

  private addThread(): TaskThread {
    const { clock, heapLimitMb, tidyBytes, abortGraceMs = 5000, cluster } = this.options;
    const thread = new TaskThread({
      clock,
      heapLimitMb,
      tidyBytes,
      abortGraceMs,
      cluster,
      onSecede: (thread, hasSeceded) => this.onSecede(thread, hasSeceded),
      onProgress: (thread) => this.onProgress(thread),
      onGone: (gone, error, left) => this.onGone(gone, error, left),
    });
    this.threads.add(thread);
    return thread;
  }

  private onGone(
    thread: TaskThread,
    error: YardmasterError | undefined,
    left: readonly Job[],
  ): void {
    this.threads.delete(thread);
    this.seceded.delete(thread);
    this.enlistAgain(left);
    if (this.closing !== undefined) {
      this.dispatch();
      return;
    }
    if (error !== undefined) this.options.log?.warn({ err: error }, error.message);
    if (thread.hasStarted && this.surplus < 0) this.addThread();
    this.dispatch();
  }
}

function closedResult(key: string): ExecutionResult {
  return { kind: 'failure', error: describeFailure(closedError(key)) };
}
