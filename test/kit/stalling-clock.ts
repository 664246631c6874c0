import { VirtualClock } from '../../adapters/clocks/index.ts';
import type { Clock } from '../../core/api/index.ts';

/** A clock whose timers come late after the process has stood still. */
export class StallingClock {
  private readonly virtual = new VirtualClock();
  private stalledMs = 0;
  readonly clock: Clock = {
    nowMs: () => this.virtual.nowMs() + this.stalledMs,
    setTimer: (delayMs, callback) => this.virtual.setTimer(delayMs, callback),
  };

  advance(ms: number): void {
    this.virtual.advance(ms);
  }

  stall(ms: number): void {
    this.stalledMs += ms;
  }
}
