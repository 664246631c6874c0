/** Lists up to this length get arrays of exactly their length, or of the length that is expected. */
const EXACT_MAX = 4;

/**
 * Adds an item to a short list and returns the list, which may be another array; a list of one item
 * is never written to.
 *
 * `push` onto a one-element array reserves capacity for seventeen. With several such lists in every
 * task the spare capacity would be most of the memory of a graph.
 *
 * @param lengthExpected - expected final length, for which capacity is reserved with the second
 *   item. A wrong guess costs a copy, or memory
 */
export function append<T>(list: readonly T[], item: T, lengthExpected = 0): T[] {
  switch (list.length) {
    case 0:
      return [item];
    case 1:
      return pair(list[0] as T, item, lengthExpected);
    case 2:
      if (hasRoom(2, lengthExpected)) break;
      return [list[0] as T, list[1] as T, item];
    case EXACT_MAX - 1:
      if (hasRoom(EXACT_MAX - 1, lengthExpected)) break;
      return [list[0] as T, list[1] as T, list[2] as T, item];
  }
  (list as T[]).push(item);
  return list as T[];
}

function hasRoom(length: number, lengthExpected: number): boolean {
  return length < lengthExpected && lengthExpected <= EXACT_MAX;
}

/**
 * Two items, with capacity for the expected length: an array from which the last item is popped
 * keeps its capacity.
 */
function pair<T>(first: T, second: T, lengthExpected: number): T[] {
  if (!hasRoom(2, lengthExpected)) return [first, second];
  const list =
    lengthExpected === EXACT_MAX ? [first, second, second, second] : [first, second, second];
  while (list.length > 2) list.pop();
  return list;
}

/**
 * An empty array of the kind that V8 gives to arrays of objects. `[]` begins as one of small integers,
 * and a frozen array is of neither kind: a loop that meets such lists among others calls its iterator
 * step by step instead of running through the array.
 */
export function emptyList<T extends object>(): T[] {
  const list: object[] = [{}];
  list.pop();
  return list as T[];
}

/** Adds an item to the list of a key; the first one makes the list. */
export function pushTo<Key, Item>(lists: Map<Key, Item[]>, key: Key, item: Item): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

/** Ids of one chunk. */
const CHUNK = 65_536;

/** A set of small, dense, whole numbers that never takes long to grow, as a large `Set` does. */
export class IdSet {
  private readonly chunks: (Uint8Array | undefined)[] = [];

  /** Returns false when it was there already. */
  add(id: number): boolean {
    const place = id % CHUNK;
    const number = (id - place) / CHUNK;
    const chunk = (this.chunks[number] ??= new Uint8Array(CHUNK));
    if (chunk[place] !== 0) return false;
    chunk[place] = 1;
    return true;
  }
}

const NOTHING: readonly never[] = [];

/**
 * A set that has no member or one, as a rule: then it costs two fields, where a JavaScript `Set` costs 150 bytes.
 * Iterates in insertion order. Members may be deleted meanwhile; one that is added meanwhile may be left out.
 */
export class LazySet<T extends object | string | number> implements Iterable<T> {
  /** The only member, as long as there was never a second one. */
  private only: T | undefined = undefined;
  private members: Set<T> | undefined = undefined;

  get size(): number {
    if (this.members !== undefined) return this.members.size;
    return this.only === undefined ? 0 : 1;
  }

  has(item: T): boolean {
    return this.members === undefined ? this.only === item : this.members.has(item);
  }

  add(item: T): this {
    const { only } = this;
    if (this.members !== undefined) this.members.add(item);
    else if (only === undefined) this.only = item;
    else if (only !== item) {
      this.members = new Set<T>().add(only).add(item);
      this.only = undefined;
    }
    return this;
  }

  /** True when it was there. */
  delete(item: T): boolean {
    if (this.members !== undefined) return this.members.delete(item);
    if (this.only !== item) return false;
    this.only = undefined;
    return true;
  }

  clear(): void {
    this.only = undefined;
    this.members = undefined;
  }

  [Symbol.iterator](): IterableIterator<T> {
    if (this.members !== undefined) return this.members[Symbol.iterator]();
    return (this.only === undefined ? NOTHING : [this.only])[Symbol.iterator]();
  }
}

/** The position after this one in a ring of that length. */
export function nextInRing(position: number, length: number): number {
  return position + 1 === length ? 0 : position + 1;
}

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

  [Symbol.iterator](): IterableIterator<T> {
    return this.items[Symbol.iterator]();
  }
}

/** A map whose entries are found when they are asked for. */
export abstract class ComputedMap<Key, Value> implements ReadonlyMap<Key, Value> {
  abstract get size(): number;
  abstract get(key: Key): Value | undefined;
  abstract entries(): MapIterator<[Key, Value]>;

  has(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  *keys(): MapIterator<Key> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(visit: (value: Value, key: Key, map: ReadonlyMap<Key, Value>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this);
  }

  [Symbol.iterator](): MapIterator<[Key, Value]> {
    return this.entries();
  }
}

/** Placeholders for nothing at the beginning of a collection. */
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

/** Items beyond which a hash table is kept, because a search costs more, and up to which it is dropped. */
const LISTED_MAX = 12;
const INDEXED_MIN = 6;

/**
 * A count for each of a few items. Items whose count is zero are not there.
 *
 * Short tallies are lists: comparing a handful of items costs less than hashing one of them. In no order
 * that matters.
 */
export class Tally<T> implements Iterable<readonly [item: T, count: number]> {
  private readonly items: T[] = [];
  private readonly counts: number[] = [];
  /** The index of each item, while there are many. */
  private places: Map<T, number> | undefined = undefined;

  get size(): number {
    return this.items.length;
  }

  has(item: T): boolean {
    return this.placeOf(item) >= 0;
  }

  /** 0 for an item that is not there. */
  get(item: T): number {
    const place = this.placeOf(item);
    return place < 0 ? 0 : (this.counts[place] as number);
  }

  /** Counts an item once more. Returns how often it has been counted. */
  increment(item: T): number {
    const place = this.placeOf(item);
    if (place >= 0) return ++(this.counts[place] as number);
    this.append(item);
    return 1;
  }

  /** Sets the count of an item that is not there. */
  set(item: T, count: number): void {
    this.append(item);
    this.counts[this.counts.length - 1] = count;
  }

  /** Counts an item once less. Returns what is left of its count, or -1 when it was not there. */
  decrement(item: T): number {
    const place = this.placeOf(item);
    if (place < 0) return -1;
    const left = --(this.counts[place] as number);
    if (left === 0) this.deleteAt(place);
    return left;
  }

  /** Takes an item out, however often it was counted. Returns whether it was there. */
  delete(item: T): boolean {
    const place = this.placeOf(item);
    if (place < 0) return false;
    this.deleteAt(place);
    return true;
  }

  clear(): void {
    this.items.length = 0;
    this.counts.length = 0;
    this.places = undefined;
  }

  *[Symbol.iterator](): IterableIterator<readonly [item: T, count: number]> {
    for (const [place, item] of this.items.entries()) yield [item, this.counts[place] as number];
  }

  private placeOf(item: T): number {
    const { items, places } = this;
    if (places !== undefined) return places.get(item) ?? -1;
    for (let place = 0; place < items.length; place++) if (items[place] === item) return place;
    return -1;
  }

  private append(item: T): void {
    this.items.push(item);
    this.counts.push(1);
    const { items, places } = this;
    if (places !== undefined) places.set(item, items.length - 1);
    else if (items.length > LISTED_MAX) {
      this.places = new Map(items.map((one, place) => [one, place]));
    }
  }

  private deleteAt(place: number): void {
    const { items, counts, places } = this;
    const item = items[place] as T;
    const last = items.pop() as T;
    const count = counts.pop() as number;
    if (place < items.length) {
      items[place] = last;
      counts[place] = count;
    }
    if (places === undefined) return;
    places.delete(item);
    if (place < items.length) places.set(last, place);
    if (items.length < INDEXED_MIN) this.places = undefined;
  }
}
