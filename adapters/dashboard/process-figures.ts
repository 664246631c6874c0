import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { ProcessRow } from './page-messages.ts';

/** Milliseconds between the timers whose delay is measured. The histogram holds the whole intervals. */
export const LOOP_MS = 20;

/** Milliseconds over which the figures are taken. */
const PERIOD_MS = 1000;

/** CPU, memory and event loop of the scheduler's process, measured while they are asked for. */
export class ProcessFigures {
  private readonly delay = monitorEventLoopDelay({ resolution: LOOP_MS });
  private last = { atMs: -Infinity, cpuMs: 0 };
  private row: ProcessRow | undefined;

  /** Those of the last second; undefined until there is one. */
  read(nowMs: number): ProcessRow | undefined {
    const { atMs, cpuMs: cpuBeforeMs } = this.last;
    if (nowMs - atMs < PERIOD_MS) return this.row;
    const { user, system } = process.cpuUsage();
    const cpuMs = (user + system) / 1000;
    this.last = { atMs: nowMs, cpuMs };
    if (atMs === -Infinity) this.delay.enable();
    else {
      this.row = {
        cpuPercent: Math.round((100 * (cpuMs - cpuBeforeMs)) / (nowMs - atMs)),
        memoryBytes: process.memoryUsage.rss(),
        loopDelayMs: Math.max(0, Math.round(this.delay.max / 1e6) - LOOP_MS),
      };
      this.delay.reset();
    }
    return this.row;
  }

  /** Nothing is measured until they are asked for again. */
  rest(): void {
    this.delay.disable();
    this.last = { atMs: -Infinity, cpuMs: 0 };
    this.row = undefined;
  }
}
