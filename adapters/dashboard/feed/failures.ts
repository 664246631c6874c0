import type { EventSource, TaskView } from '../../../core/api/index.ts';

/** A task that failed of its own, and not because of another one. */
export type Failure = readonly [key: string, text: string, atMs: number];

/** How many of the first failures are kept, and how many of the newest. */
const KEPT = 10;

/** What failed first, and what failed lately. Costs nothing while nothing fails. */
export class Failures {
  readonly first: Failure[] = [];
  readonly newest: Failure[] = [];
  count = 0;

  /** Collects those of a scheduler that runs. */
  static of(events: EventSource, nowMs: () => number): Failures {
    const failures = new Failures();
    events.on('task-erred', (task) => failures.add(task, nowMs()));
    return failures;
  }

  /** All of it, as data. */
  get summary(): object {
    const { first, newest, count } = this;
    return { first, newest, count };
  }

  /** A task failed. Of one that failed because of another one nothing is kept. */
  add({ key, failure, exceptionBlame }: TaskView, atMs: number): void {
    if (exceptionBlame !== undefined && exceptionBlame.key !== key) return;
    const entry = [key, (failure?.exceptionText ?? '').slice(0, 300), Math.round(atMs)] as const;
    this.count++;
    if (this.first.length < KEPT) this.first.push(entry);
    else if (this.newest.push(entry) > KEPT) this.newest.shift();
  }
}
