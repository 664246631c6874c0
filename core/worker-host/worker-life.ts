import { type Clock, every, type Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Executor } from '../api/executor.ts';
import { type Logger } from '../api/plugin.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, LOGGER } from '../host/tokens.ts';
import type { WorkerIdentity } from '../state/worker.ts';
import { WorkerKernel } from '../worker/worker-kernel.ts';
import { SchedulerMessages } from './scheduler-messages.ts';
import { EXECUTOR, WORKER_IDENTITY, WORKER_OPTIONS } from './tokens.ts';
import { WorkerActivities } from './worker-activities.ts';
import { WorkerEnding } from './worker-ending.ts';
import { WorkerInbox } from './worker-inbox.ts';
import { WorkerInspection } from './worker-inspection.ts';
import { WorkerLink } from './worker-link.ts';
import { WorkerMemory } from './worker-memory.ts';
import type { WorkerEnd, WorkerHostOptions } from './worker-options.ts';
import { WorkerPlugins } from './worker-plugins.ts';
import { Closer, WorkerServing } from './worker-serving.ts';
import { WorkerStatusTracker } from './worker-status.ts';

const FIND_MISSING_MS = 1000;

/** The order in which a worker starts, and in which it closes. */
@collaborator
export class WorkerLife {
  private readonly timers: Timer[] = [];

  constructor(
    @inject(WORKER_OPTIONS) private readonly options: WorkerHostOptions,
    @inject(WORKER_IDENTITY) private readonly identity: WorkerIdentity,
    private readonly kernel: WorkerKernel,
    private readonly link: WorkerLink,
    private readonly inbox: WorkerInbox,
    private readonly plugins: WorkerPlugins,
    private readonly messages: SchedulerMessages,
    private readonly status: WorkerStatusTracker,
    private readonly activities: WorkerActivities,
    private readonly inspection: WorkerInspection,
    private readonly serving: WorkerServing,
    @inject(EXECUTOR) private readonly executor: Executor,
    private readonly memory: WorkerMemory,
    private readonly ending: WorkerEnding,
    private readonly closer: Closer,
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
