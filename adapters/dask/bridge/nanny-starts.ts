import { inBackground } from '../../../core/shared/background.ts';
import type { Comm } from '../connection/comm.ts';

/** The nannies that are between their registration and the start of their worker. */
export class NannyStarts {
  private readonly starting = new Set<Comm>();
  private readonly waiters: (() => void)[] = [];

  /**
   * Called when a nanny has registered. The nanny reports on the same connection how the start of
   * its worker went.
   */
  begin(comm: Comm): void {
    this.starting.add(comm);
    const ended = comm.closed.then(() => this.end(comm));
    inBackground(ended, 'the end of the connection of a nanny could not be followed');
  }

  /** Called when the nanny has reported, or its connection has ended. */
  end(comm: Comm): void {
    if (!this.starting.delete(comm) || this.starting.size > 0) return;
    for (const resolve of this.waiters.splice(0)) resolve();
  }

  /** Resolves when there is none. */
  over(): Promise<void> {
    if (this.starting.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }
}
