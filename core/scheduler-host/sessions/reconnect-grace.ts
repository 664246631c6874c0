import { token, type Token } from '../../api/plugin.ts';
import { setAwakeTimer } from '../../shared/awake-timer.ts';
import type { Clock, Timer } from '../../api/clock.ts';
import type { Config } from '../../config/types.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK, CONFIG } from '../../plugin-host/injection/tokens.ts';

export const RECONNECT_GRACE: Token<ReconnectGrace> = token('reconnect-grace');

/**
 * Keeps the state of disconnected clients until their grace period ends. Time in which the scheduler
 * stood still does not count, because it could not receive a reconnect meanwhile.
 */
export class ReconnectGrace {
  private readonly absent = new Map<string, Timer>();

  /** Upper bound of the grace period, whatever the client asks for. */
  private readonly graceMaxMs: number;

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(CONFIG) { scheduler }: Config,
  ) {
    this.graceMaxMs = scheduler.clientGrace;
  }

  /**
   * @param returnWithinMs - as the client asks; 0 or less: it does not reconnect
   * @param onOver - called once, when the grace period ends without a reconnect
   */
  begin(client: string, returnWithinMs: number, onOver: () => void): void {
    const ms = Math.min(returnWithinMs, this.graceMaxMs);
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
