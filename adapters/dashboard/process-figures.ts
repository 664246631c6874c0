import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { ProcessRow } from './page-messages.ts';

/** Milliseconds between the timers whose delay is measured. The histogram holds the whole intervals. */
const INTERVAL_MS = 20;

/** Measures how late timers of this process are, from `start` to `stop`. It wakes the process regularly meanwhile. */
export class LoopDelay {
  private readonly intervals = monitorEventLoopDelay({ resolution: INTERVAL_MS });

  start(): void {
    this.intervals.reset();
    this.intervals.enable();
  }

  stop(): void {
    this.intervals.disable();
  }

  /**
   * The milliseconds by which these shares of the timers were late at most, since the start or the last call.
   * @param shares - from 0 to 1: 0.5 is the median, 1 the largest delay
   */
  take(...shares: readonly number[]): number[] {
    const delays = shares.map((share) =>
      Math.max(0, this.intervals.percentile(share * 100) / 1e6 - INTERVAL_MS),
    );
    this.intervals.reset();
    return delays;
  }
}

/** Milliseconds over which the figures are taken. */
const PERIOD_MS = 1000;

/** CPU, memory and event loop of the scheduler's process, measured while they are asked for. */
export class ProcessFigures {
  private readonly delay = new LoopDelay();
  private last = { atMs: -Infinity, cpuMs: 0 };
  private row: ProcessRow | undefined;

  /** Those of the last second; undefined until there is one. */
  read(nowMs: number): ProcessRow | undefined {
    const { atMs, cpuMs: cpuBeforeMs } = this.last;
    if (nowMs - atMs < PERIOD_MS) return this.row;
    const { user, system } = process.cpuUsage();
    const cpuMs = (user + system) / 1000;
    this.last = { atMs: nowMs, cpuMs };
    if (atMs === -Infinity) this.delay.start();
    else {
      const [loopDelayMs = 0] = this.delay.take(1);
      this.row = {
        cpuPercent: Math.round((100 * (cpuMs - cpuBeforeMs)) / (nowMs - atMs)),
        memoryBytes: process.memoryUsage.rss(),
        loopDelayMs: Math.round(loopDelayMs),
      };
    }
    return this.row;
  }

  /** Nothing is measured until they are asked for again. */
  rest(): void {
    this.delay.stop();
    this.last = { atMs: -Infinity, cpuMs: 0 };
    this.row = undefined;
  }
}
