import type { Clock } from '../../api/clock.ts';
import type { NewStimulus } from '../../api/plugin.ts';
import { TurnBudget } from '../../shared/turn-budget.ts';

/**
 * Workers whose connections broke. Those of one turn of the event loop are removed together at its end: when
 * a network or a machine fails, one by one would make a task go from each lost worker to the next, and fail
 * with `ERR_KILLED_WORKER`.
 */
export class WorkerLosses {
  private readonly lost = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly accept: (stimulus: NewStimulus) => void,
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
    if (workers.length > 1 || worker === undefined) this.accept({ op: 'workers-lost', workers });
    else this.accept({ op: 'remove-worker', worker, expected: false, close: false });
  }
}
