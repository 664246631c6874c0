import { type Clock, every, type Timer } from '../../api/clock.ts';
import type { SchedulerKernel } from '../../kernel/scheduler-kernel.ts';
import { token, type Token } from '../../api/plugin.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK } from '../../plugin-host/injection/tokens.ts';
import { KERNEL } from '../tokens.ts';

export const IDLE_WATCH: Token<IdleWatch> = token('idle-watch');

/** How often a scheduler that ends when it is idle looks whether it is. */
const CHECK_MS = 250;

/**
 * Since when a scheduler has had nothing to do: nothing queued, nothing that waits for a worker, nothing
 * on a worker, and no transition between two looks (Dask: `check_idle`).
 */
export class IdleWatch {
  private transitionCounter = -1;
  private sinceMs: number | undefined;

  constructor(
    @inject(KERNEL) private readonly kernel: SchedulerKernel,
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

  /** Looks from time to time. @param exceeded - called once, when nothing happened for that long */
  after(timeoutMs: number, exceeded: (sinceMs: number) => void): Timer {
    const timer = every(this.clock, CHECK_MS, () => {
      const sinceMs = this.look();
      if (sinceMs === undefined || this.clock.nowMs() - sinceMs < timeoutMs) return;
      timer.cancel();
      exceeded(sinceMs);
    });
    return timer;
  }
}
