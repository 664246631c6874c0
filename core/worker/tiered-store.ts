import type { Clock } from '../api/clock.ts';
import type { DataStore, SpillArea, ValueReader } from '../api/executor.ts';
import { BytesReader, sharedMemoryOf, valueBytes } from '../util/bytes.ts';
import { Residency, SPILL_RETRY_MS } from './memory.ts';

/** The reason why a result that should be spilled stays in memory. */
export type SpillTrouble =
  | {
      readonly why: 'full';
      readonly key: string;
      readonly nbytes: number;
      readonly maxBytes: number;
    }
  | {
      readonly why: 'failed';
      readonly key: string;
      readonly nbytes: number;
      readonly error: unknown;
    };

interface TieredStoreOptions {
  readonly ram: DataStore;
  readonly disk: SpillArea;
  readonly clock: Clock;
  /** Bytes of results in memory beyond which others are spilled; Infinity: no such limit. */
  readonly targetBytes: number;
  /** Bytes on disk that are never exceeded. */
  readonly maxSpillBytes: number;
  /** A result was found to be gone or damaged: it is in this store no more. */
  readonly onLost: (key: string, error: unknown) => void;
  /** Called with the number of bytes that have left memory and are garbage. */
  readonly onGarbage: (nbytes: number) => void;
  /** Called with the number of bytes that have come into memory. Default: no call. */
  readonly onGrowth?: (nbytes: number) => void;
  /** Called once, and again only after spilling has worked in between. */
  readonly onTrouble: (trouble: SpillTrouble) => void;
}

/**
 * Keeps results in memory as long as they fit, and those that were used least recently on disk.
 *
 * A result that is read back is in memory again, if it fits; its copy on disk stays, so that
 * spilling it again costs nothing. A result that cannot be spilled stays in memory: none is lost
 * for lack of space.
 */
export class TieredStore implements DataStore {
  private readonly residency = new Residency();
  /** Until then nothing is written. */
  private retryAtMs = -Infinity;
  /** The reason why the last attempt to write failed, if it did. */
  private trouble: SpillTrouble['why'] | undefined;
  private targetBytes: number;
  /** For what is on its way. */
  private reservedBytes = 0;
  /** Bytes ever written to disk, and read from there. */
  readonly moved = { written: 0, read: 0 };

  constructor(private readonly options: TieredStoreOptions) {
    this.targetBytes = options.targetBytes;
  }

  /**
   * Sets the bytes of results in memory beyond which others are spilled when new ones are added.
   */
  aim(targetBytes: number): void {
    this.targetBytes = targetBytes;
  }

  /** Bytes of all results, as they would be in memory. */
  get nbytes(): number {
    return this.residency.ramBytes + this.residency.spilledBytes;
  }

  /** Bytes of the results in memory. */
  get ramBytes(): number {
    return this.residency.ramBytes;
  }

  /** Bytes, as they would be in memory, of the results that are on disk only. */
  get spilledBytes(): number {
    return this.residency.spilledBytes;
  }

  /** Bytes on disk, copies of what is in memory included. */
  get diskBytes(): number {
    return this.options.disk.nbytes;
  }

  /** True when an attempt to spill now could succeed. */
  get canSpill(): boolean {
    return this.options.clock.nowMs() >= this.retryAtMs;
  }

  /** True when the last attempt to spill failed. */
  get isSpillFailing(): boolean {
    return this.trouble !== undefined;
  }

  has(key: string): boolean {
    return this.residency.has(key);
  }

  /** Counts as a use. Reads a result from disk when it is only there. */
  get(key: string): Uint8Array | undefined {
    const { residency } = this;
    const resident = residency.find(key);
    if (resident === undefined) return undefined;
    if (!resident.isInRam) return this.readBack(key, resident.nbytes);
    residency.touch(key);
    return this.options.ram.get(key);
  }

  /** Counts as use. What is on disk alone is read from there, and does not come back into memory. */
  open(key: string): ValueReader | undefined {
    const { residency } = this;
    const { ram, disk } = this.options;
    const resident = residency.find(key);
    if (resident === undefined) return undefined;
    if (resident.isInRam) {
      residency.touch(key);
      return new BytesReader(ram.get(key) as Uint8Array);
    }
    try {
      const reader = disk.open?.(key) ?? new BytesReader(disk.read(key));
      this.moved.read += reader.nbytes;
      return new WatchedReader(reader, (error) => {
        // Not when something else has taken its place meanwhile.
        if (residency.find(key) === resident) this.lose(key, error);
      });
    } catch (error) {
      this.lose(key, error);
      return undefined;
    }
  }

  /**
   * Replaces what was there. A value that alone reaches the target goes to disk at once. One that refers to shared
   * memory never does.
   */
  set(key: string, value: Uint8Array): void {
    const { ram } = this.options;
    const { targetBytes } = this;
    const nbytes = valueBytes(value);
    // On its way back it would no longer be the memory that others have.
    const isPinned = sharedMemoryOf(value) !== undefined;
    this.delete(key);
    if (nbytes >= targetBytes && !isPinned && this.write(key, value)) {
      this.residency.add(key, nbytes, 'disk');
      this.options.onGarbage(nbytes);
      return;
    }
    const before = this.ramBytes;
    this.makeRoom(nbytes);
    const spilledBytes = before - this.ramBytes;
    ram.set(key, value);
    this.residency.add(key, nbytes, isPinned ? 'pinned' : 'ram');
    if (spilledBytes > 0) this.options.onGarbage(spilledBytes);
    this.options.onGrowth?.(nbytes);
  }

  /**
   * Makes space for an expected result. @returns to be called once, when the result has arrived or
   * will not arrive
   */
  reserve(nbytes: number): () => void {
    const before = this.ramBytes;
    this.makeRoom(nbytes);
    this.reservedBytes += nbytes;
    if (before > this.ramBytes) this.options.onGarbage(before - this.ramBytes);
    this.options.onGrowth?.(nbytes);
    return () => {
      this.reservedBytes -= nbytes;
    };
  }

  delete(key: string): boolean {
    const resident = this.residency.find(key);
    if (resident === undefined) return false;
    const { isInRam, isOnDisk, nbytes } = resident;
    if (isInRam) this.options.ram.delete(key);
    if (isOnDisk) this.options.disk.delete(key);
    if (isOnDisk && this.trouble === 'full') this.retryAtMs = -Infinity;
    this.residency.remove(key);
    if (isInRam) this.options.onGarbage(nbytes);
    return true;
  }

  keys(): Iterable<string> {
    return this.residency.keys();
  }

  /**
   * Spills at least `nbytes` bytes, the least recently used first.
   * @returns bytes that left memory; fewer when nothing is left, or the disk takes no more
   */
  spill(nbytes: number): number {
    const before = this.ramBytes;
    while (before - this.ramBytes < nbytes && this.spillOne());
    return before - this.ramBytes;
  }

  /**
   * Spills until further results of `nbytes` bytes fit into the target. Returns whether they do.
   */
  private makeRoom(nbytes: number): boolean {
    const roomBytes = this.targetBytes - this.reservedBytes - nbytes;
    while (this.ramBytes > roomBytes) if (!this.spillOne()) return false;
    return true;
  }

  private spillOne(): boolean {
    const { residency } = this;
    const { ram } = this.options;
    const resident = residency.leastRecentlyUsed();
    if (resident === undefined) return false;
    const { key, isOnDisk } = resident;
    if (!isOnDisk && !this.write(key, ram.get(key) as Uint8Array)) return false;
    ram.delete(key);
    residency.moveToDisk(key);
    return true;
  }

  private write(key: string, value: Uint8Array): boolean {
    if (!this.canSpill) return false;
    const { disk, maxSpillBytes } = this.options;
    const nbytes = value.byteLength;
    if (!this.makeRoomOnDisk(nbytes)) {
      this.tell({ why: 'full', key, nbytes, maxBytes: maxSpillBytes });
      return false;
    }
    try {
      disk.write(key, value);
    } catch (error) {
      this.tell({ why: 'failed', key, nbytes, error });
      return false;
    }
    this.moved.written += nbytes;
    this.trouble = undefined;
    return true;
  }

  /** At the expense of copies of what is in memory. */
  private makeRoomOnDisk(nbytes: number): boolean {
    const { disk, maxSpillBytes } = this.options;
    if (nbytes > maxSpillBytes) return false;
    while (disk.nbytes + nbytes > maxSpillBytes) {
      const double = this.residency.oldestDouble();
      if (double === undefined) return false;
      disk.delete(double.key);
      this.residency.dropDouble(double.key);
    }
    return true;
  }

  private tell(trouble: SpillTrouble): void {
    const { clock, onTrouble } = this.options;
    this.retryAtMs = clock.nowMs() + SPILL_RETRY_MS;
    const isKnown = this.trouble === trouble.why;
    this.trouble = trouble.why;
    if (!isKnown) onTrouble(trouble);
  }

  private readBack(key: string, nbytes: number): Uint8Array | undefined {
    const { disk, ram } = this.options;
    const { targetBytes } = this;
    let value: Uint8Array;
    try {
      value = disk.read(key);
      this.moved.read += value.byteLength;
    } catch (error) {
      this.lose(key, error);
      return undefined;
    }
    // What does not fit is lent, not kept.
    if (nbytes >= targetBytes || !this.makeRoom(nbytes)) return value;
    ram.set(key, value);
    this.residency.copyToRam(key);
    this.options.onGarbage(nbytes); // The results that were spilled for it.
    this.options.onGrowth?.(nbytes);
    return value;
  }

  private lose(key: string, error: unknown): void {
    this.options.disk.delete(key);
    this.residency.remove(key);
    this.options.onLost(key, error);
  }
}

/** Reports when reading fails. */
class WatchedReader implements ValueReader {
  constructor(
    private readonly reader: ValueReader,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  get nbytes(): number {
    return this.reader.nbytes;
  }

  read(nbytesMax: number): Uint8Array {
    try {
      return this.reader.read(nbytesMax);
    } catch (error) {
      this.onFailure(error);
      throw error;
    }
  }

  close(): void {
    this.reader.close();
  }
}
