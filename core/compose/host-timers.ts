import { type Clock, every, type Timer } from '../api/clock.ts';
import type { Config } from '../config/types.ts';
import type { IdleWatch } from './idle-watch.ts';

/** How often it is checked whether tasks have waited too long for a worker. */
const NO_WORKERS_CHECK_MS = 250;

/** What only time tells a scheduler. */
type Check = 'check-worker-ttl' | 'check-no-workers-timeout';

/** What a scheduler does by the clock; each check is a stimulus like any other. */
export class HostTimers {
  private readonly timers: Timer[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly enqueue: (stimulus: { readonly op: Check }) => void,
  ) {}

  /** @param onIdle - told since when there was nothing to do, once that is too long */
  start(
    { workerTtl, noWorkersTimeout, idleTimeout }: Config['scheduler'],
    idleWatch: IdleWatch,
    onIdle: (sinceMs: number) => void,
  ): void {
    if (workerTtl !== Infinity) this.repeat(workerTtl, 'check-worker-ttl');
    if (noWorkersTimeout !== Infinity) this.repeat(NO_WORKERS_CHECK_MS, 'check-no-workers-timeout');
    if (idleTimeout !== Infinity) this.timers.push(idleWatch.after(idleTimeout, onIdle));
  }

  cancel(): void {
    for (const timer of this.timers) timer.cancel();
  }

  private repeat(intervalMs: number, op: Check): void {
    this.timers.push(every(this.clock, intervalMs, () => this.enqueue({ op })));
  }
}
