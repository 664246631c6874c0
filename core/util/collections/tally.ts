/** Items beyond which a hash table is kept, because a search costs more, and up to which it is dropped. */
const LISTED_MAX = 12;
const INDEXED_MIN = 6;

/**
 * How often each of a few items has been counted. Items that are not counted are not there.
 *
 * Short tallies are lists: comparing a handful of items costs less than hashing one of them. In no order
 * that matters.
 */
export class Tally<T> implements Iterable<readonly [item: T, count: number]> {
  private readonly items: T[] = [];
  private readonly counts: number[] = [];
  /** Where each item is, while there are many. */
  private places: Map<T, number> | undefined = undefined;

  /** Number of different items. */
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
