import {
  type ExecutionResult,
  type ExecutorContext,
  YardmasterError,
} from '../../core/api/index.ts';
import { hint } from '../../core/shared/words.ts';
import { reachOf } from '../peers/task-reach.ts';
import { type ClusterReach, describeFailure, loadCall, runTask } from '../tasks/index.ts';

/** The settings of a worker that its executor uses. The built-in executors read what the contract does not have. */
export interface WorkerContextOptions extends Omit<ExecutorContext, 'load' | 'run'> {
  /**
   * Bytes that tasks may leave behind in a thread (copies of inputs, values that were returned) before it
   * collects them. Default: the engine does as it likes, which with few large buffers is late.
   */
  readonly tidyBytes?: number;
  /** The parts with which tasks reach their cluster. Default: they cannot. */
  readonly cluster?: ClusterReach;
}

/** The context in which a worker makes its executor. */
export interface WorkerContext extends ExecutorContext, WorkerContextOptions {
  /** Closes the connections of tasks. */
  close(): void;
}

/** Adds to the settings of a worker the ways to run a task. */
export function workerContext(options: WorkerContextOptions): WorkerContext {
  const { clock, cluster } = options;
  const reach = reachOf(cluster, clock);
  return {
    ...options,
    load: (task) => loadCall(task, reach),
    run: (task, { signal, slot, call, ...others }) => {
      const [unknown] = Object.keys(others);
      if (unknown !== undefined) refuseSetting(unknown);
      if (task.actorAt !== undefined) return Promise.resolve(noActors(task.key));
      const nowMs = (): number => clock.nowMs();
      return runTask(task, { signal, slot, call, nowMs, surroundings: reach });
    },
    close: () => reach?.close(),
  };
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
