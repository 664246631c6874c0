import { type Clock, every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Executor } from '../api/executor.ts';
import { type Logger, token, type Token } from '../api/plugin.ts';
import { CLOCK, inject, LOGGER } from '../plugin-host/injection.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import type { WorkerKernel } from '../worker/worker-kernel.ts';
import { SCHEDULER_MESSAGES, type SchedulerMessages } from './scheduler-messages.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_KERNEL, WORKER_OPTIONS } from './tokens.ts';
import { WORKER_ACTIVITIES, type WorkerActivities } from './worker-activities.ts';
import { WORKER_ENDING, type WorkerEnding } from './worker-ending.ts';
import { WORKER_INBOX, type WorkerInbox } from './worker-inbox.ts';
import { WORKER_INSPECTION, type WorkerInspection } from './worker-inspection.ts';
import { WORKER_LINK, type WorkerLink } from './worker-link.ts';
import { WORKER_MEMORY, type WorkerMemory } from './worker-memory.ts';
import type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';
import { WORKER_PLUGINS, type WorkerPlugins } from './worker-plugins.ts';
import { type Closer, CLOSER, WORKER_SERVING, type WorkerServing } from './worker-serving.ts';
import { WORKER_STATUS, type WorkerStatusTracker } from './worker-status.ts';

export const WORKER_LIFE: Token<WorkerLife> = token('worker-life');

const FIND_MISSING_MS = 1000;

/** The order in which a worker starts, and in which it closes. */
export class WorkerLife {
  private readonly timers: Timer[] = [];

  constructor(
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    @inject(WORKER_KERNEL) private readonly kernel: WorkerKernel,
    @inject(WORKER_LINK) private readonly link: WorkerLink,
    @inject(WORKER_INBOX) private readonly inbox: WorkerInbox,
    @inject(WORKER_PLUGINS) private readonly plugins: WorkerPlugins,
    @inject(SCHEDULER_MESSAGES) private readonly messages: SchedulerMessages,
    @inject(WORKER_STATUS) private readonly status: WorkerStatusTracker,
    @inject(WORKER_ACTIVITIES) private readonly activities: WorkerActivities,
    @inject(WORKER_INSPECTION) private readonly inspection: WorkerInspection,
    @inject(WORKER_SERVING) private readonly serving: WorkerServing,
    @inject(EXECUTOR) private readonly executor: Executor,
    @inject(WORKER_MEMORY) private readonly memory: WorkerMemory,
    @inject(WORKER_ENDING) private readonly ending: WorkerEnding,
    @inject(CLOSER) private readonly closer: Closer,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    ending.runs((end) => this.end(end));
  }

  /**
   * Sets plugins up, registers with the scheduler and begins. When that fails nothing is left behind but
   * the executor.
   */
  async start(): Promise<void> {
    const { plugins, options, link } = this;
    try {
      await plugins.start(options.plugins ?? []);
      const { workerPlugins = [], nannyPlugins = [] } = await link.register();
      await plugins.agree(workerPlugins);
      await options.nannyPlugins?.agree(nannyPlugins);
    } catch (error) {
      await this.ending.abandon(() => this.abandon(error as Error));
      throw error;
    }
    this.begin();
  }

  private begin(): void {
    if (this.ending.hasBegun) return; // It was asked to close while its plugins were set up.
    this.inbox.open();
    const { memory, timers, link, clock } = this;
    const { address, name } = this.identity;
    const { schedulerAddress: scheduler } = this.options;
    if (memory.isLimited) timers.push(every(clock, memory.monitorIntervalMs, () => memory.poll()));
    timers.push(every(clock, FIND_MISSING_MS, () => this.findMissing()));
    this.log.info({ address, worker: name, scheduler }, 'worker registered');
    if (link.isClosed) this.messages.onGone(undefined);
    this.inbox.drain();
  }

  private findMissing(): void {
    if (this.kernel.tables.missing.size === 0) return;
    this.inbox.feed({ op: 'find-missing', stimulusId: this.link.nameEvent('find-missing') });
  }

  private async end(end: WorkerEnd): Promise<void> {
    const { link, plugins, executor, memory, closer } = this;
    link.stop();
    this.stopWork();
    if (!link.isClosed) {
      // The scheduler then knows that the worker leaves on purpose.
      link.report({ op: 'worker-status-change', status: 'closing' });
      plugins.call('statusChanged', 'closing');
      await closer.attempt('the scheduler', () => link.close());
    }
    await plugins.close();
    await this.stopServing(end.error);
    await closer.attempt('the executor', () => executor.close());
    memory.close();
    this.ending.complete(end);
    this.status.end();
    this.options.onClose?.(end);
  }

  private async abandon(error: Error): Promise<void> {
    this.stopWork();
    await this.stopServing(error);
    await this.plugins.close();
    this.memory.close();
  }

  /** Nothing is begun any more, and what comes in is ignored. */
  private stopWork(): void {
    for (const timer of this.timers) timer.cancel();
    this.activities.close();
    this.inspection.close();
    this.inbox.close();
  }

  private async stopServing(error: Error | undefined): Promise<void> {
    const { serving, link } = this;
    await serving.stop(error);
    link.abort(error ?? new YardmasterError('ERR_CLOSED', `${serving.address} closes`));
  }
}
