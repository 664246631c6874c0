import { token, type Token } from '../api/plugin.ts';
import type { Clock } from '../api/clock.ts';
import type { SchedulerKernel } from '../kernel/scheduler-kernel.ts';
import type { Stimulus } from '../messages/stimulus.ts';
import { EVENT_BUS, type EventBus } from '../plugin-host/event-bus.ts';
import { type HookRegistry, HOOKS } from '../plugin-host/hook-table.ts';
import { inject } from '../plugin-host/injection/di.ts';
import { CLOCK } from '../plugin-host/injection/tokens.ts';
import { DELIVERY, type Delivery } from './delivery.ts';
import { SHUTDOWN, type Shutdown } from './life/shutdown.ts';
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
  ) {
    queue.consume((stimulus) => this.handle(stimulus));
  }

  private handle(stimulus: Stimulus): void {
    this.hooks.stimulusId = stimulus.stimulusId;
    this.bus.hold();
    const nowMs = this.clock.nowMs();
    try {
      this.delivery.deliver(this.kernel.handle(stimulus, nowMs), stimulus);
    } catch (cause) {
      const { op, stimulusId } = stimulus;
      this.shutdown.stopBecause(`the stimulus ${stimulusId} (${op}) could not be handled`, cause);
    }
    this.queue.runChanges();
    this.bus.release();
    const durationMs = this.clock.nowMs() - nowMs;
    if (durationMs >= SLOW_MS) this.slowStimuli.report(stimulus, durationMs);
    if (this.kernel.isUnsettled) this.clientQueues.continueLater(stimulus);
    if ('client' in stimulus) this.reservations.handled(stimulus);
  }
}
