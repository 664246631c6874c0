/** A binary heap of numbers, the smallest first. */
export class NumberHeap {
  private readonly heap: number[] = [];

  get size(): number {
    return this.heap.length;
  }

  /** The smallest; there must be one. */
  get first(): number {
    return this.heap[0] as number;
  }

  push(number: number): void {
    const { heap } = this;
    let position = heap.length;
    heap.push(number);
    while (position > 0) {
      const above = (position - 1) >> 1;
      const parent = heap[above] as number;
      if (parent <= number) break;
      heap[position] = parent;
      position = above;
    }
    heap[position] = number;
  }

  /** Takes out the smallest; there must be one. */
  pop(): number {
    const { heap } = this;
    const first = heap[0] as number;
    const last = heap.pop() as number;
    const size = heap.length;
    if (size === 0) return first;
    let position = 0;
    for (;;) {
      let below = 2 * position + 1;
      if (below >= size) break;
      if (below + 1 < size && (heap[below + 1] as number) < (heap[below] as number)) below++;
      if ((heap[below] as number) >= last) break;
      heap[position] = heap[below] as number;
      position = below;
    }
    heap[position] = last;
    return first;
  }
}
