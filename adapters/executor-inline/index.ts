import {
  type Clock,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type TaskSlot,
  YardmasterError,
} from '../../core/api/index.ts';
import { type ClusterReach, describeFailure, LocalSurroundings, runTask } from '../tasks/index.ts';

export interface InlineExecutorOptions {
  /** Tasks at once; they take turns at their awaits. Default 1. */
  readonly threadCount?: number;
  /** Times the runs. */
  readonly clock: Clock;
  /** How tasks reach their cluster. Default: they cannot. */
  readonly cluster?: ClusterReach;
}

/**
 * Runs tasks in this very thread: for tests, and for tasks that only wait. A task that computes
 * blocks everything else here, and one that never returns cannot be stopped.
 */
export class InlineExecutor implements Executor {
  readonly threadCount: number;
  private readonly clock: Clock;
  /** Ends of running tasks, for when the executor closes. */
  private readonly running = new Set<() => void>();
  private readonly surroundings: LocalSurroundings | undefined;
  private isClosed = false;

  constructor({ threadCount = 1, clock, cluster }: InlineExecutorOptions) {
    this.threadCount = threadCount;
    this.clock = clock;
    this.surroundings =
      cluster && new LocalSurroundings(cluster.scheduler, cluster.transports, clock);
  }

  run(task: ExecutableTask, signal: AbortSignal, slot?: TaskSlot): Promise<ExecutionResult> {
    if (this.isClosed) return Promise.resolve(closedResult(task.key));
    return new Promise((resolve) => {
      const fail = (): void => resolve(closedResult(task.key));
      this.running.add(fail);
      // Never rejects.
      const { surroundings } = this;
      const nowMs = (): number => this.clock.nowMs();
      void runTask(task, { signal, nowMs, slot, surroundings }).then((result) => {
        this.running.delete(fail);
        resolve(result);
      });
    });
  }

  /** Running tasks count as failed at once; nothing can stop them. */
  close(): Promise<void> {
    this.isClosed = true;
    for (const fail of this.running) fail();
    this.running.clear();
    this.surroundings?.close();
    return Promise.resolve();
  }
}

function closedResult(key: string): ExecutionResult {
  const message = `the executor closed before "${key}" was done`;
  return {
    kind: 'failure',
    error: describeFailure(new YardmasterError('ERR_CLOSED', message, { key })),
  };
}
