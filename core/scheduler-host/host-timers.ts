import { type Clock, every, type Timer } from '../api/clock.ts';
import type { Config } from '../config/types.ts';
import type { IdleWatch } from './idle-watch.ts';

/** How often it is checked whether tasks have waited too long for a worker. */
const NO_WORKERS_CHECK_MS = 250;

/** Rounds in which the time to live of workers passes; milliseconds of one round at least and at most. */
const TTL_ROUNDS = 20;
const ROUND_MS_MIN = 250;
const ROUND_MS_MAX = 5000;

/** The stimuli that timers cause. */
type TimeStimulus =
  | { readonly op: 'check-worker-ttl' | 'check-no-workers-timeout' }
  | { readonly op: 'scheduler-stalled'; readonly stalledMs: number };

/** What a scheduler does by the clock; each check is a stimulus like any other. */
export class HostTimers {
  private readonly timers: Timer[] = [];
  /** All stalls until then have been reported. */
  private awakeMs = -Infinity;

  constructor(
    private readonly clock: Clock,
    private readonly enqueue: (stimulus: TimeStimulus) => void,
  ) {}

  /**
   * @param onIdle - called with the time since which there was nothing to do, once that is too long
   *   ago
   */
  start(
    { workerTtl, noWorkersTimeout, idleTimeout }: Config['scheduler'],
    idleWatch: IdleWatch,
    onIdle: (sinceMs: number) => void,
  ): void {
    if (workerTtl !== Infinity) this.watchWorkers(workerTtl);
    if (noWorkersTimeout !== Infinity) {
      this.watch(NO_WORKERS_CHECK_MS, () => this.enqueue({ op: 'check-no-workers-timeout' }));
    }
    if (idleTimeout !== Infinity) this.timers.push(idleWatch.after(idleTimeout, onIdle));
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
      this.enqueue({ op: 'check-worker-ttl' });
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
      if (stalledMs > intervalMs / 2) this.enqueue({ op: 'scheduler-stalled', stalledMs });
      callback();
      armedMs = clock.nowMs();
    });
    this.timers.push(timer);
  }
}
