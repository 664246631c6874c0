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

/** Groups by weight, then by the rank of their best leaf. O(log groups) for each change. */
export class GroupHeap {
  private readonly heap: Int32Array;
  private size = 0;
  private readonly weights: Int32Array;
  private readonly ranks: Int32Array;
  /** The index of each group in the heap, or -1. */
  private readonly positions: Int32Array;

  constructor(groupCount: number) {
    this.heap = new Int32Array(groupCount);
    this.weights = new Int32Array(groupCount);
    this.ranks = new Int32Array(groupCount);
    this.positions = new Int32Array(groupCount).fill(-1);
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Rank of the first group; there must be one. */
  get firstRank(): number {
    return this.ranks[this.heap[0] as number] as number;
  }

  /** Rank of a group, or -1 when it is not in the heap. */
  rankOf(group: number): number {
    return (this.positions[group] as number) < 0 ? -1 : (this.ranks[group] as number);
  }

  /** Adds a group, or changes it. */
  set(group: number, weight: number, rank: number): void {
    this.weights[group] = weight;
    this.ranks[group] = rank;
    const position = this.positions[group] as number;
    if (position < 0) this.rise(this.size++, group);
    else this.move(position, group);
  }

  /** Adds to the weight of a group; no-op when it is not in the heap. */
  change(group: number, by: number): void {
    const position = this.positions[group] as number;
    if (position < 0) return;
    this.weights[group] = (this.weights[group] as number) + by;
    this.move(position, group);
  }

  /** No-op when it is not in the heap. */
  remove(group: number): void {
    const position = this.positions[group] as number;
    if (position < 0) return;
    this.positions[group] = -1;
    const last = this.heap[--this.size] as number;
    if (last !== group) this.move(position, last);
  }

  clear(): void {
    this.size = 0;
    this.positions.fill(-1);
  }

  private move(position: number, group: number): void {
    const above = this.heap[(position - 1) >> 1] as number;
    if (position > 0 && this.isBefore(group, above)) this.rise(position, group);
    else this.sink(position, group);
  }

  private isBefore(a: number, b: number): boolean {
    const weight = (this.weights[a] as number) - (this.weights[b] as number);
    return weight < 0 || (weight === 0 && (this.ranks[a] as number) < (this.ranks[b] as number));
  }

  private rise(from: number, group: number): void {
    let position = from;
    while (position > 0) {
      const above = (position - 1) >> 1;
      const parent = this.heap[above] as number;
      if (!this.isBefore(group, parent)) break;
      this.put(position, parent);
      position = above;
    }
    this.put(position, group);
  }

  private sink(from: number, group: number): void {
    let position = from;
    for (;;) {
      let below = 2 * position + 1;
      if (below >= this.size) break;
      const right = below + 1;
      if (
        right < this.size &&
        this.isBefore(this.heap[right] as number, this.heap[below] as number)
      ) {
        below = right;
      }
      const child = this.heap[below] as number;
      if (!this.isBefore(child, group)) break;
      this.put(position, child);
      position = below;
    }
    this.put(position, group);
  }

  private put(position: number, group: number): void {
    this.heap[position] = group;
    this.positions[group] = position;
  }
}
