/** Timers that fit before the columns grow. */
const FIRST_CAPACITY = 64;

/**
 * Timers in the order of their time, then of their addition. Times and order are in columns of numbers, so that no
 * timer is read to find the place of another: a large simulation has tens of thousands of them.
 */
export class TimerHeap<T> {
  private size = 0;
  private added = 0;
  private dueMs: Float64Array = new Float64Array(FIRST_CAPACITY);
  /** Counts additions: ties of `dueMs` go to the older one. */
  private order: Float64Array = new Float64Array(FIRST_CAPACITY);
  private readonly timers: T[] = [];

  get first(): T | undefined {
    return this.size === 0 ? undefined : this.timers[0];
  }

  /** When the first timer is due; of no meaning when there is none. */
  get firstMs(): number {
    return this.dueMs[0] as number;
  }

  add(dueMs: number, timer: T): void {
    if (this.size === this.dueMs.length) this.grow();
    // The newest of equals: only later ones make way.
    let index = this.size++;
    this.timers.push(timer);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if ((this.dueMs[parent] as number) <= dueMs) break;
      this.move(parent, index);
      index = parent;
    }
    this.put(index, dueMs, this.added++, timer);
  }

  removeFirst(): void {
    if (this.size === 0) return;
    const last = --this.size;
    const timer = this.timers.pop() as T;
    if (last === 0) return;
    const dueMs = this.dueMs[last] as number;
    const order = this.order[last] as number;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= last) break;
      if (child + 1 < last && this.isBefore(child + 1, child)) child++;
      const childMs = this.dueMs[child] as number;
      if (childMs > dueMs || (childMs === dueMs && (this.order[child] as number) > order)) break;
      this.move(child, index);
      index = child;
    }
    this.put(index, dueMs, order, timer);
  }

  private isBefore(a: number, b: number): boolean {
    const { dueMs, order } = this;
    const aMs = dueMs[a] as number;
    const bMs = dueMs[b] as number;
    return aMs < bMs || (aMs === bMs && (order[a] as number) < (order[b] as number));
  }

  private move(from: number, to: number): void {
    this.put(to, this.dueMs[from] as number, this.order[from] as number, this.timers[from] as T);
  }

  private put(index: number, dueMs: number, order: number, timer: T): void {
    this.dueMs[index] = dueMs;
    this.order[index] = order;
    this.timers[index] = timer;
  }

  private grow(): void {
    this.dueMs = enlarged(this.dueMs);
    this.order = enlarged(this.order);
  }
}

function enlarged(column: Float64Array): Float64Array {
  const larger = new Float64Array(2 * column.length);
  larger.set(column);
  return larger;
}
