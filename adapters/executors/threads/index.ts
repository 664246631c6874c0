import { availableParallelism } from 'node:os';

import {
  type AbortRun,
  type ActorCall,
  type AsidePlace,
  defineExecutor,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type FunctionSpec,
  type Logger,
  RunAborted,
  type TaskProfile,
  type TaskSlot,
  type TaskStack,
  type Timer,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/timers.ts';
import { type Reach, reachOf } from '../../peers/task-reach.ts';
import { describeFailure, runTask } from '../../tasks/index.ts';
import { runHere } from '../inline.ts';
import type { WorkerContextOptions } from '../worker-context.ts';
import { ActorThreads, ThreadPool } from './thread-pool.ts';
import { RunDispatcher } from './run-queue.ts';
import { Job } from './task-thread.ts';
import { closedResult } from './thread-errors.ts';
import { ThreadProfiler } from './thread-profiler.ts';
import { stacksOf } from './thread-run.ts';

/** The options of a thread executor: what a worker says of its executor, and how the threads are used. */
export interface ThreadExecutorOptions extends Omit<WorkerContextOptions, 'threadCount' | 'log'> {
  /** Threads, each of which runs one task at a time. Default: one for each core. */
  readonly threadCount?: number;
  /** Megabytes of the JavaScript heap of each thread. Default: Node's. */
  readonly heapLimitMb?: number;
  /** Milliseconds after which short runs are taken back from a thread that has begun none of its queue. Default 20. */
  readonly heldUpMs?: number;
  /** Logs the death of threads that ran no task. Default: no log. */
  readonly log?: Logger;
}

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
  readonly hasEventLoops = true;
  onActorLost: ((key: string) => void) | undefined;
  private readonly actors: ActorThreads;
  private readonly crew: ThreadPool;
  private profiler: ThreadProfiler | undefined;
  private readonly dealer: RunDispatcher;
  private readonly surroundings: Reach | undefined;
  private closing: Promise<void> | undefined;

  constructor(private readonly options: ThreadExecutorOptions) {
    this.threadCount = options.threadCount ?? availableParallelism();
    if (!Number.isInteger(this.threadCount) || this.threadCount < 1) {
      throw new YardmasterError('ERR_CONFIG', `${this.threadCount} is not a number of threads`, {
        threadCount: this.threadCount,
      });
    }
    const { clock, heapLimitMb, tidyBytes, cluster, log, killGraceMs } = options;
    this.actors = new ActorThreads({
      nowMs: () => clock.nowMs(),
      threadsMax: this.threadCount,
      heapLimitMb,
      tidyBytes,
      cluster,
      log,
      onLost: (key) => this.onActorLost?.(key),
    });
    this.crew = new ThreadPool({
      threadCount: this.threadCount,
      settings: { clock, heapLimitMb, tidyBytes, cluster, killGraceMs },
      log,
      onLeft: (jobs) => this.dealer.addAgain(jobs),
      onInterrupted: (jobs) => this.dealer.runAgain(jobs),
      onChange: () => this.dealer.deal(),
    });
    this.dealer = new RunDispatcher(this.crew, clock, options.heldUpMs);
    this.surroundings = reachOf(cluster, clock);
  }

  run(
    task: ExecutableTask,
    signal: AbortSignal,
    slot: TaskSlot = NO_SLOT,
  ): Promise<ExecutionResult> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        const { reason } = signal as { readonly reason: unknown };
        abort(reason instanceof RunAborted ? reason : undefined);
      };
      const onEnd = (result: ExecutionResult): void => {
        signal.removeEventListener('abort', onAbort);
        resolve(result);
      };
      const abort = this.start({ ...task, isShort: false }, slot, onEnd, false);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  begin(
    task: ExecutableTask,
    slot: TaskSlot = NO_SLOT,
    onEnd: (result: ExecutionResult) => void,
  ): AbortRun {
    return this.start(task, slot, onEnd, true);
  }

  private start(
    task: ExecutableTask,
    slot: TaskSlot,
    onEnd: (result: ExecutionResult) => void,
    mayReturn: boolean,
  ): AbortRun {
    if (task.actorAt !== undefined) return this.beginActor(task, task.actorAt, slot, onEnd);
    if (this.closing === undefined && isInFolder(task)) return this.readHere(task, onEnd);
    const job = new Job(task, slot, onEnd, mayReturn);
    this.dealer.add(job);
    return (reason) => this.dealer.abort(job, reason);
  }

  /** A thread would take longer to be asked than the result takes to be read. */
  private readHere(task: ExecutableTask, onEnd: (result: ExecutionResult) => void): AbortRun {
    const { surroundings, options } = this;
    const nowMs = (): number => options.clock.nowMs();
    const read = runTask(task, { nowMs, surroundings }).then(onEnd);
    inBackground(read, `the kept result of ${task.key} could not be handed on`);
    return () => undefined;
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
      this.crew.start();
      return Promise.all([...this.crew.threads].map((thread) => thread.runAside(task)));
    }
    return runHere(task, signal, this.options.clock, this.surroundings);
  }

  async callStacks(): Promise<ReadonlyMap<string, TaskStack>> {
    const running = [...this.crew.threads].flatMap((thread) => thread.running);
    const computing = running.filter(({ isWaiting }) => !isWaiting);
    const stacks = new Map<string, TaskStack>(
      running.map(({ key, threadId: thread }) => [key, { thread, frames: [] }]),
    );
    try {
      const seen = await stacksOf(
        new Map(computing.map(({ threadId, busyMs }) => [threadId, busyMs])),
      );
      for (const { key, threadId: thread } of computing) {
        const frames = seen.get(thread);
        if (frames !== undefined) stacks.set(key, { thread, frames });
        else
          stacks.set(key, {
            thread,
            frames: [],
            unseen: 'its thread did not stop to be looked at',
          });
      }
    } catch (error) {
      const unseen = `Node's inspector cannot be used: ${(error as Error).message}`;
      for (const { key, threadId: thread } of computing) {
        stacks.set(key, { thread, frames: [], unseen });
      }
    }
    return stacks;
  }

  profile(): Promise<TaskProfile> {
    this.profiler ??= new ThreadProfiler(this.crew.threads);
    return this.profiler.read();
  }

  /**
   * The sum of the values that the threads reported last; the memory of running tasks is not known.
   */
  get memoryBytes(): number {
    let total = this.actors.memoryBytes;
    for (const thread of this.crew.threads) total += thread.memoryBytes;
    return total;
  }

  collectGarbage(): void {
    for (const thread of this.crew.threads) thread.collectGarbage();
    this.actors.collectGarbage();
  }

  close(): Promise<void> {
    this.profiler?.stop();
    this.surroundings?.close();
    this.closing ??= Promise.all([this.actors.close(), this.crew.close()]).then(() => undefined);
    this.dealer.close();
    return this.closing;
  }

  /**
   * If an actor is cancelled and not made in time, its thread is terminated, unless other actors
   * live there.
   */
  private beginActor(
    task: ExecutableTask,
    actorAt: string,
    slot: TaskSlot,
    onEnd: (result: ExecutionResult) => void,
  ): AbortRun {
    const { clock, killGraceMs } = this.options;
    let timer: Timer | undefined;
    const making =
      this.closing === undefined
        ? this.actors.make(task, actorAt, slot)
        : Promise.resolve(closedResult(task.key));
    const ended = making.then((result) => {
      timer?.cancel();
      onEnd(result);
    });
    inBackground(ended, (error) => onEnd({ kind: 'failure', error: describeFailure(error) }));
    return () => {
      timer ??= clock.setTimer(killGraceMs, () => this.actors.release(task.key));
    };
  }
}

/** True when the task has only to be read from a folder of results, without code of others. */
function isInFolder({ runSpec }: ExecutableTask): boolean {
  const { persist } = (runSpec ?? {}) as Partial<FunctionSpec>;
  const store = persist?.store as { readonly folder?: unknown } | undefined;
  return persist?.isKept === true && typeof store?.folder === 'string';
}

export const threads = defineExecutor({
  name: 'threads',
  apiVersion: 1,
  create: (context) => new ThreadExecutor(context),
});
