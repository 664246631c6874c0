import { type Logger, token, type Token } from '../../api/plugin.ts';
import type { Config } from '../../config/types.ts';
import { EVENT_BUS, type EventBus } from '../../plugin-host/event-bus.ts';
import { EXTENSIONS, type Extensions } from '../plugins/extensions.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CONFIG, LOGGER } from '../../plugin-host/injection/tokens.ts';
import { COMMANDS, type Commands } from '../commands/commands.ts';
import { WORKER_CHANNELS, type WorkerChannels } from '../results/worker-channels.ts';
import { type Listeners, LISTENERS } from '../sessions/listeners.ts';
import { RECONNECT_GRACE, type ReconnectGrace } from '../sessions/reconnect-grace.ts';
import { HOST_TIMERS, type HostTimers } from './host-timers.ts';
import { type Loading, LOADING } from './loading.ts';
import { closedError, SHUTDOWN, type Shutdown } from './shutdown.ts';

export const SCHEDULER_LIFE: Token<SchedulerLife> = token('scheduler-life');

/** The order in which a scheduler starts, and in which it closes. */
export class SchedulerLife {
  constructor(
    @inject(CONFIG) private readonly config: Config,
    @inject(LOADING) private readonly loading: Loading,
    @inject(EXTENSIONS) private readonly extensions: Extensions,
    @inject(HOST_TIMERS) private readonly timers: HostTimers,
    @inject(SHUTDOWN) private readonly shutdown: Shutdown,
    @inject(RECONNECT_GRACE) private readonly reconnectGrace: ReconnectGrace,
    @inject(LISTENERS) private readonly listeners: Listeners,
    @inject(WORKER_CHANNELS) private readonly channels: WorkerChannels,
    @inject(COMMANDS) private readonly commands: Commands,
    @inject(EVENT_BUS) private readonly bus: EventBus,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    shutdown.runs(() => this.end());
  }

  /** Starts plugins and timers. When that fails, everything is closed again. */
  async start(): Promise<void> {
    try {
      await this.extensions.start();
      this.timers.start(this.config.scheduler, (sinceMs) => this.onIdle(sinceMs));
    } catch (error) {
      await this.shutdown.close();
      throw error;
    }
  }

  private onIdle(sinceMs: number): void {
    const reason = 'idle-timeout-exceeded';
    this.log.info({ reason, sinceMs }, 'the scheduler closes: it had nothing to do for too long');
    this.shutdown.closeInBackground();
  }

  private async end(): Promise<void> {
    this.listeners.stopAccepting();
    await this.extensions.beforeClose();
    this.shutdown.stopHandling();
    this.timers.cancel();
    this.reconnectGrace.clear();
    await this.extensions.close();
    await this.listeners.close();
    this.channels.abort();
    this.commands.close(closedError());
    this.bus.emit('closed');
    this.bus.dispose();
    await this.loading.close();
  }
}
