import { setAwakeTimer } from '../../shared/awake-timer.ts';
import type { Clock, Timer } from '../../api/clock.ts';

/**
 * Keeps the state of disconnected clients until their grace period ends. Time in which the scheduler
 * stood still does not count, because it could not receive a reconnect meanwhile.
 */
export class ReconnectGrace {
  private readonly absent = new Map<string, Timer>();

  constructor(
    private readonly clock: Clock,
    /** Upper bound of the grace period, whatever the client asks for. */
    private readonly longestMs: number,
  ) {}

  /**
   * @param returnWithinMs - as the client asks; 0 or less: it does not reconnect
   * @param onOver - called once, when the grace period ends without a reconnect
   */
  begin(client: string, returnWithinMs: number, onOver: () => void): void {
    const ms = Math.min(returnWithinMs, this.longestMs);
    if (ms <= 0) {
      onOver();
      return;
    }
    const timer = setAwakeTimer(this.clock, ms, () => {
      this.absent.delete(client);
      onOver();
    });
    this.absent.set(client, timer);
  }

  /** Ends the grace period of a client that is back. Returns whether there was one. */
  end(client: string): boolean {
    this.absent.get(client)?.cancel();
    return this.absent.delete(client);
  }

  /** Cancels all grace periods without calling their callbacks. */
  clear(): void {
    for (const timer of this.absent.values()) timer.cancel();
    this.absent.clear();
  }
}
