import { emptyList } from './empty-list.ts';

/**
 * An immutable, insertion-ordered set for a handful of members: one small array, no hashing.
 *
 * A JavaScript `Set` costs 150 bytes even when empty, which is most of what a task weighs. Replicas
 * and wanting clients of one task are nearly always one or two, so a linear scan is also faster,
 * and the set with one member can be made once by that member and shared. Membership is O(size).
 */
export class SmallSet<T> implements Iterable<T> {
  private static readonly none = new SmallSet<unknown>(emptyList());

  readonly size: number;

  private constructor(
    /** The members in insertion order, for loops that must be fast. */
    readonly items: readonly T[],
  ) {
    this.size = items.length;
  }

  /** The empty set. There is one. */
  static empty<T>(): SmallSet<T> {
    return SmallSet.none as SmallSet<T>;
  }

  static of<T>(item: T): SmallSet<T> {
    return new SmallSet([item]);
  }

  has(item: T): boolean {
    return this.items.includes(item);
  }

  /** The set with that member, which is this one when it is there already. */
  with(item: T): SmallSet<T> {
    return this.has(item) ? this : new SmallSet([...this.items, item]);
  }

  /** The set without that member, which is this one when it is not there. */
  without(item: T): SmallSet<T> {
    if (!this.has(item)) return this;
    return this.size === 1
      ? SmallSet.empty()
      : new SmallSet(this.items.filter((member) => member !== item));
  }

  first(): T | undefined {
    return this.items[0];
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.items[Symbol.iterator]();
  }
}
