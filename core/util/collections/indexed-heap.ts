/** What an {@link IndexedHeap} keeps in its members: their own position, or -1 outside of the heap. */
interface HeapMember {
  place: number;
}

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

  has(item: T): boolean {
    return item.place >= 0 && this.items[item.place] === item;
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
