import type { Clock } from '../../api/clock.ts';
import { token, type Token } from '../../api/plugin.ts';
import { TurnBudget } from '../../shared/turn.ts';
import { inject } from '../../plugin-host/injection/di.ts';
import { CLOCK } from '../../plugin-host/injection/tokens.ts';
import { STIMULI, type Stimuli } from '../stimulus-queue.ts';

export const WORKER_LOSSES: Token<WorkerLosses> = token('worker-losses');

/**
 * Workers whose connections broke. Those of one turn of the event loop are removed together at its end: when
 * a network or a machine fails, one by one would make a task go from each lost worker to the next, and fail
 * with `ERR_KILLED_WORKER`.
 */
export class WorkerLosses {
  private readonly lost = new Set<string>();

  constructor(
    @inject(CLOCK) private readonly clock: Clock,
    @inject(STIMULI) private readonly stimuli: Stimuli,
  ) {}

  /** @param address - of a registered worker */
  add(address: string): void {
    this.lost.add(address);
    if (this.lost.size === 1) TurnBudget.of(this.clock).later(() => this.flush());
  }

  /** Removes those that are lost so far. */
  flush(): void {
    if (this.lost.size === 0) return;
    const workers = [...this.lost];
    this.lost.clear();
    const [worker] = workers;
    // One alone is removed like one that a plugin removes: so it is found in the story and the logs.
    if (workers.length > 1 || worker === undefined)
      this.stimuli.accept({ op: 'workers-lost', workers });
    else this.stimuli.accept({ op: 'remove-worker', worker, expected: false, close: false });
  }
}
