import type { TaskState } from '../../state/task.ts';

/**
 * What a step of a task means for one of its dependents. Made once, so that a visit costs no closure. It looks at
 * the state that both have by then.
 *
 * @param epoch - {@link DeferredVisits.epoch} when the visit was deferred
 */
export type Visit<Scope> = (
  scope: Scope,
  task: TaskState,
  dependent: TaskState,
  epoch: number,
) => void;

/** Dependents of one task that have not been visited yet. */
interface Rest<Scope> {
  readonly task: TaskState;
  readonly dependents: readonly TaskState[];
  /** Those before this index. */
  left: number;
  readonly visit: Visit<Scope>;
  readonly epoch: number;
}

/**
 * Dependents that fail with a task, or start again with it, and to which a long stimulus has not come: later ones
 * visit them, the newest first. Until then a dependent that is to fail waits under the failed task, and one that is to
 * start again is still failed.
 */
export class DeferredVisits<Scope> {
  private readonly rests: Rest<Scope>[] = [];
  /** Whether nothing is to be visited. A field, because it is read after each stimulus. */
  isEmpty = true;
  /** Tells what fails from now on from what has failed before. Raised when a retry begins, and when visits are deferred. */
  epoch = 0;

  /** Returns the new epoch: what has failed before is distinguished from what fails from now on. */
  begin(): number {
    return ++this.epoch;
  }

  /** @param left - how many of the dependents are still to be visited; they are visited from the last to the first */
  add(task: TaskState, dependents: readonly TaskState[], left: number, visit: Visit<Scope>): void {
    this.isEmpty = false;
    this.rests.push({ task, dependents, left, visit, epoch: this.begin() });
  }

  /** Visits the next dependent. Returns false when there is none. */
  visitNext(scope: Scope): boolean {
    const rest = this.rests.at(-1);
    if (rest === undefined) return false;
    const dependent = rest.dependents[--rest.left];
    // First of all: a visit that throws is over.
    if (rest.left <= 0) this.pop();
    if (dependent !== undefined && dependent.state !== 'forgotten') {
      rest.visit(scope, rest.task, dependent, rest.epoch);
    }
    return true;
  }

  clear(): void {
    this.rests.length = 0;
    this.isEmpty = true;
  }

  /** Dependents that are still to be visited, by the task; for validation. O(visits). */
  pending(): ReadonlyMap<TaskState, ReadonlySet<TaskState>> {
    const pending = new Map<TaskState, Set<TaskState>>();
    for (const { task, dependents, left } of this.rests) {
      const awaiting = pending.get(task) ?? new Set();
      for (const dependent of dependents.slice(0, left)) awaiting.add(dependent);
      pending.set(task, awaiting);
    }
    return pending;
  }

  private pop(): void {
    this.rests.pop();
    this.isEmpty = this.rests.length === 0;
  }
}
