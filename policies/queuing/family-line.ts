import type { Priority } from '../../core/api/index.ts';
import { comparePriorities, type Family } from './families.ts';

/** A family that waits, and the task because of which it does. */
export interface Place {
  readonly family: Family;
  readonly priority: Priority;
}

/** Families that have queued tasks and no worker, the best first. */
export class FamilyLine {
  /** Ascending; those before {@link head} have gone. */
  private places: Place[] = [];
  private head = 0;

  /**
   * No-op when it is in the queue. O(1) when families come in the order of their priorities.
   * @param priority - of the task because of which it is in the queue
   */
  add(family: Family, priority: Priority): void {
    if (family.isInLine) return;
    family.isInLine = true;
    let at = this.places.length;
    while (at > this.head && comparePriorities(priority, this.priorityAt(at - 1)) < 0) at--;
    this.places.splice(at, 0, { family, priority });
  }

  /** The best family that still has a queued task and no worker that takes them. */
  first(isServed: (family: Family) => boolean): Family | undefined {
    for (; this.head < this.places.length; this.head++) {
      const { family } = this.places[this.head] as Place;
      if (!isServed(family) && family.nextQueued() !== undefined) return family;
      family.isInLine = false;
    }
    this.places = [];
    this.head = 0;
    return undefined;
  }

  /** Those that wait, the best first. */
  get waiting(): readonly Place[] {
    return this.places.slice(this.head);
  }

  private priorityAt(index: number): Priority {
    return (this.places[index] as Place).priority;
  }
}
