import { prefixOfKey } from '../state/groups.ts';
import { parseBytes } from '../util/units.ts';
import type { WorkerTask } from './worker-task.ts';

/**
 * The activities that a worker may begin: all; none; or one task, or one transfer, at a time, because
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
  /** True when an attempt to spill could succeed now. */
  readonly canSpill: boolean;
  /** The last attempt to spill failed: the disk is full or broken. Default false. */
  readonly isSpillFailing?: boolean;
  /** Nothing runs and nothing is on its way. */
  readonly isIdle: boolean;
}

/** The measures that the state of the memory asks for. */
export interface MemoryVerdict {
  /** Bytes of results to spill; 0: none. */
  readonly spillBytes: number;
  readonly mode: MemoryMode;
  /**
   * True when garbage is to be collected, after spilling. Then call {@link MemoryGovernor.noteCollection}.
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
  /** The number of garbage collections since then. */
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
   * True when results that cannot be spilled are what fills the worker. Closing would not help then: the
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

/** Parts of the memory limit at which a worker does something about it. 0: never. */
export interface MemoryThresholds {
  /** Results that go beyond it are spilled, the least recently used first. Default 0.6. */
  readonly target: number;
  /** Results are also spilled when all that the worker occupies goes beyond this fraction. Default 0.7. */
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
const RESUME_RATIO = 0.95;

/** Milliseconds after which a paused worker that cannot free memory resumes, one task at a time. */
const STUCK_MS = 2000;

/** A collection of garbage is followed by this many times its own duration without one. */
export const COLLECTION_PAUSE_RATIO = 10;

/** The same for a worker that spills because of all that it occupies. */
const SPILLING_PAUSE_RATIO = 3;

/** The same for one that is beyond `pause`. */
const FULL_PAUSE_RATIO = 1;

/**
 * After results and garbage of this part of the memory limit have accumulated, the memory is
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
const COLLECTION_INTERVAL_MS = 50;

/** Results of this part of the memory limit that left memory are garbage worth a look at once. */
const GARBAGE_RATIO = 0.05;

/** Milliseconds beyond `terminate`, collections of garbage included, before the worker gives up. */
const LAST_CHANCE_MS = 2000;

/**
 * Collections beyond `terminate` before the worker gives up: memory that one collection makes
 * unreachable is freed by the next.
 */
const LAST_COLLECTIONS = 3;

/** Milliseconds without an attempt to spill after one failed. */
export const SPILL_RETRY_MS = 5000;

/** Kinds of tasks whose results are remembered; the one that was seen first is forgotten. */
const KINDS_MAX = 10_000;
/** The weight of the newest result in the expected size of the next one of its kind. */
const LEARNING_RATE = 0.5;

/** The rules by which a worker admits tasks by their expected memory. */
export interface MemoryQuotaOptions {
  /** Bytes that running tasks may be expected to use together. Above 0. */
  readonly quotaBytes: number;
  /** Bytes of the whole process beyond which no task begins beside others; Infinity: no such limit. */
  readonly hardLimitBytes: number;
}

/**
 * Admission as Mars has it: a task asks for the memory that it is expected to use, and begins when that fits beside
 * what those that run have asked for. The first that does not fit holds back those behind it, so that it is
 * not starved; when nothing runs it fits in any case.
 */
export class MemoryQuota {
  private readonly granted = new Map<WorkerTask, number>();
  private grantedTotal = 0;
  /** Mean size of results, the newest counting most, by {@link kindOf}. */
  private readonly resultBytes = new Map<string, number>();
  /** The memory of the process, as last measured. */
  processBytes = 0;

  constructor(readonly options: MemoryQuotaOptions) {}

  /** Bytes that running tasks have asked for. */
  get grantedBytes(): number {
    return this.grantedTotal;
  }

  /**
   * Bytes: what its annotation `memory` says (a number, or text such as `2 GiB`); else its own copies of the
   * inputs, and twice the result that the same function had lately: the value and its bytes. Without one yet, as
   * much as the inputs.
   */
  needOf(task: WorkerTask): number {
    const said = annotatedBytes(task);
    if (said !== undefined) return said;
    let inputBytes = 0;
    for (const dependency of task.dependencies) inputBytes += dependency.nbytes;
    return inputBytes + 2 * (this.resultBytes.get(kindOf(task)) ?? inputBytes / 2);
  }

  /** True when the task may begin now. */
  admits(task: WorkerTask): boolean {
    if (this.granted.size === 0) return true;
    const { quotaBytes, hardLimitBytes } = this.options;
    const need = this.needOf(task);
    return this.grantedTotal + need <= quotaBytes && this.processBytes + need < hardLimitBytes;
  }

  /** True when the task says that it needs more than there ever is. */
  isTooLarge(task: WorkerTask): boolean {
    const said = annotatedBytes(task);
    return said !== undefined && said > this.options.quotaBytes;
  }

  grant(task: WorkerTask): void {
    const need = this.needOf(task);
    this.granted.set(task, need);
    this.grantedTotal += need;
  }

  /** The run of a task has ended. */
  release(task: WorkerTask): void {
    this.grantedTotal -= this.granted.get(task) ?? 0;
    this.granted.delete(task);
  }

  /** Learns from a result. */
  learn(task: WorkerTask, nbytes: number): void {
    const { resultBytes } = this;
    const kind = kindOf(task);
    const known = resultBytes.get(kind);
    const next = known === undefined ? nbytes : known + LEARNING_RATE * (nbytes - known);
    resultBytes.set(kind, next);
    if (resultBytes.size <= KINDS_MAX) return;
    const [oldest = kind] = resultBytes.keys();
    resultBytes.delete(oldest);
  }
}

/** Tasks of one kind have results of one size: those of one function, whatever their keys. */
function kindOf({ key, runSpec }: WorkerTask): string {
  const { module, name } = (
    typeof runSpec === 'object' && runSpec !== null ? runSpec : {}
  ) as Readonly<Record<string, unknown>>;
  if (typeof module === 'string' && typeof name === 'string') return `${name} of ${module}`;
  return prefixOfKey(key);
}

/** Undefined: it does not say, or not in a way that can be read. */
function annotatedBytes({ annotations }: WorkerTask): number | undefined {
  const said = annotations?.['memory'];
  const nbytes = said === undefined ? undefined : parseBytes(said);
  return nbytes === undefined || !(nbytes >= 0) ? undefined : nbytes;
}

/** A result and its places: in memory, on disk, or both. */
interface Resident {
  readonly key: string;
  /** Its size in memory. */
  readonly nbytes: number;
  readonly isInRam: boolean;
  readonly isOnDisk: boolean;
}

type Mutable<T> = { -readonly [Field in keyof T]: T[Field] };

/**
 * Books where results are, and which of those in memory was used least recently. Moves no bytes.
 * Every method is O(1).
 */
export class Residency {
  private readonly residents = new Map<string, Mutable<Resident>>();
  /** Those in memory, least recently used first. */
  private readonly recent = new Map<string, Mutable<Resident>>();
  /** Those in memory that are on disk, too: they can be dropped from either. Oldest copy first. */
  private readonly doubles = new Map<string, Mutable<Resident>>();
  private ram = 0;
  private spilled = 0;

  /** Bytes of what is in memory. */
  get ramBytes(): number {
    return this.ram;
  }

  /** Bytes, as they would be in memory, of what is on disk only. */
  get spilledBytes(): number {
    return this.spilled;
  }

  get size(): number {
    return this.residents.size;
  }

  has(key: string): boolean {
    return this.residents.has(key);
  }

  find(key: string): Resident | undefined {
    return this.residents.get(key);
  }

  keys(): IterableIterator<string> {
    return this.residents.keys();
  }

  /**
   * Adds a new result as the most recently used one. The key must be unknown.
   * @param place - `pinned`: in memory, and never a candidate to leave it
   */
  add(key: string, nbytes: number, place: 'ram' | 'disk' | 'pinned'): void {
    const isInRam = place !== 'disk';
    const resident = { key, nbytes, isInRam, isOnDisk: !isInRam };
    this.residents.set(key, resident);
    if (!isInRam) {
      this.spilled += nbytes;
      return;
    }
    this.ram += nbytes;
    if (place === 'ram') this.recent.set(key, resident);
  }

  /** It is used now. No-op unless it is in memory. */
  touch(key: string): void {
    const resident = this.recent.get(key);
    if (resident === undefined) return;
    this.recent.delete(key);
    this.recent.set(key, resident);
  }

  /** The one in memory that was used least recently. Results without bytes free nothing. */
  leastRecentlyUsed(): Resident | undefined {
    for (const resident of this.recent.values()) {
      if (resident.nbytes > 0) return resident;
      this.recent.delete(resident.key); // Not worth a second look.
    }
    return undefined;
  }

  /** The oldest copy on disk of what is in memory as well. */
  oldestDouble(): Resident | undefined {
    for (const resident of this.doubles.values()) return resident;
    return undefined;
  }

  /** It is in memory no more, but on disk. */
  moveToDisk(key: string): void {
    const resident = this.recent.get(key);
    if (resident === undefined) return;
    this.recent.delete(key);
    this.doubles.delete(key);
    resident.isInRam = false;
    resident.isOnDisk = true;
    this.ram -= resident.nbytes;
    this.spilled += resident.nbytes;
  }

  /** It is in memory again, and still on disk. */
  copyToRam(key: string): void {
    const resident = this.residents.get(key);
    if (resident === undefined || resident.isInRam) return;
    resident.isInRam = true;
    this.recent.set(key, resident);
    this.doubles.set(key, resident);
    this.ram += resident.nbytes;
    this.spilled -= resident.nbytes;
  }

  /** Its copy on disk is gone; it is in memory. */
  dropDouble(key: string): void {
    const resident = this.doubles.get(key);
    if (resident === undefined) return;
    this.doubles.delete(key);
    resident.isOnDisk = false;
  }

  /** False when the key is unknown. */
  remove(key: string): boolean {
    const resident = this.residents.get(key);
    if (resident === undefined) return false;
    this.residents.delete(key);
    this.recent.delete(key);
    this.doubles.delete(key);
    if (resident.isInRam) this.ram -= resident.nbytes;
    else this.spilled -= resident.nbytes;
    return true;
  }
}
