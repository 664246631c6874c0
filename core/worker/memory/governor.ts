import {
  COLLECTION_INTERVAL_MS,
  COLLECTION_PAUSE_RATIO,
  FULL_PAUSE_RATIO,
  GARBAGE_RATIO,
  LAST_CHANCE_MS,
  LAST_COLLECTIONS,
  type MemoryThresholds,
  RESUME_RATIO,
  SPILLING_PAUSE_RATIO,
  STUCK_MS,
} from './memory-options.ts';

/**
 * What a worker may do: everything; begin nothing; or begin one task, or one transfer, at a time, because
 * to wait would not help.
 */
export type MemoryMode = 'running' | 'paused' | 'crawling';

/** One look at the memory of a worker. */
export interface MemorySample {
  readonly nowMs: number;
  /** All that the worker occupies. */
  readonly processBytes: number;
  /** Results that left memory since garbage was last collected. */
  readonly garbageBytes: number;
  /** Results in memory. */
  readonly ramBytes: number;
  /** Whether an attempt to spill could succeed now. */
  readonly canSpill: boolean;
  /** The last attempt to spill failed: the disk is full or broken. Default false. */
  readonly isSpillFailing?: boolean;
  /** Nothing runs and nothing is on its way. */
  readonly isIdle: boolean;
}

/** What is to be done about it. */
export interface MemoryVerdict {
  /** Bytes of results to spill; 0: none. */
  readonly spillBytes: number;
  readonly mode: MemoryMode;
  /**
   * Whether to collect garbage, after spilling. Then call {@link MemoryGovernor.noteCollection}.
   */
  readonly collect: boolean;
  /** The worker shall close for lack of memory. */
  readonly terminate: boolean;
  /** It pauses instead of closing, because its results fill it and cannot be spilled. */
  readonly isBlockedByDisk: boolean;
}

/**
 * Decides from measurements what a worker does about its memory. A function of its state and the
 * sample: no clock, no I/O.
 *
 * Garbage counts in the measurement until it is collected, and spilled results are garbage, too. So
 * the worker spills, pauses and closes only after a collection that did not free enough.
 */
export class MemoryGovernor {
  private mode: MemoryMode = 'running';
  private isSpilling = false;
  /** Before more is spilled, garbage is collected: it may be enough. */
  private needsCollection = false;
  private nextCollectionMs = -Infinity;
  /** Garbage was collected since it came to be beyond `pause`. */
  private hasTidied = false;
  private stuckSinceMs: number | undefined;
  /** Since when it has been beyond `terminate`. */
  private tooMuchSinceMs: number | undefined;
  /** How often garbage was collected since then. */
  private lastCollections = 0;
  private pauseRatio = COLLECTION_PAUSE_RATIO;

  /** @param limitBytes - above 0 */
  constructor(
    private readonly limitBytes: number,
    private readonly thresholds: MemoryThresholds,
  ) {}

  decide(sample: MemorySample): MemoryVerdict {
    const spillBytes = this.spillBytes(sample);
    if (spillBytes > 0) this.needsCollection = true;
    this.mode = this.nextMode(sample);
    const isTooMuch = this.isBeyond(this.thresholds.terminate, sample);
    const isBlocked = isTooMuch && this.isBlockedByDisk(sample);
    if (isBlocked) this.mode = this.pause();
    const terminate = isTooMuch && !isBlocked && this.isHopeless(sample);
    if (!isTooMuch) this.tooMuchSinceMs = undefined;
    if (!isTooMuch) this.lastCollections = 0;
    const isFull = isTooMuch || this.isBeyond(this.thresholds.pause, sample);
    this.pauseRatio = isFull
      ? FULL_PAUSE_RATIO
      : this.isSpilling
        ? SPILLING_PAUSE_RATIO
        : COLLECTION_PAUSE_RATIO;
    const wantsCollection =
      this.needsCollection || sample.garbageBytes >= GARBAGE_RATIO * this.limitBytes || isFull;
    const collect = wantsCollection && sample.nowMs >= this.nextCollectionMs;
    if (collect && isTooMuch) this.lastCollections++;
    if (collect && isFull) this.hasTidied = true;
    return { spillBytes, mode: this.mode, collect, terminate, isBlockedByDisk: isBlocked };
  }

  /** Records a collection of garbage and its duration. */
  noteCollection(nowMs: number, tookMs: number): void {
    this.needsCollection = false;
    this.nextCollectionMs = nowMs + Math.max(COLLECTION_INTERVAL_MS, this.pauseRatio * tookMs);
  }

  /** Something was done about it: the last chance begins anew. */
  giveAnotherChance(): void {
    this.tooMuchSinceMs = undefined;
    this.lastCollections = 0;
  }

  private isBeyond(threshold: number, { processBytes }: MemorySample): boolean {
    return threshold > 0 && processBytes > threshold * this.limitBytes;
  }

  /**
   * Whether results that cannot be spilled are what fills the worker. Closing would not help then: the
   * results would be computed again, and fill the worker that replaces it.
   */
  private isBlockedByDisk(sample: MemorySample): boolean {
    const { isSpillFailing = false, processBytes, ramBytes } = sample;
    const otherBytes = processBytes - ramBytes;
    return isSpillFailing && otherBytes <= this.thresholds.terminate * this.limitBytes;
  }

  /** Threads collect when they get round to it, and the system takes memory back when it likes. */
  private isHopeless({ nowMs }: MemorySample): boolean {
    this.tooMuchSinceMs ??= nowMs;
    if (this.lastCollections < LAST_COLLECTIONS) return false;
    return nowMs - this.tooMuchSinceMs >= LAST_CHANCE_MS;
  }

  /** Bytes to spill: spilling begins above `spill` and continues until below `target`. */
  private spillBytes(sample: MemorySample): number {
    const { spill, target } = this.thresholds;
    if (spill === 0) return 0;
    const low = target > 0 ? Math.min(target, spill) : spill;
    const isBeyond = this.isBeyond(this.isSpilling ? low : spill, sample);
    if (isBeyond && !this.isSpilling) this.needsCollection = true;
    this.isSpilling = isBeyond;
    if (!isBeyond || this.needsCollection || !sample.canSpill) return 0;
    return Math.min(sample.ramBytes, Math.ceil(sample.processBytes - low * this.limitBytes));
  }

  private nextMode(sample: MemorySample): MemoryMode {
    const { pause } = this.thresholds;
    if (pause === 0) return 'running';
    if (this.mode === 'running') {
      const isBeyond = this.isBeyond(pause, sample);
      this.hasTidied &&= isBeyond;
      return this.hasTidied ? this.pause() : 'running';
    }
    if (!this.isBeyond(pause * RESUME_RATIO, sample)) return 'running';
    if (this.mode === 'crawling') return 'crawling';
    return this.isStuck(sample) ? 'crawling' : 'paused';
  }

  private pause(): MemoryMode {
    this.stuckSinceMs = undefined;
    return 'paused';
  }

  /** For a while there has been nothing that could make it less. */
  private isStuck({ nowMs, isIdle, canSpill, ramBytes }: MemorySample): boolean {
    const couldSpill = this.thresholds.spill > 0 && canSpill && ramBytes > 0;
    if (!isIdle || couldSpill) {
      this.stuckSinceMs = undefined;
      return false;
    }
    this.stuckSinceMs ??= nowMs;
    return nowMs - this.stuckSinceMs >= STUCK_MS;
  }
}
