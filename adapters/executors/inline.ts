import {
  type ActorCall,
  type AsidePlace,
  type Clock,
  defineExecutor,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type TaskSlot,
  type TaskStack,
  YardmasterError,
} from '../../core/api/index.ts';
import { inBackground } from '../../core/shared/timers.ts';
import { type Reach, reachOf } from '../peers/task-reach.ts';
import { ActorHost, describeFailure, runTask } from '../tasks/index.ts';
import type { WorkerContextOptions } from './worker-context.ts';

/**
 * Runs a function that is no task, in this very thread. Never rejects. When the signal is aborted, the result of the
 * function is no longer awaited.
 */
export function runHere(
  task: ExecutableTask,
  signal: AbortSignal,
  clock: Clock,
  surroundings: Reach | undefined,
): Promise<readonly ExecutionResult[]> {
  const running = runTask(task, { signal, nowMs: () => clock.nowMs(), surroundings });
  return new Promise((resolve) => {
    const end = (): void => {
      const error = new YardmasterError('ERR_CLOSED', 'the worker closed before it was done');
      resolve([{ kind: 'failure', error: describeFailure(error) }]);
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
    const ended = running.then((result) => {
      signal.removeEventListener('abort', end);
      resolve([result]);
    });
    inBackground(ended, (error) => resolve([{ kind: 'failure', error: describeFailure(error) }]));
  });
}

interface InlineExecutorOptions extends Pick<WorkerContextOptions, 'clock' | 'cluster'> {
  /** Tasks at once; they take turns at their awaits. Default 1. */
  readonly threadCount?: number;
}

/**
 * Runs tasks in this very thread: for tests, and for tasks that only wait. A task that computes
 * blocks everything else here, and one that never returns cannot be stopped.
 */
export class InlineExecutor implements Executor {
  readonly threadCount: number;
  readonly hasEventLoops = true;
  private readonly clock: Clock;
  /** Ends of running tasks, for when the executor closes. */
  private readonly running = new Set<() => void>();
  private readonly surroundings: Reach | undefined;
  private readonly actors: ActorHost;
  private isClosed = false;

  constructor({ threadCount = 1, clock, cluster }: InlineExecutorOptions) {
    this.threadCount = threadCount;
    this.clock = clock;
    this.surroundings = reachOf(cluster, clock);
    this.actors = new ActorHost(() => clock.nowMs(), this.surroundings);
  }

  run(task: ExecutableTask, signal: AbortSignal, slot?: TaskSlot): Promise<ExecutionResult> {
    if (this.isClosed) return Promise.resolve(closedResult(task.key));
    return new Promise((resolve) => {
      const fail = (): void => resolve(closedResult(task.key));
      this.running.add(fail);
      const started = this.start(task, signal, slot).then((result) => {
        this.running.delete(fail);
        resolve(result);
      });
      inBackground(started, (error) => resolve({ kind: 'failure', error: describeFailure(error) }));
    });
  }

  callActor(call: ActorCall): Promise<ExecutionResult> {
    return this.actors.call(call);
  }

  releaseActor(key: string): void {
    this.actors.release(key);
  }

  /** The thread of the worker is the only one. */
  runAside(
    task: ExecutableTask,
    _place: AsidePlace,
    signal: AbortSignal,
  ): Promise<readonly ExecutionResult[]> {
    return runHere(task, signal, this.clock, this.surroundings);
  }

  /** Always empty: no task computes while this code runs on the only thread. */
  callStacks(): Promise<ReadonlyMap<string, TaskStack>> {
    return Promise.resolve(new Map());
  }

  private start(
    task: ExecutableTask,
    signal: AbortSignal,
    slot: TaskSlot | undefined,
  ): Promise<ExecutionResult> {
    if (task.actorAt !== undefined) return this.actors.make(task);
    const { surroundings } = this;
    return runTask(task, { signal, nowMs: () => this.clock.nowMs(), slot, surroundings });
  }

  /** Running tasks count as failed at once; nothing can stop them. */
  close(): Promise<void> {
    this.isClosed = true;
    for (const fail of this.running) fail();
    this.running.clear();
    this.actors.close();
    this.surroundings?.close();
    return Promise.resolve();
  }
}

export const inline = defineExecutor({
  name: 'inline',
  apiVersion: 1,
  create: (context) => new InlineExecutor(context),
});

function closedResult(key: string): ExecutionResult {
  const message = `the executor closed before "${key}" was done`;
  return {
    kind: 'failure',
    error: describeFailure(new YardmasterError('ERR_CLOSED', message, { key })),
  };
}
