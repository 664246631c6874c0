import { type Clock, every, type Timer } from '../../api/clock.ts';
import type { Config } from '../../config/types.ts';
import { token, type Token } from '../../api/plugin.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK } from '../../plugin-host/injection/tokens.ts';
import { STIMULI, type Stimuli } from '../stimulus-queue.ts';
import { IDLE_WATCH, type IdleWatch } from './idle-watch.ts';

export const HOST_TIMERS: Token<HostTimers> = token('host-timers');

/** How often it is checked whether tasks have waited too long for a worker. */
const NO_WORKERS_CHECK_MS = 250;

/** Rounds in which the time to live of workers passes; milliseconds of one round at least and at most. */
const TTL_ROUNDS = 20;
const ROUND_MS_MIN = 250;
const ROUND_MS_MAX = 5000;

/** What a scheduler does by the clock; each check is a stimulus like any other. */
export class HostTimers {
  private readonly timers: Timer[] = [];
  /** All stalls until then have been reported. */
  private awakeMs = -Infinity;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(STIMULI) private readonly stimuli: Stimuli,
    @inject(IDLE_WATCH) private readonly idleWatch: IdleWatch,
  ) {}

  /**
   * @param onIdle - called with the time since which there was nothing to do, once that is too long
   *   ago
   */
  start(
    { workerTtl, noWorkersTimeout, idleTimeout }: Config['scheduler'],
    onIdle: (sinceMs: number) => void,
  ): void {
    if (workerTtl !== Infinity) this.watchWorkers(workerTtl);
    if (noWorkersTimeout !== Infinity) {
      this.watch(NO_WORKERS_CHECK_MS, () =>
        this.stimuli.accept({ op: 'check-no-workers-timeout' }),
      );
    }
    if (idleTimeout !== Infinity) this.timers.push(this.idleWatch.after(idleTimeout, onIdle));
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
