import type { Clock } from '../../../core/api/index.ts';

/** So long one turn of the event loop may be drawn out. */
const TURN_MS = 1;

/**
 * Calls back after all that is under way in this turn, and still in it: what one message brings about
 * goes through scheduler, worker and client together, rather than in a turn for each hop. Who goes on
 * for long lets others take their turn: timers, sockets, threads.
 */
export class SameTurnScheduler {
  private turnEndsMs = 0;

  /** @param delayMs - more than 0: after that, by the clock */
  constructor(
    private readonly clock: Clock,
    private readonly delayMs: number,
  ) {}

  call(callback: () => void): void {
    if (this.delayMs > 0) {
      this.clock.setTimer(this.delayMs, callback);
      return;
    }
    const nowMs = performance.now();
    if (this.turnEndsMs === 0) {
      this.turnEndsMs = nowMs + TURN_MS;
      setImmediate(() => (this.turnEndsMs = 0));
    }
    if (nowMs < this.turnEndsMs) process.nextTick(callback);
    else setImmediate(callback);
  }
}
