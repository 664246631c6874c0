/**
 * Leaves by how many roots they still need; among equals those that touch what is numbered come first,
 * then the smallest rank. Leaves that need none are not in it. O(log leaves) for each change.
 */
export class LeafHeap {
  private readonly heap: Int32Array;
  private size = 0;
  /** Of each rank: 2 * missing roots, plus 1 while the leaf touches nothing. */
  private readonly weights: Int32Array;
  /** Of each rank: where it is in the heap, or -1. */
  private readonly positions: Int32Array;

  constructor(leafCount: number) {
    this.heap = new Int32Array(leafCount);
    this.weights = new Int32Array(leafCount);
    this.positions = new Int32Array(leafCount).fill(-1);
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Rank of the best leaf; undefined behaviour when it is empty. */
  first(): number {
    return this.heap[0] as number;
  }

  add(rank: number, missingRoots: number): void {
    if (missingRoots === 0) return;
    this.weights[rank] = 2 * missingRoots + 1;
    this.rise(this.size++, rank);
  }

  /** The leaf touches what is numbered. */
  touch(rank: number): void {
    const position = this.positions[rank] as number;
    const weight = this.weights[rank] as number;
    if (position < 0 || weight % 2 === 0) return;
    this.weights[rank] = weight - 1;
    this.rise(position, rank);
  }

  /** One of the roots of the leaf is numbered. */
  needLess(rank: number): void {
    const position = this.positions[rank] as number;
    if (position < 0) return;
    const weight = (this.weights[rank] as number) - 2;
    this.weights[rank] = weight;
    if (weight > 1) this.rise(position, rank);
    else this.remove(rank);
  }

  remove(rank: number): void {
    const position = this.positions[rank] as number;
    if (position < 0) return;
    this.positions[rank] = -1;
    const last = this.heap[--this.size] as number;
    if (last === rank) return;
    if (position > 0 && this.isBefore(last, this.heap[(position - 1) >> 1] as number)) {
      this.rise(position, last);
    } else this.sink(position, last);
  }

  private isBefore(a: number, b: number): boolean {
    const difference = (this.weights[a] as number) - (this.weights[b] as number);
    return difference < 0 || (difference === 0 && a < b);
  }

  private rise(from: number, rank: number): void {
    let position = from;
    while (position > 0) {
      const above = (position - 1) >> 1;
      const parent = this.heap[above] as number;
      if (!this.isBefore(rank, parent)) break;
      this.put(position, parent);
      position = above;
    }
    this.put(position, rank);
  }

  private sink(from: number, rank: number): void {
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
      if (!this.isBefore(child, rank)) break;
      this.put(position, child);
      position = below;
    }
    this.put(position, rank);
  }

  private put(position: number, rank: number): void {
    this.heap[position] = rank;
    this.positions[rank] = position;
  }
}
