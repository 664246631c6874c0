/** The field that an {@link IndexedHeap} keeps in its members: their own position, or -1 outside of the heap. */
interface HeapMember {
  place: number;
}

/** With more open positions than this, {@link IndexedHeap.find} looks at all members. */
const OPEN_MAX = 16;

/**
 * A binary min-heap whose members know their position, so that any of them can be removed or moved
 * in O(log n). A member can be in one heap at a time.
 *
 * The comparator must be a total order (0 only for the same member): then the order of pops depends
 * on the members alone and never on how they came in.
 */
export class IndexedHeap<T extends HeapMember> implements Iterable<T> {
  private readonly items: T[] = [];

  constructor(private readonly compare: (a: T, b: T) => number) {}

  get size(): number {
    return this.items.length;
  }

  has(item: object): boolean {
    const { place = -1 } = item as Partial<HeapMember>;
    return place >= 0 && this.items[place] === item;
  }

  peek(): T | undefined {
    return this.items[0];
  }

  /** No-op when the item is in the heap. */
  add(item: T): void {
    if (this.has(item)) return;
    item.place = this.items.length;
    this.items.push(item);
    this.siftUp(item.place);
  }

  pop(): T | undefined {
    const top = this.items[0];
    if (top !== undefined) this.delete(top);
    return top;
  }

  /**
   * The first member, in order, that is accepted. It looks from the top: O(k²) with k refused ones, and O(n) once there are
   * many.
   */
  find(accepts: (item: T) => boolean): T | undefined {
    const { items, compare } = this;
    const at = (place: number): T => items[place] as T;
    // Positions whose parents were refused: the next one is among them.
    const open = items.length > 0 ? [0] : [];
    while (open.length > 0 && open.length <= OPEN_MAX) {
      const place = open.reduce((best, each) => (compare(at(each), at(best)) < 0 ? each : best));
      if (accepts(at(place))) return at(place);
      open.splice(open.indexOf(place), 1);
      for (let child = 2 * place + 1; child <= 2 * place + 2; child++) {
        if (child < items.length) open.push(child);
      }
    }
    let first: T | undefined;
    for (const item of open.length === 0 ? [] : items) {
      if ((first === undefined || compare(item, first) < 0) && accepts(item)) first = item;
    }
    return first;
  }

  /** Returns false when the item was not in the heap. */
  delete(item: T): boolean {
    if (!this.has(item)) return false;
    const index = item.place;
    const last = this.items.pop() as T;
    item.place = -1;
    if (last !== item) {
      this.put(last, index);
      this.update(last);
    }
    return true;
  }

  /** Puts a member whose key changed back into its place. */
  update(item: T): void {
    this.siftUp(item.place);
    this.siftDown(item.place);
  }

  clear(): void {
    for (const item of this.items) item.place = -1;
    this.items.length = 0;
  }

  /** The members in ascending order: a sorted copy, O(n log n). For views and tests. */
  sorted(): T[] {
    return this.items.toSorted(this.compare);
  }

  /** Iterates in heap order, which is not sorted. */
  [Symbol.iterator](): IterableIterator<T> {
    return this.items[Symbol.iterator]();
  }

  private put(item: T, index: number): void {
    this.items[index] = item;
    item.place = index;
  }

  private siftUp(start: number): void {
    const { items, compare } = this;
    const item = items[start] as T;
    let index = start;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = items[parentIndex] as T;
      if (compare(item, parent) >= 0) break;
      this.put(parent, index);
      index = parentIndex;
    }
    if (index !== start) this.put(item, index);
  }

  private siftDown(start: number): void {
    const { items, compare } = this;
    const item = items[start] as T;
    const half = items.length >> 1;
    let index = start;
    while (index < half) {
      let childIndex = 2 * index + 1;
      const right = items[childIndex + 1];
      if (right !== undefined && compare(right, items[childIndex] as T) < 0) childIndex++;
      const child = items[childIndex] as T;
      if (compare(item, child) <= 0) break;
      this.put(child, index);
      index = childIndex;
    }
    if (index !== start) this.put(item, index);
  }
}

/**
 * A binary heap: the first item by the comparator is on top. With a total order (0 only for the
 * same item) nothing depends on the order of insertion.
 */
export class MinHeap<T> {
  private readonly items: T[] = [];

  /** @param compare - negative when `a` comes before `b` */
  constructor(private readonly compare: (a: T, b: T) => number) {}

  get size(): number {
    return this.items.length;
  }

  peek(): T | undefined {
    return this.items[0];
  }

  /** O(log n); O(1) for what comes last. */
  push(item: T): void {
    const { items, compare } = this;
    let index = items.length;
    items.push(item);
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = items[parentIndex] as T;
      if (compare(item, parent) >= 0) break;
      items[index] = parent;
      index = parentIndex;
    }
    items[index] = item;
  }

  /** O(log n). */
  pop(): T | undefined {
    const { items } = this;
    const top = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return top;
    items[0] = last;
    this.settleTop();
    return top;
  }

  /** Puts the item on top into its place after it has moved back in the order. O(log n). */
  settleTop(): void {
    const { items, compare } = this;
    const item = items[0] as T;
    const half = items.length >> 1;
    let index = 0;
    while (index < half) {
      let childIndex = 2 * index + 1;
      const right = items[childIndex + 1];
      if (right !== undefined && compare(right, items[childIndex] as T) < 0) childIndex++;
      const child = items[childIndex] as T;
      if (compare(item, child) <= 0) break;
      items[index] = child;
      index = childIndex;
    }
    items[index] = item;
  }
}

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

  /** The sort key of the member; undefined outside of the heap. */
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

/** A member of a {@link RankedSet} has a dense rank that is unique among all possible members. */
interface Ranked {
  readonly rank: number;
}

/**
 * A set whose members are iterated in ascending rank, whatever the order in which they came in.
 *
 * One bit per rank: membership is O(1), iteration is O(ranks / 32), and the k-th member is found in
 * O(ranks / 1024). The owner of the ranks must {@link rebuild} the set when ranks move.
 */
export class RankedSet<T extends Ranked> implements Iterable<T> {
  private words: number[] = [];
  /** The number of members in each block of 32 words. */
  private blocks: number[] = [];
  private count = 0;

  /** @param byRank - the owner's table of all possible members, indexed by rank. */
  constructor(private readonly byRank: readonly T[]) {}

  get size(): number {
    return this.count;
  }

  has(member: T): boolean {
    return ((this.words[member.rank >>> 5] ?? 0) & (1 << (member.rank & 31))) !== 0;
  }

  add(member: T): void {
    const word = member.rank >>> 5;
    while (this.words.length <= word) this.words.push(0);
    while (this.blocks.length <= word >>> 5) this.blocks.push(0);
    const before = this.words[word] as number;
    const after = before | (1 << (member.rank & 31));
    if (after === before) return;
    this.words[word] = after;
    (this.blocks[word >>> 5] as number)++;
    this.count++;
  }

  delete(member: T): boolean {
    const word = member.rank >>> 5;
    const before = this.words[word];
    if (before === undefined) return false;
    const after = before & ~(1 << (member.rank & 31));
    if (after === before) return false;
    this.words[word] = after;
    (this.blocks[word >>> 5] as number)--;
    this.count--;
    return true;
  }

  clear(): void {
    this.words.length = 0;
    this.blocks.length = 0;
    this.count = 0;
  }

  /** The k-th member in ascending rank, from 0. */
  at(k: number): T | undefined {
    let left = k;
    let block = 0;
    while (block < this.blocks.length && left >= (this.blocks[block] as number)) {
      left -= this.blocks[block++] as number;
    }
    for (let word = block << 5; word < this.words.length; word++) {
      let bits = this.words[word] as number;
      const inWord = popCount(bits);
      if (left >= inWord) {
        left -= inWord;
        continue;
      }
      while (left-- > 0) bits &= bits - 1;
      return this.byRank[(word << 5) + trailingZeros(bits)];
    }
    return undefined;
  }

  /** Members by ascending rank, written into a reused array. */
  into(target: T[]): T[] {
    target.length = 0;
    for (let word = 0; word < this.words.length; word++) {
      let bits = this.words[word] as number;
      while (bits !== 0) {
        target.push(this.byRank[(word << 5) + trailingZeros(bits)] as T);
        bits &= bits - 1;
      }
    }
    return target;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.into([])[Symbol.iterator]();
  }

  /** Sets the members anew after ranks have moved. */
  rebuild(members: Iterable<T>): void {
    this.clear();
    for (const member of members) this.add(member);
  }
}

function trailingZeros(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

function popCount(bits: number): number {
  let n = bits - ((bits >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return (((n + (n >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
