import { type Logger, token, type Token } from '../api/plugin.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { LOGGER } from '../plugin-host/injection/tokens.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { WorkerKernel } from '../worker/worker-kernel.ts';
import { WORKER_IDENTITY, WORKER_KERNEL } from './tokens.ts';
import { WORKER_ENDING, type WorkerEnding } from './worker-ending.ts';
import { WORKER_LINK, type WorkerLink } from './scheduler/worker-link.ts';
import type { WorkerEnd } from './worker-options.ts';

export const HOSTED_WORKER: Token<HostedWorker> = token('hosted-worker');

/**
 * A worker as programs see it. It closes when the scheduler says so, when the scheduler is gone and it is not
 * configured to come back, and when its kernel finds itself broken.
 */
export class HostedWorker {
  /** Resolves when it has closed, for whatever reason. */
  readonly finished: Promise<WorkerEnd>;

  constructor(
    @inject(WORKER_IDENTITY) readonly identity: WorkerIdentity,
    @inject(WORKER_KERNEL) private readonly kernel: WorkerKernel,
    @inject(WORKER_LINK) private readonly link: WorkerLink,
    @inject(WORKER_ENDING) private readonly ending: WorkerEnding,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    this.finished = ending.finished;
  }

  /** Where peers reach it. */
  get address(): string {
    return this.identity.address;
  }

  get name(): string {
    return this.identity.name;
  }

  /**
   * Reports to the scheduler, gives up what runs, and closes the executor.
   * @param end - why, and whether another worker shall take its place
   */
  close(end: Omit<WorkerEnd, 'error'> = { reason: 'asked to close' }): Promise<void> {
    return this.ending.begin(end);
  }

  /**
   * Asks the scheduler to take it out of service and to move what only it holds to other workers.
   * Never rejects: what was not moved in time is computed again elsewhere.
   *
   * @param timeoutMs - milliseconds to wait for that
   */
  async retire(timeoutMs: number): Promise<void> {
    const { link, address, kernel } = this;
    if (link.isClosed || kernel.tables.tasks.size === 0) return;
    try {
      await link.retire(timeoutMs);
    } catch (error) {
      if (this.ending.hasBegun) return;
      this.log.warn({ err: error, address }, 'the worker closes with results on it');
    }
  }

  /** Publishes a message under topics on the scheduler. */
  logEvent(topics: readonly string[], message: unknown): void {
    this.link.report({ op: 'log-event', topics, message });
  }
}
