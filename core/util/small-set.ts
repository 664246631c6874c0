/**
 * An insertion-ordered set for a handful of members: one small array, no hashing.
 *
 * A JavaScript `Set` costs 150 bytes even when empty, which is most of what a task weighs. Replicas
 * and wanting clients of one task are nearly always one or two, so a linear scan is also faster.
 * Membership is O(size).
 */
export class SmallSet<T> implements Iterable<T> {
  /** The members in insertion order. Read it in hot loops; only this class writes it. */
  readonly items: T[] = [];

  get size(): number {
    return this.items.length;
  }

  has(item: T): boolean {
    return this.items.includes(item);
  }

  /** Returns false when the item was there already. */
  add(item: T): boolean {
    if (this.items.includes(item)) return false;
    this.items.push(item);
    return true;
  }

  /** Returns false when the item was not there. Keeps the order of the others. */
  delete(item: T): boolean {
    const index = this.items.indexOf(item);
    if (index < 0) return false;
    this.items.splice(index, 1);
    return true;
  }

  first(): T | undefined {
    return this.items[0];
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.items[Symbol.iterator]();
  }
}

/** The empty set that every task without replicas or clients shares. Adding to it throws. */
export function emptySmallSet<T>(): SmallSet<T> {
  return EMPTY as SmallSet<T>;
}

const EMPTY: SmallSet<unknown> = new SmallSet<unknown>();
Object.freeze(EMPTY.items);
