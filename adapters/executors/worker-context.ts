import {
  type Clock,
  type ExecutableTask,
  type ExecutionResult,
  type ExecutorContext,
  type Logger,
  type RunSettings,
  type TaskCall,
  YardmasterError,
} from '../../core/api/index.ts';
import { hint } from '../../core/shared/words.ts';
import { Reach } from '../peers/task-reach.ts';
import { type ClusterReach, describeFailure, loadCall, runTask } from '../tasks/index.ts';

/** The settings of a worker that its executor uses. */
export interface WorkerContextOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly threadCount: number;
  readonly killGraceMs: number;
  /** Bytes that tasks may leave behind in a thread before it collects them. */
  readonly tidyBytes?: number;
  /** The parts with which tasks reach their cluster. Default: they cannot. */
  readonly cluster?: ClusterReach;
}

/** The context in which a worker makes its executor. The built-in executors read what the contract does not have. */
export class WorkerContext implements ExecutorContext {
  readonly clock: Clock;
  readonly log: Logger;
  readonly threadCount: number;
  readonly killGraceMs: number;
  readonly tidyBytes: number | undefined;
  readonly cluster: ClusterReach | undefined;
  private readonly reach: Reach | undefined;

  constructor({ clock, log, threadCount, killGraceMs, tidyBytes, cluster }: WorkerContextOptions) {
    this.clock = clock;
    this.log = log;
    this.threadCount = threadCount;
    this.killGraceMs = killGraceMs;
    this.tidyBytes = tidyBytes;
    this.cluster = cluster;
    this.reach = cluster && new Reach(cluster, clock);
  }

  load(task: ExecutableTask): Promise<TaskCall> {
    return loadCall(task, this.reach);
  }

  run(task: ExecutableTask, settings: RunSettings): Promise<ExecutionResult> {
    const { signal, slot, call, ...others } = settings;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) refuseSetting(unknown);
    if (task.actorAt !== undefined) return Promise.resolve(noActors(task.key));
    const { clock, reach: surroundings } = this;
    return runTask(task, { signal, slot, call, nowMs: () => clock.nowMs(), surroundings });
  }

  /** Closes the connections of tasks. */
  close(): void {
    this.reach?.close();
  }
}

function refuseSetting(name: string): never {
  const known = ['signal', 'slot', 'call'];
  const message = `context.run: there is no setting "${name}"${hint(name, known)}; there are ${known.join(', ')}`;
  throw new YardmasterError('ERR_EXECUTOR', message, { setting: name });
}

function noActors(key: string): ExecutionResult {
  const message = `"${key}" makes an actor, which the executor of this worker cannot have; submit it to a worker with threads`;
  const error = describeFailure(new YardmasterError('ERR_EXECUTOR', message, { key }));
  return { kind: 'failure', error };
}
