import type { Clock } from '../../api/clock.ts';
import type { Executor } from '../../api/executor.ts';
import { COLLECTION_PAUSE_RATIO } from '../../worker/memory/memory-options.ts';
import { SHARED_BYTES_MIN } from '../serving/incoming-results.ts';
import type { WorkerMemoryOptions } from '../worker-options.ts';

/** Bytes of released results after which young garbage is collected, and after which all of it is. */
const YOUNG_BYTES = 64 * 1024 * 1024;
const ALL_BYTES = 256 * 1024 * 1024;

/**
 * Has the memory of released results given back where no limit of memory does it. Large results are in memory that
 * threads share, which the engine does not count: it sees no reason to collect the few small objects that hold it.
 */
export class ReleasedResults {
  private youngBytes = 0;
  private allBytes = 0;
  private isDue = false;
  private nextFullMs = -Infinity;

  constructor(
    private readonly collect: Pick<WorkerMemoryOptions, 'collectGarbage' | 'collectYoungGarbage'>,
    private readonly executor: Pick<Executor, 'collectGarbage'>,
    private readonly clock: Clock,
  ) {}

  /** A result was released. */
  note(nbytes: number): void {
    if (nbytes < SHARED_BYTES_MIN) return; // The engine counts its memory.
    this.youngBytes += nbytes;
    this.allBytes += nbytes;
    if (this.isDue || this.youngBytes < YOUNG_BYTES) return;
    this.isDue = true;
    // What releases it may still refer to it.
    queueMicrotask(() => {
      this.isDue = false;
      this.collectSome();
    });
  }

  private collectSome(): void {
    const { collect, clock } = this;
    this.youngBytes = 0;
    const startMs = clock.nowMs();
    if (this.allBytes < ALL_BYTES || startMs < this.nextFullMs) {
      collect.collectYoungGarbage?.();
      return;
    }
    this.allBytes = 0;
    this.executor.collectGarbage?.();
    collect.collectGarbage?.();
    const endMs = clock.nowMs();
    this.nextFullMs = endMs + COLLECTION_PAUSE_RATIO * (endMs - startMs);
  }
}
