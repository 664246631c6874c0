/** Parts of the memory limit at which a worker does something about it. 0: never. */
export interface MemoryThresholds {
  /** Results that go beyond it are spilled, the least recently used first. Default 0.6. */
  readonly target: number;
  /** When all that the worker occupies goes beyond it, results are spilled as well. Default 0.7. */
  readonly spill: number;
  /** Beyond it no further task begins. Default 0.8. */
  readonly pause: number;
  /** Beyond it the worker gives up. Default 0.95. */
  readonly terminate: number;
}

export const DEFAULT_MEMORY_THRESHOLDS: MemoryThresholds = {
  target: 0.6,
  spill: 0.7,
  pause: 0.8,
  terminate: 0.95,
};

/** A paused worker resumes when it occupies less than this part of the memory that paused it. */
export const RESUME_RATIO = 0.95;

/** Milliseconds after which a paused worker that cannot free memory resumes, one task at a time. */
export const STUCK_MS = 2000;

/** A collection of garbage is followed by this many times its own duration without one. */
export const COLLECTION_PAUSE_RATIO = 10;

/** The same for a worker that spills because of all that it occupies. */
export const SPILLING_PAUSE_RATIO = 3;

/** The same for one that is beyond `pause`. */
export const FULL_PAUSE_RATIO = 1;

/**
 * When results and garbage of this part of the memory limit have accumulated, the memory is
 * measured.
 */
export const LOOK_RATIO = 0.02;

/**
 * The part of a growth of unmanaged memory that each measurement accepts; a decline is accepted at
 * once.
 */
export const CALM_RATIO = 0.1;

/** Part of the memory limit that results in memory may always have. */
export const LEAST_TARGET = 0.05;

/** Least milliseconds between two collections of garbage. */
export const COLLECTION_INTERVAL_MS = 50;

/** Results of this part of the memory limit that left memory are garbage worth a look at once. */
export const GARBAGE_RATIO = 0.05;

/** Milliseconds beyond `terminate`, collections of garbage included, before the worker gives up. */
export const LAST_CHANCE_MS = 2000;

/**
 * Collections beyond `terminate` before the worker gives up: memory that one collection makes
 * unreachable is freed by the next.
 */
export const LAST_COLLECTIONS = 3;

/** Milliseconds without an attempt to spill after one failed. */
export const SPILL_RETRY_MS = 5000;
