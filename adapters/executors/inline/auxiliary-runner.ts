import {
  type Clock,
  type ExecutableTask,
  type ExecutionResult,
  YardmasterError,
} from '../../../core/api/index.ts';
import { inBackground } from '../../../core/shared/background.ts';
import { Reach } from '../../peers/task-reach.ts';
import { type ClusterReach, describeFailure, runTask } from '../../tasks/index.ts';

/** Runs functions that are no tasks, in this very thread. */
export class AuxiliaryRunner {
  private readonly clock: Clock;
  private readonly reach: Reach | undefined;

  constructor({ clock, cluster }: { readonly clock: Clock; readonly cluster?: ClusterReach }) {
    this.clock = clock;
    this.reach = cluster && new Reach(cluster, clock);
  }

  /** Never rejects. When the signal is aborted, the result of the function is no longer awaited. */
  run(task: ExecutableTask, signal: AbortSignal): Promise<readonly ExecutionResult[]> {
    const { clock, reach: surroundings } = this;
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

  close(): void {
    this.reach?.close();
  }
}
