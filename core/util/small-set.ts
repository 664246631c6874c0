import { append } from './append.ts';

/**
 * An insertion-ordered set for a handful of members: one small array, no hashing.
 *
 * A JavaScript `Set` costs 150 bytes even when empty, which is most of what a task weighs. Replicas
 * and wanting clients of one task are nearly always one or two, so a linear scan is also faster.
 * Membership is O(size).
 */
export class SmallSet<T> implements Iterable<T> {
  private members: readonly T[];

  constructor(...members: readonly T[]) {
    this.members = members;
  }

  /** The members in insertion order, for loops that must be fast. */
  get items(): readonly T[] {
    return this.members;
  }

  get size(): number {
    return this.members.length;
  }

  has(item: T): boolean {
    return this.members.includes(item);
  }

  /** Returns false when the item was there already. */
  add(item: T): boolean {
    if (this.members.includes(item)) return false;
    this.members = append(this.members, item);
    return true;
  }

  /** Returns false when the item was not there. Keeps the order of the others. */
  delete(item: T): boolean {
    const index = this.members.indexOf(item);
    if (index < 0) return false;
    (this.members as T[]).splice(index, 1);
    return true;
  }

  first(): T | undefined {
    return this.members[0];
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.members[Symbol.iterator]();
  }
}

/** The empty set that every task without replicas or clients shares. Nothing is ever added to it. */
export function emptySmallSet<T>(): SmallSet<T> {
  return EMPTY as SmallSet<T>;
}

const EMPTY = new SmallSet<unknown>();
Object.freeze(EMPTY);
