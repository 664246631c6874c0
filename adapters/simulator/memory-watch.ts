import type { Clock } from '../../core/api/index.ts';
import { MemoryGovernor, type MemoryMode } from '../../core/worker/memory/governor.ts';
import { DEFAULT_MEMORY_THRESHOLDS } from '../../core/worker/memory/memory-options.ts';
import type { SimulatedStore } from './store.ts';

/** How often the memory is looked at, and the part of its limit below which that is not worth it. */
const LOOK_MS = 100;
const LOOK_RATIO = 0.5;

/** What a worker does about its memory. */
interface MemoryOwner {
  readonly isIdle: boolean;
  later(ms: number, callback: () => void): void;
  onMemoryMode(mode: MemoryMode): void;
  /** The worker has to close for lack of memory. */
  onTooMuch(): void;
}

/** Decides with the governor of real workers when a simulated one pauses, and when it gives up. */
export class MemoryWatch {
  private readonly governor: MemoryGovernor;
  private mode: MemoryMode = 'running';
  private isDue = false;

  constructor(
    private readonly owner: MemoryOwner,
    private readonly clock: Clock,
    private readonly limitBytes: number,
  ) {
    this.governor = new MemoryGovernor(limitBytes, DEFAULT_MEMORY_THRESHOLDS);
  }

  /** Something was added or dropped. */
  noteChange(store: SimulatedStore): void {
    const isCalm = this.mode === 'running' && store.memoryBytes < LOOK_RATIO * this.limitBytes;
    if (this.isDue || isCalm) return;
    this.isDue = true;
    this.owner.later(LOOK_MS, () => this.look(store));
  }

  private look(store: SimulatedStore): void {
    this.isDue = false;
    const { governor, clock, owner } = this;
    const nowMs = clock.nowMs();
    const verdict = governor.decide({
      nowMs,
      processBytes: store.memoryBytes,
      garbageBytes: 0,
      ramBytes: store.memoryBytes,
      canSpill: true,
      isIdle: owner.isIdle,
    });
    // Memory that is freed here is free at once.
    if (verdict.collect) governor.noteCollection(nowMs, 0);
    if (verdict.terminate) {
      owner.onTooMuch();
      return;
    }
    if (verdict.mode !== this.mode) {
      this.mode = verdict.mode;
      owner.onMemoryMode(verdict.mode);
    }
    this.noteChange(store);
  }
}
