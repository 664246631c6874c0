/** Bytes of one worker (or of several, summed), split by who manages them. */
export interface MemoryParts {
  /** Resident set of the worker's process. */
  readonly process: number;
  /** Least unmanaged memory seen over the time of `scheduler.recentToOldTime`: leaks and baseline. */
  readonly unmanagedOld: number;
  /** Results in RAM. */
  readonly managed: number;
  /** Results on disk, as they are there. */
  readonly spilled: number;
}

/** The measures by which a policy may compare workers. */
export const MEMORY_MEASURES = [
  'process',
  'managed',
  'managedTotal',
  'spilled',
  'unmanaged',
  'unmanagedOld',
  'unmanagedRecent',
  'optimistic',
] as const;

/** Names of the ways to measure the memory of a worker. */
export type MemoryMeasure = (typeof MEMORY_MEASURES)[number];

/**
 * A consistent picture of memory. `managed` and `process` come from different moments, so the
 * constructor clamps what cannot be true at once (Dask `MemoryState`).
 */
export class MemoryState implements Record<MemoryMeasure, number> {
  readonly process: number;
  readonly managed: number;
  readonly spilled: number;
  readonly unmanagedOld: number;

  constructor(parts: MemoryParts) {
    this.process = parts.process;
    this.managed = Math.min(parts.process, parts.managed);
    this.spilled = parts.spilled;
    this.unmanagedOld = Math.min(parts.unmanagedOld, this.process - this.managed);
  }

  static sum(states: Iterable<MemoryState>): MemoryState {
    let process = 0;
    let managed = 0;
    let spilled = 0;
    let unmanagedOld = 0;
    for (const state of states) {
      process += state.process;
      managed += state.managed;
      spilled += state.spilled;
      unmanagedOld += state.unmanagedOld;
    }
    return new MemoryState({ process, managed, spilled, unmanagedOld });
  }

  get managedTotal(): number {
    return this.managed + this.spilled;
  }

  get unmanaged(): number {
    return this.process - this.managed;
  }

  get unmanagedRecent(): number {
    return this.process - this.managed - this.unmanagedOld;
  }

  /** What the worker would use if recent unmanaged memory were garbage about to be collected. */
  get optimistic(): number {
    return this.managed + this.unmanagedOld;
  }
}

/** The least unmanaged memory of the last time: of 30 seconds, unless the configuration says otherwise. */
export class UnmanagedHistory {
  private readonly entries: { readonly atMs: number; readonly bytes: number }[] = [];
  private minimum = 0;

  /** Bytes; 0 while nothing was measured. */
  get oldBytes(): number {
    return this.minimum;
  }

  /** What is known, as plain data: measurements of the last time, and the least of them. */
  get measured(): readonly (readonly [atMs: number, bytes: number])[] {
    return this.entries.map(({ atMs, bytes }) => [atMs, bytes]);
  }

  /** Takes over what another history has measured. */
  restore(measured: UnmanagedHistory['measured'], oldBytes: number): void {
    for (const [atMs, bytes] of measured) this.entries.push({ atMs, bytes });
    this.minimum = oldBytes;
  }

  /**
   * Cost per heartbeat: amortised O(1), and O(entries) when the minimum grows old.
   * @param recentMs - how long a measurement counts as recent
   */
  add(nowMs: number, bytes: number, recentMs: number): void {
    while (this.entries.length > 0 && this.entries[0]!.atMs < nowMs - recentMs) {
      const dropped = this.entries.shift()!;
      if (dropped.bytes === this.minimum) this.minimum = 0;
    }
    this.entries.push({ atMs: nowMs, bytes });
    if (this.minimum === 0) this.minimum = leastBytes(this.entries);
    else if (bytes < this.minimum) this.minimum = bytes;
  }
}

function leastBytes(entries: readonly { readonly bytes: number }[]): number {
  return entries.reduce((least, { bytes }) => Math.min(least, bytes), Infinity);
}
