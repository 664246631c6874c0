/**
 * The number of the run that a thread has begun last, and of the run that caused its end, in memory that the
 * thread shares with its pool.
 *
 * Runs are numbered from 1 in the order in which they are handed over. The thread claims each before
 * it begins; the pool may claim all that are left, which are then never begun. So a run either begins
 * or comes back, even while the thread is busy and hears nothing.
 */
export class StartedRuns {
  private readonly cell: Int32Array;

  constructor(readonly memory = new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)) {
    this.cell = new Int32Array(memory);
  }

  /** For the thread: whether this run is still its own; if so it has now begun. */
  claim(number: number): boolean {
    const before = wrap(number - 1);
    return Atomics.compareExchange(this.cell, 0, before, wrap(number)) === before;
  }

  /** For the pool: takes back all that has not begun. Returns how many these are. */
  takeBack(last: number): number {
    for (;;) {
      const begun = Atomics.load(this.cell, 0);
      const seen = Atomics.compareExchange(this.cell, 0, begun, wrap(last));
      if (seen === begun) return wrap(last - begun);
    }
  }

  /** For the thread: its end is caused by this run. */
  blame(number: number): void {
    Atomics.store(this.cell, 1, wrap(number));
  }

  /** The run that the thread has named as the cause of its end; 0: none. */
  get culprit(): number {
    return Atomics.load(this.cell, 1);
  }

  /** Runs up to `last` that have not begun. */
  left(last: number): number {
    return wrap(last - Atomics.load(this.cell, 0));
  }
}

/** Numbers are not bounded; the cell holds their low 32 bits. */
function wrap(number: number): number {
  return number | 0;
}
