/** Where one result is: in memory, on disk, or both. */
export interface Resident {
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
