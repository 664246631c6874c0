import { setAwakeTimer } from '../../shared/awake-timer.ts';
import type { Clock, Timer } from '../../api/clock.ts';

/**
 * Clients whose connection broke and that said they may come back. Until their time is over the
 * cluster keeps what they want. Time in which the scheduler stood still does not count: it could not hear
 * whether they came back.
 */
export class ReconnectGrace {
  private readonly absent = new Map<string, Timer>();

  constructor(
    private readonly clock: Clock,
    /** Milliseconds that nobody is waited for longer than. */
    private readonly longestMs: number,
  ) {}

  /**
   * @param returnWithinMs - what the client said; 0 or less: it does not come back
   * @param onOver - called once, at once or later, unless it is back before
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

  /** It is back. Returns whether it was waited for. */
  end(client: string): boolean {
    this.absent.get(client)?.cancel();
    return this.absent.delete(client);
  }

  /** Nobody is waited for any more, and nobody told. */
  clear(): void {
    for (const timer of this.absent.values()) timer.cancel();
    this.absent.clear();
  }
}
