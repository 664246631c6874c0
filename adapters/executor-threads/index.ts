import { availableParallelism } from 'node:os';

import {
  type ActorCall,
  type Clock,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type Logger,
  type TaskSlot,
  type Timer,
  YardmasterError,
} from '../../core/api/index.ts';
import { type ClusterReach, describeFailure } from '../tasks/index.ts';
import { ActorThreads } from './actor-threads.ts';
import { TaskThread } from './task-thread.ts';

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
  /** Told when a thread dies without a task. Default: nobody. */
  readonly log?: Logger;
  /** How tasks reach their cluster. Default: they cannot. */
  readonly cluster?: ClusterReach;
}

interface Waiting {
  readonly task: ExecutableTask;
  readonly signal: AbortSignal;
  readonly slot: TaskSlot | undefined;
  readonly resolve: (result: ExecutionResult) => void;
}

/**
 * Runs tasks in threads of this process. A thread that dies (`process.exit`, out of memory, an error
 * that nothing catches) fails its task and is replaced; no other task notices.
 */
export class ThreadExecutor implements Executor {
  readonly threadCount: number;
  onActorLost: ((key: string) => void) | undefined;
  private readonly actors: ActorThreads;
  private readonly threads = new Set<TaskThread>();
  private readonly idle: TaskThread[] = [];
  /** Threads whose tasks go on beside those that count. */
  private readonly seceded = new Set<TaskThread>();
  private readonly waiting: Waiting[] = [];
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
    if (task.actorAt !== undefined) {
      if (this.closing !== undefined) return Promise.resolve(closedResult(task.key));
      return this.makeActor(task, task.actorAt, signal);
    }
    return new Promise((resolve) => {
      this.waiting.push({ task, signal, slot, resolve });
      this.dispatch();
    });
  }

  callActor(call: ActorCall): Promise<ExecutionResult> {
    return this.actors.call(call);
  }

  releaseActor(key: string): void {
    this.actors.release(key);
  }

  /** Of each thread as of the end of its last task; what a task occupies while it runs is not known. */
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
    this.closing ??= Promise.all([
      this.actors.close(),
      ...[...this.threads].map((thread) => thread.close()),
    ]).then(() => undefined);
    this.dispatch();
    return this.closing;
  }

  /** One that is given up and not made in time loses its thread, unless others live there. */
  private async makeActor(
    task: ExecutableTask,
    actorAt: string,
    signal: AbortSignal,
  ): Promise<ExecutionResult> {
    const { clock, abortGraceMs = 5000 } = this.options;
    let timer: Timer | undefined;
    const onAbort = (): void => {
      timer = clock.setTimer(abortGraceMs, () => this.actors.release(task.key));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await this.actors.make(task, actorAt);
    } finally {
      signal.removeEventListener('abort', onAbort);
      timer?.cancel();
    }
  }

  /** Gives waiting tasks to idle threads; those beyond `threadCount` wait for their turn. */
  private dispatch(): void {
    while (this.waiting.length > 0) {
      if (this.closing !== undefined) {
        for (const { task, resolve } of this.waiting.splice(0)) resolve(closedResult(task.key));
        return;
      }
      // A thread that died before it could start is replaced when it is needed, not in a loop.
      if (this.idle.length === 0 && this.surplus < 0) this.addThread();
      const thread = this.idle.pop();
      if (thread === undefined) return;
      const { task, signal, slot, resolve } = this.waiting.shift() as Waiting;
      void thread.run(task, signal, slot).then((result) => {
        this.seceded.delete(thread);
        if (this.threads.has(thread)) this.idle.push(thread);
        this.endSurplus();
        resolve(result);
        this.dispatch();
      });
    }
  }

  /** Threads beyond `threadCount`, those of seceded tasks aside. */
  private get surplus(): number {
    return this.threads.size - this.seceded.size - this.threadCount;
  }

  /** A thread took the place of each that seceded; when that one counts again, one is too many. */
  private endSurplus(): void {
    while (this.surplus > 0) {
      const thread = this.idle.pop();
      if (thread === undefined) return;
      this.threads.delete(thread);
      void thread.close();
    }
  }

  private onSecede(thread: TaskThread, hasSeceded: boolean): void {
    if (hasSeceded) this.seceded.add(thread);
    else this.seceded.delete(thread);
    this.endSurplus();
    this.dispatch();
  }

  private addThread(): void {
    const { clock, heapLimitMb, tidyBytes, abortGraceMs = 5000, cluster } = this.options;
    const thread = new TaskThread({
      clock,
      heapLimitMb,
      tidyBytes,
      abortGraceMs,
      cluster,
      onSecede: (thread, hasSeceded) => this.onSecede(thread, hasSeceded),
      onGone: (gone, error) => this.onGone(gone, error),
    });
    this.threads.add(thread);
    this.idle.push(thread);
  }

  private onGone(thread: TaskThread, error: YardmasterError | undefined): void {
    this.threads.delete(thread);
    this.seceded.delete(thread);
    const index = this.idle.indexOf(thread);
    if (index >= 0) this.idle.splice(index, 1);
    if (this.closing !== undefined) return;
    if (error !== undefined) this.options.log?.warn({ err: error }, error.message);
    if (thread.hasStarted && this.surplus < 0) this.addThread();
    this.dispatch();
  }
}

function closedResult(key: string): ExecutionResult {
  const message = `the executor closed before "${key}" was done`;
  return {
    kind: 'failure',
    error: describeFailure(new YardmasterError('ERR_CLOSED', message, { key })),
  };
}
