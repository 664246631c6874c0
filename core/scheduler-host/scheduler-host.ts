import { token, type Token } from '../api/plugin.ts';
import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import type { Outbox } from '../kernel/outbox.ts';
import type { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { EVENT_BUS, type EventBus } from '../plugin-host/event-bus.ts';
import { type HookRegistry, HOOKS } from '../plugin-host/hook-table.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { CLOCK } from '../plugin-host/injection/tokens.ts';
import { blame } from './containment.ts';
import { DELIVERY, type Delivery } from './delivery.ts';
import { JOURNAL, type SchedulerJournal } from './journal.ts';
import { ERROR_REPORTS, type ErrorReports } from './life/error-reports.ts';
import { SHUTDOWN, type Shutdown } from './life/shutdown.ts';
import { SESSIONS, type Sessions } from './sessions/sessions.ts';
import { CLIENT_QUEUES, type ClientQueues } from './sessions/client-queues.ts';
import { DATA_RESERVATIONS, type DataReservations } from './sessions/data-reservations.ts';
import { SLOW_MS, SLOW_STIMULI, type SlowStimulusMonitor } from './slow-stimulus-monitor.ts';
import { STIMULUS_QUEUE, type StimulusQueue } from './stimulus-queue.ts';
import { KERNEL } from './tokens.ts';

export const SCHEDULER_HOST: Token<SchedulerHost> = token('scheduler-host');

/**
 * The life of a stimulus. Stimuli are handled one at a time and completely: the kernel decides, what it
 * sends leaves before the next stimulus, and events are published after.
 */
export class SchedulerHost {
  constructor(
    @inject(STIMULUS_QUEUE) private readonly queue: StimulusQueue,
    @inject(KERNEL) private readonly kernel: SchedulerKernel,
    @inject(DELIVERY) private readonly delivery: Delivery,
    @inject(HOOKS) private readonly hooks: HookRegistry,
    @inject(EVENT_BUS) private readonly bus: EventBus,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(SLOW_STIMULI) private readonly slowStimuli: SlowStimulusMonitor,
    @inject(CLIENT_QUEUES) private readonly clientQueues: ClientQueues,
    @inject(DATA_RESERVATIONS) private readonly reservations: DataReservations,
    @inject(SHUTDOWN) private readonly shutdown: Shutdown,
    @inject(SESSIONS) private readonly sessions: Sessions,
    @inject(ERROR_REPORTS) private readonly errors: ErrorReports,
    @inject(JOURNAL) private readonly journal: SchedulerJournal,
  ) {
    queue.consume((stimulus) => this.handle(stimulus));
  }

  private handle(stimulus: Stimulus): void {
    this.hooks.stimulusId = stimulus.stimulusId;
    this.bus.hold();
    const nowMs = this.clock.nowMs();
    let outbox: Outbox | undefined;
    try {
      if (this.journal.isOn) this.journal.before(stimulus);
      outbox = this.kernel.handle(stimulus, nowMs);
    } catch (cause) {
      outbox = this.contain(stimulus, cause);
    }
    try {
      if (this.journal.isOn) this.journal.after();
      if (outbox !== undefined) this.delivery.deliver(outbox, stimulus);
    } catch (cause) {
      this.stop(stimulus, cause);
    }
    this.queue.runChanges();
    this.bus.release();
    const durationMs = this.clock.nowMs() - nowMs;
    if (durationMs >= SLOW_MS) this.slowStimuli.report(stimulus, durationMs);
    if (this.kernel.isUnsettled) this.clientQueues.continueLater(stimulus);
    if ('client' in stimulus || stimulus.op === 'restart') this.reservations.handled(stimulus);
  }

  /**
   * The stimulus failed. When the state is sound without the rest of it, the sender gets the error and the scheduler
   * continues; otherwise it stops.
   */
  private contain(stimulus: Stimulus, cause: unknown): Outbox | undefined {
    // A plugin whose hooks must not fail says so by this error.
    if (YardmasterError.is(cause, 'ERR_PLUGIN_HOOK')) {
      this.stop(stimulus, cause);
      return undefined;
    }
    try {
      const outbox = this.kernel.recover();
      const { error, instead } = blame(this.sessions, stimulus, cause);
      this.errors.report(error);
      if (instead !== undefined) this.queue.put(instead);
      return outbox;
    } catch {
      this.stop(stimulus, cause);
      return undefined;
    }
  }

  private stop({ op, stimulusId }: Stimulus, cause: unknown): void {
    this.shutdown.stopBecause(`the stimulus ${stimulusId} (${op}) could not be handled`, cause);
  }
}
