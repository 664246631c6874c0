import { collectGarbage, collectYoungGarbage, threadBytes } from '../collect-garbage.ts';

/** Collections of everything are followed by this many times their own duration without one. */
const PAUSE_RATIO = 5;

/**
 * Collects what tasks leave behind in a thread: copies of inputs, values that were returned, and the thread's
 * hold on the bytes of results. The engine sees no reason to, because there are few of them; but they are
 * large, and memory that is shared is only given back when no thread holds it.
 */
export class IdleCollector {
  private leftBytes = 0;
  /** After the last collection of everything. */
  private calmBytes = threadBytes();
  private nextFullMs = -Infinity;

  /** @param tidyBytes - what may be left behind before it is collected; Infinity: the engine does as it likes */
  constructor(private readonly tidyBytes: number) {}

  /**
   * A task has ended; nothing of it may be on the stack any more.
   * @param nbytes - of its inputs and its result
   */
  taskEnded(nbytes: number): void {
    this.leftBytes += nbytes;
    if (this.leftBytes < this.tidyBytes) return;
    this.leftBytes = 0;
    collectYoungGarbage();
    const isMuch = threadBytes() > this.calmBytes + 2 * this.tidyBytes;
    if (isMuch && performance.now() >= this.nextFullMs) this.collect();
  }

  /** Collects everything. */
  collect(): void {
    const startMs = performance.now();
    collectGarbage();
    const endMs = performance.now();
    this.nextFullMs = endMs + PAUSE_RATIO * (endMs - startMs);
    this.calmBytes = threadBytes();
    this.leftBytes = 0;
  }
}
