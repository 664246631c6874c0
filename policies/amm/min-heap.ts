/** A binary heap: the first of its items is at hand. `push` and `pop` are O(log size). */
export class MinHeap<T> {
  private readonly items: T[] = [];

  /** @param isBefore - a strict total order, so that nothing depends on the order of insertion */
  constructor(private readonly isBefore: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.items.length;
  }

  peek(): T | undefined {
    return this.items[0];
  }

  push(item: T): void {
    const { items, isBefore } = this;
    let at = items.length;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = items[up] as T;
      if (!isBefore(item, parent)) break;
      items[at] = parent;
      at = up;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const { items, isBefore } = this;
    const first = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return first;
    let at = 0;
    for (let down = 1; down < items.length; down = 2 * at + 1) {
      const right = down + 1;
      if (right < items.length && isBefore(items[right] as T, items[down] as T)) down = right;
      if (!isBefore(items[down] as T, last)) break;
      items[at] = items[down] as T;
      at = down;
    }
    items[at] = last;
    return first;
  }
}
