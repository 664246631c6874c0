import { YardmasterError } from '../api/errors.ts';
import type { Executor } from '../api/executor.ts';
import type { WorkerMemory } from './worker-memory.ts';
import type { WorkerEnd } from './worker-options.ts';
import type { WorkerLink } from './worker-link.ts';
import type { WorkerPlugins } from './worker-plugins.ts';
import type { Closer, WorkerServing } from './worker-serving.ts';

/** What is closed when a worker ends. */
export interface EndingParts {
  readonly link: WorkerLink;
  readonly plugins: WorkerPlugins;
  readonly serving: WorkerServing;
  readonly executor: Executor;
  readonly memory: WorkerMemory;
  readonly closer: Closer;
  /** Timers, runs and transfers: nothing is begun any more. */
  stopWork(): void;
  onEnd(end: WorkerEnd): void;
}

/** The end of a worker, which comes once, for whatever reason comes first: its parts close one by one. */
export class WorkerEnding {
  /** Resolves when everything has closed. */
  readonly finished: Promise<WorkerEnd>;
  private closing: Promise<void> | undefined;
  private resolveFinished!: (end: WorkerEnd) => void;

  constructor(private readonly parts: EndingParts) {
    this.finished = new Promise((resolve) => {
      this.resolveFinished = resolve;
    });
  }

  get hasBegun(): boolean {
    return this.closing !== undefined;
  }

  /** Never rejects: what cannot be closed is named in the log. */
  begin(end: WorkerEnd): Promise<void> {
    this.closing ??= this.close(end);
    return this.closing;
  }

  /** It never came to register. The executor stays the caller's. Never rejects. */
  abandon(error: Error): Promise<void> {
    this.closing ??= this.closeUnregistered(error);
    return this.closing;
  }

  private async close(end: WorkerEnd): Promise<void> {
    const { link, plugins, executor, memory, closer } = this.parts;
    link.stop();
    this.parts.stopWork();
    if (!link.isClosed) {
      // The scheduler then knows that the goodbye is meant.
      link.report({ op: 'worker-status-change', status: 'closing' });
      plugins.call('statusChanged', 'closing');
      await closer.attempt('the scheduler', () => link.close());
    }
    await plugins.close();
    await this.stopServing(end.error);
    await closer.attempt('the executor', () => executor.close());
    memory.close();
    this.resolveFinished(end);
    this.parts.onEnd(end);
  }

  private async closeUnregistered(error: Error): Promise<void> {
    const { plugins, memory } = this.parts;
    this.parts.stopWork();
    await this.stopServing(error);
    await plugins.close();
    memory.close();
  }

  private async stopServing(error: Error | undefined): Promise<void> {
    const { serving, link } = this.parts;
    await serving.stop(error);
    link.abort(error ?? new YardmasterError('ERR_CLOSED', `${serving.address} closes`));
  }
}
