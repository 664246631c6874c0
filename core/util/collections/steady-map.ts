/** What stands for nothing in a collection, before everything else. */
const BALLAST: readonly object[] = Array.from({ length: 1024 }, () => Object.freeze({}));
/** By which Node's `console.log` asks an object what to show. */
const INSPECT: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never;

/**
 * A `Map` for many short-lived entries, of which few exist at a time: tasks, runs, results.
 *
 * V8 gives a map a new table when the present one is full of deleted places, and the old table
 * refers to the new one. A table that has become old for the collector thus keeps alive all that
 * come after it, with all that was in them, until the whole heap is collected; before that each
 * small collection copies what has long been dead. A small map has a new table every few dozen
 * deletions, so nearly everything is kept. Hidden ballast makes the table so large that few items
 * are in it when it is replaced. The ballast takes 57 kB, and beginning an iteration takes some
 * microseconds, so it is for few and long-lived maps.
 */
export class SteadyMap<Key, Value> extends Map<Key, Value> {
  constructor() {
    super();
    this.load();
  }

  override get size(): number {
    return super.size - BALLAST.length;
  }

  /** O(size). Deletes one by one, so that a running iteration does not meet the ballast. */
  override clear(): void {
    for (const key of this.keys()) this.delete(key);
  }

  override forEach(visit: (value: Value, key: Key, map: Map<Key, Value>) => void): void {
    for (const [key, value] of this) visit(value, key, this);
  }

  override entries(): MapIterator<[Key, Value]> {
    return afterBallast(super.entries());
  }

  override keys(): MapIterator<Key> {
    return afterBallast(super.keys());
  }

  override values(): MapIterator<Value> {
    return afterBallast(super.values());
  }

  override [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }

  [INSPECT](): Map<Key, Value> {
    return new Map(this);
  }

  private load(): void {
    for (const each of BALLAST) this.set(each as Key, undefined as Value);
  }
}

/** A `Set` of the same kind as {@link SteadyMap}. */
export class SteadySet<Item> extends Set<Item> {
  constructor() {
    super();
    this.load();
  }

  override get size(): number {
    return super.size - BALLAST.length;
  }

  /** O(size), as {@link SteadyMap.clear}. */
  override clear(): void {
    for (const item of this.values()) this.delete(item);
  }

  override forEach(visit: (item: Item, same: Item, set: Set<Item>) => void): void {
    for (const item of this) visit(item, item, this);
  }

  override entries(): SetIterator<[Item, Item]> {
    return afterBallast(super.entries());
  }

  override keys(): SetIterator<Item> {
    return this.values();
  }

  override values(): SetIterator<Item> {
    return afterBallast(super.values());
  }

  override [Symbol.iterator](): SetIterator<Item> {
    return this.values();
  }

  [INSPECT](): Set<Item> {
    return new Set(this);
  }

  private load(): void {
    for (const each of BALLAST) this.add(each as Item);
  }
}

/** It was there first, so an iterator meets it first. */
function afterBallast<I extends Iterator<unknown>>(iterator: I): I {
  for (let count = 0; count < BALLAST.length; count++) iterator.next();
  return iterator;
}
