import type { Clock, Timer } from '../api/clock.ts';
import type { Config } from '../config/types.ts';
import { CLOCK, CONFIG } from '../host/tokens.ts';
import { collaborator, inject } from '../plugin-host/injection.ts';
import { setAwakeTimer } from '../shared/timers.ts';
import type { SessionSecret } from './membership.ts';

/** A client that may come back. */
interface Absence {
  readonly timer: Timer;
  readonly secret: SessionSecret;
}

/**
 * Keeps the state of disconnected clients until their grace period ends. Time in which the scheduler
 * stood still does not count, because it could not receive a reconnect meanwhile.
 */
@collaborator
export class ReconnectGrace {
  private readonly absent = new Map<string, Absence>();

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
   * @param secret - what it has to know to be taken for the same client; undefined: it does not reconnect
   * @param onOver - called once, when the grace period ends without a reconnect
   */
  begin(
    client: string,
    returnWithinMs: number,
    secret: SessionSecret | undefined,
    onOver: () => void,
  ): void {
    const ms = Math.min(returnWithinMs, this.graceMaxMs);
    if (ms <= 0 || secret === undefined) {
      onOver();
      return;
    }
    const timer = setAwakeTimer(this.clock, ms, () => {
      this.absent.delete(client);
      onOver();
    });
    this.absent.set(client, { timer, secret });
  }

  /** Ends the grace period of a client that is back. Returns whether there was one, and it is that client. */
  end(client: string, secret: string | undefined): boolean {
    const absence = this.absent.get(client);
    if (absence?.secret.matches(secret) !== true) return false;
    absence.timer.cancel();
    return this.absent.delete(client);
  }

  /** Cancels all grace periods without calling their callbacks. */
  clear(): void {
    for (const { timer } of this.absent.values()) timer.cancel();
    this.absent.clear();
  }
}
