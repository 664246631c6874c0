import type { Clock } from '../../../core/api/index.ts';

/** Upper bound of the time by which one event-loop turn is extended. */
const TURN_MS = 1;

/**
 * Calls back after the work that is under way in this event-loop turn, and still in the same turn:
 * the messages that one message causes pass scheduler, worker and client together, instead of
 * needing a turn for each hop. After {@link TURN_MS} it uses the next turn, so that timers, sockets
 * and threads are served.
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
