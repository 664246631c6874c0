import type { Ranked } from './ranked-set.ts';

const OUTSIDE = -1;

/**
 * A binary min-heap of members by a number that comes with each, and by rank between equal numbers:
 * a total order, so that what comes first does not depend on how the members came in.
 *
 * Everything that is compared is in columns. The members themselves are not read: with ten thousand
 * of them each access would miss the cache. The owner of the ranks must fill the heap anew when
 * ranks move.
 */
export class RankedHeap<T extends Ranked> implements Iterable<T> {
  /** By position in the heap. */
  private readonly ranks: number[] = [];
  private readonly keys: number[] = [];
  /** Positions by rank. */
  private readonly places: number[] = [];

  /** @param byRank - the owner's table of all possible members, indexed by rank */
  constructor(private readonly byRank: readonly T[]) {}

  get size(): number {
    return this.ranks.length;
  }

  has(member: T): boolean {
    return this.placeOf(member) !== OUTSIDE;
  }

  /** What the member is sorted by; undefined outside of the heap. */
  keyOf(member: T): number | undefined {
    const place = this.placeOf(member);
    return place === OUTSIDE ? undefined : this.keys[place];
  }

  peek(): T | undefined {
    return this.ranks.length === 0 ? undefined : this.memberAt(0);
  }

  /** Adds a member, or moves it to where it belongs with this key. O(log n). */
  put(member: T, key: number): void {
    const place = this.placeOf(member);
    if (place === OUTSIDE) {
      while (this.places.length <= member.rank) this.places.push(OUTSIDE);
      this.ranks.push(member.rank);
      this.keys.push(key);
      this.siftUp(this.ranks.length - 1, member.rank, key);
    } else this.replace(place, member.rank, key);
  }

  /** Returns false when the member was not in the heap. O(log n). */
  delete(member: T): boolean {
    const place = this.placeOf(member);
    if (place === OUTSIDE) return false;
    this.places[member.rank] = OUTSIDE;
    const lastRank = this.ranks.pop() as number;
    const lastKey = this.keys.pop() as number;
    if (lastRank !== member.rank) this.replace(place, lastRank, lastKey);
    return true;
  }

  clear(): void {
    this.ranks.length = 0;
    this.keys.length = 0;
    this.places.length = 0;
  }

  /** Appends the k first members to an array, in order. O(k * k); for a small k. */
  smallestInto(target: T[], k: number): void {
    const { size } = this;
    const end = target.length + Math.min(k, size);
    // Positions whose parents have been taken: the next one is among them.
    const open = size > 0 ? [0] : [];
    while (target.length < end) {
      let best = 0;
      for (let n = 1; n < open.length; n++) {
        if (this.isBefore(open[n] as number, open[best] as number)) best = n;
      }
      const [place] = open.splice(best, 1) as [number];
      target.push(this.memberAt(place));
      for (let child = 2 * place + 1; child <= 2 * place + 2; child++) {
        if (child < size) open.push(child);
      }
    }
  }

  /** The members in order: a sorted copy, O(n log n). For views and tests. */
  sorted(): T[] {
    const places = this.ranks.map((_rank, place) => place);
    places.sort((a, b) => (this.isBefore(a, b) ? -1 : 1));
    return places.map((place) => this.memberAt(place));
  }

  /** Iterates in heap order, which is not sorted. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let place = 0; place < this.ranks.length; place++) yield this.memberAt(place);
  }

  private placeOf({ rank }: T): number {
    // Checks for negative indices, which an array would look up as property names.
    return rank >= 0 && rank < this.places.length ? (this.places[rank] as number) : OUTSIDE;
  }

  private memberAt(place: number): T {
    return this.byRank[this.ranks[place] as number] as T;
  }

  private isBefore(place: number, other: number): boolean {
    return isBefore(
      this.keys[place] as number,
      this.ranks[place] as number,
      this.keys[other] as number,
      this.ranks[other] as number,
    );
  }

  /** Puts this entry in the place of the present one, and moves it to its position. */
  private replace(place: number, rank: number, key: number): void {
    const key0 = this.keys[place] as number;
    if (isBefore(key, rank, key0, this.ranks[place] as number)) this.siftUp(place, rank, key);
    else this.siftDown(place, rank, key);
  }

  private siftUp(start: number, rank: number, key: number): void {
    const { keys, ranks } = this;
    let place = start;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const parentKey = keys[parent] as number;
      const parentRank = ranks[parent] as number;
      if (isBefore(parentKey, parentRank, key, rank)) break;
      this.set(place, parentRank, parentKey);
      place = parent;
    }
    this.set(place, rank, key);
  }

  private siftDown(start: number, rank: number, key: number): void {
    const { keys, ranks } = this;
    const half = keys.length >> 1;
    let place = start;
    while (place < half) {
      let child = 2 * place + 1;
      if (child + 1 < keys.length && this.isBefore(child + 1, child)) child++;
      const childKey = keys[child] as number;
      const childRank = ranks[child] as number;
      if (isBefore(key, rank, childKey, childRank)) break;
      this.set(place, childRank, childKey);
      place = child;
    }
    this.set(place, rank, key);
  }

  private set(place: number, rank: number, key: number): void {
    this.ranks[place] = rank;
    this.keys[place] = key;
    this.places[rank] = place;
  }
}

function isBefore(key: number, rank: number, otherKey: number, otherRank: number): boolean {
  return key < otherKey || (key === otherKey && rank < otherRank);
}
