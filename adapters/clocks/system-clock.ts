import type { Clock, Timer } from '../../core/api/index.ts';

/** The longest delay that `setTimeout` takes, in milliseconds; with a longer one it would fire at once. */
export const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/**
 * Real time: milliseconds since the epoch, with fractions, that do not jump when the machine's wall
 * clock is set. Timers keep the process alive until they fire or are cancelled.
 */
export class SystemClock implements Clock {
  nowMs(): number {
    return epochMs();
  }

  /**
   * @param delayMs - 0 or less: after what is waiting in the event loop now, with no delay of a
   *   millisecond as `setTimeout` has it; Infinity: never
   */
  setTimer(delayMs: number, callback: () => void): Timer {
    if (Number.isNaN(delayMs)) throw new RangeError('the delay of a timer is NaN');
    return delayMs <= 0 ? immediateTimer(callback) : new DelayTimer(this, delayMs, callback);
  }
}

function immediateTimer(callback: () => void): Timer {
  const handle = setImmediate(callback);
  return {
    cancel(): void {
      clearImmediate(handle);
    },
  };
}

class DelayTimer implements Timer {
  private handle: NodeJS.Timeout | undefined;
  private readonly dueMs: number;

  constructor(
    private readonly clock: SystemClock,
    delayMs: number,
    private readonly callback: () => void,
  ) {
    this.dueMs = clock.nowMs() + delayMs;
    this.arm(delayMs);
  }

  cancel(): void {
    clearTimeout(this.handle);
  }

  private arm(delayMs: number): void {
    if (delayMs === Infinity) return;
    this.handle = setTimeout(
      () => {
        // `setTimeout` counts whole milliseconds of another clock and may fire a fraction early.
        const leftMs = this.dueMs - this.clock.nowMs();
        if (leftMs > 0) this.arm(leftMs);
        else this.callback();
      },
      Math.min(Math.ceil(delayMs), TIMEOUT_MS_MAX),
    );
  }
}

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

  /** The time at which the first timer is due; of no meaning when there is none. */
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

/** To ask for it takes as long as to ask for the time. Each thread has its own. */
const ORIGIN_MS = performance.timeOrigin;

/**
 * Milliseconds since the epoch, with fractions, that do not jump when the machine's wall clock is set: the
 * same in all threads of a process.
 */
export function epochMs(): number {
  return ORIGIN_MS + performance.now();
}
