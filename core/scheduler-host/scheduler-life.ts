import { type Clock, every, type Timer } from '../api/clock.ts';
import { type Logger } from '../api/plugin.ts';
import { configError } from '../config/problems.ts';
import type { LoadedConfig } from '../config/check.ts';
import type { Config } from '../config/types.ts';
import { SchedulerKernel } from '../kernel/kernel.ts';
import { EventBus } from '../plugin-host/hooks.ts';
import { ProblemList } from '../plugin-host/extension-options.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { CLOCK, CONFIG, LOADED_CONFIG, LOGGER } from '../host/tokens.ts';
import { PluginResolver } from '../plugin-host/plugin-resolver.ts';
import { Preloads } from '../plugin-host/load-extensions.ts';
import { TransportTable } from './transport-table.ts';
import { Commands } from './commands.ts';
import { ConfiguredExtensions, Extensions } from './extensions.ts';
import { ReconnectGrace } from './reconnect-grace.ts';
import { closedError, Shutdown } from './shutdown.ts';
import { INGRESS, type Ingress, STIMULI, type Stimuli } from './tokens.ts';
import { WorkerChannels } from './worker-channels.ts';

/** Loads and checks everything that the configuration names, before the kernel exists. */
@collaborator
export class Loading {
  private preloads: Preloads | undefined;

  constructor(
    @inject(LOADED_CONFIG) private readonly loaded: LoadedConfig,
    private readonly resolver: PluginResolver,
    private readonly extensions: ConfiguredExtensions,
    private readonly transports: TransportTable,
    @inject(CLOCK) private readonly clock: Clock,
    @inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Loads what is configured; nothing of it runs.
   * @throws YardmasterError with every problem
   */
  async load(): Promise<void> {
    const { resolver, clock, log } = this;
    const { origin, config } = this.loaded;
    const problems = new ProblemList(origin);
    const { transport, preload } = config.scheduler;
    await problems.attempt(undefined, () => this.transports.load(resolver));
    if (transport !== undefined) {
      const at = ['scheduler', 'transport'];
      const place = { origin, optionsAt: [...at, 'options'] };
      await problems.attempt(at, () => this.transports.addConfigured(transport, resolver, place));
    }
    await problems.attempt(undefined, async () => {
      const place = { origin, at: ['scheduler', 'preload'] };
      const context = { role: 'scheduler', clock, log } as const;
      this.preloads = await Preloads.load(preload, resolver, context, place);
    });
    await problems.attempt(undefined, () => this.extensions.load());
    problems.throwIfAny();
  }

  /** @throws YardmasterError `ERR_CONFIG` when nothing speaks the scheme of the configured address */
  async checkAddress(): Promise<void> {
    const { config, origin } = this.loaded;
    try {
      await this.transports.for(config.scheduler.address);
    } catch (error) {
      const message = `cannot be used: ${(error as Error).message}`;
      throw configError([{ at: ['scheduler', 'address'], message }], origin);
    }
  }

  /** Runs the preloads, and logs what was configured and has no effect. */
  async setUp(): Promise<void> {
    await this.preloads?.setUp();
    for (const note of this.loaded.notes) this.log.warn({}, note);
  }

  /** Never rejects. */
  async close(): Promise<void> {
    await this.preloads?.close();
  }

  /** Plugins with their sources, phases, hooks and slots, as a tree for people. */
  report(): string {
    const notes = this.loaded.notes.map((note) => `  ${note}`);
    return [this.extensions.report(), ...(notes.length === 0 ? [] : ['but', ...notes])].join('\n');
  }
}

/** The interval at which a scheduler that ends when it is idle checks whether it is. */
const CHECK_MS = 250;

/**
 * Since when a scheduler has had nothing to do: nothing queued, nothing that waits for a worker, nothing
 * on a worker, and no transition between two looks (Dask: `check_idle`).
 */
@collaborator
export class IdleWatch {
  private transitionCounter = -1;
  private sinceMs: number | undefined;

  constructor(
    private readonly kernel: SchedulerKernel,
    @inject(CLOCK) private readonly clock: Clock,
  ) {}

  /**
   * Looks. Short work between two looks counts, too. O(workers).
   * @returns milliseconds of the clock at the first of the looks in a row that saw an idle scheduler;
   *   undefined: it is busy, or was since the last look
   */
  look(): number | undefined {
    const { cluster, transitionCounter } = this.kernel;
    const isStill = transitionCounter === this.transitionCounter;
    this.transitionCounter = transitionCounter;
    const isIdle =
      isStill &&
      cluster.queued.size === 0 &&
      cluster.limits.open.size === 0 &&
      cluster.unrunnable.size === 0 &&
      cluster.workersByRank.every(({ processing }) => processing.size === 0);
    this.sinceMs = isIdle ? (this.sinceMs ?? this.clock.nowMs()) : undefined;
    return this.sinceMs;
  }

  /**
   * Looks from time to time.
   * @param isStarting - tells whether parts of the scheduler are still to come, which counts as work: it is not idle yet
   * @param exceeded - called once, when nothing happened for that long
   */
  after(timeoutMs: number, isStarting: () => boolean, exceeded: (sinceMs: number) => void): Timer {
    const timer = every(this.clock, CHECK_MS, () => {
      if (isStarting()) {
        this.sinceMs = undefined;
        return;
      }
      const sinceMs = this.look();
      if (sinceMs === undefined || this.clock.nowMs() - sinceMs < timeoutMs) return;
      timer.cancel();
      exceeded(sinceMs);
    });
    return timer;
  }
}

/** The interval at which the scheduler checks whether tasks have waited too long for a worker. */
const NO_WORKERS_CHECK_MS = 250;

/** Rounds in which the time to live of workers passes; milliseconds of one round at least and at most. */
const TTL_ROUNDS = 20;
const ROUND_MS_MIN = 250;
const ROUND_MS_MAX = 5000;

/** The checks that a scheduler makes by the clock; each is a stimulus like any other. */
@collaborator
export class HostTimers {
  private readonly timers: Timer[] = [];
  /** All stalls until then have been reported. */
  private awakeMs = -Infinity;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    private readonly idleWatch: IdleWatch,
  ) {}

  /**
   * @param isStarting - see {@link IdleWatch.after}
   * @param onIdle - called with the time since which there was nothing to do, once that is too long
   *   ago
   */
  start(
    { workerTtl, noWorkersTimeout, idleTimeout }: Config['scheduler'],
    isStarting: () => boolean,
    onIdle: (sinceMs: number) => void,
  ): void {
    if (workerTtl !== Infinity) this.watchWorkers(workerTtl);
    if (noWorkersTimeout !== Infinity) {
      this.watch(NO_WORKERS_CHECK_MS, () =>
        this.stimuli.accept({ op: 'check-no-workers-timeout' }),
      );
    }
    if (idleTimeout === Infinity) return;
    this.timers.push(this.idleWatch.after(idleTimeout, isStarting, onIdle));
  }

  cancel(): void {
    for (const timer of this.timers) timer.cancel();
  }

  /** Looks for silent workers once in their time to live. */
  private watchWorkers(ttlMs: number): void {
    const roundMs = Math.min(Math.max(ttlMs / TTL_ROUNDS, ROUND_MS_MIN), ROUND_MS_MAX);
    let dueMs = this.clock.nowMs() + ttlMs;
    this.watch(roundMs, () => {
      if (this.clock.nowMs() < dueMs) return;
      dueMs = this.clock.nowMs() + ttlMs;
      this.stimuli.accept({ op: 'check-worker-ttl' });
    });
  }

  /**
   * Calls back at an interval. A round that comes late by half an interval shows that this process stood
   * still, and that is said first: what the sockets have received meanwhile has not been read yet.
   */
  private watch(intervalMs: number, callback: () => void): void {
    const { clock } = this;
    let armedMs = clock.nowMs();
    const timer = every(clock, intervalMs, () => {
      const stalledMs = clock.nowMs() - Math.max(armedMs + intervalMs, this.awakeMs);
      this.awakeMs = clock.nowMs();
      if (stalledMs > intervalMs / 2) this.stimuli.accept({ op: 'scheduler-stalled', stalledMs });
      callback();
      armedMs = clock.nowMs();
    });
    this.timers.push(timer);
  }
}

/** The order in which a scheduler starts, and in which it closes. */
@collaborator
export class SchedulerLife {
  constructor(
    @inject(CONFIG) private readonly config: Config,
    private readonly loading: Loading,
    private readonly extensions: Extensions,
    private readonly timers: HostTimers,
    private readonly shutdown: Shutdown,
    private readonly reconnectGrace: ReconnectGrace,
    @inject(INGRESS) private readonly ingress: Ingress,
    private readonly channels: WorkerChannels,
    private readonly commands: Commands,
    private readonly bus: EventBus,
    @inject(LOGGER) private readonly log: Logger,
  ) {
    shutdown.runs(() => this.end());
  }

  /** Starts plugins and timers. When that fails, everything is closed again. */
  async start(): Promise<void> {
    try {
      await this.extensions.start();
      this.timers.start(
        this.config.scheduler,
        () => this.extensions.isChanging,
        (sinceMs) => this.onIdle(sinceMs),
      );
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
    this.ingress.stopAccepting();
    await this.extensions.beforeClose();
    this.shutdown.stopHandling();
    this.timers.cancel();
    this.reconnectGrace.clear();
    await this.extensions.close();
    await this.ingress.close();
    this.channels.abort();
    this.commands.close(closedError());
    this.bus.emit('closed');
    this.bus.dispose();
    await this.loading.close();
  }
}
