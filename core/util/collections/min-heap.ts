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
