/** What a disk consists of, as the processes that use it see it. */
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import type { Dice } from '../dice.ts';

/** What a file consists of. */
export class DiskFile {
  content: Buffer = Buffer.alloc(0);
  /** What is on the disk for certain. */
  durable: Buffer = Buffer.alloc(0);
  /** A sync has failed: what was not on the disk then never will be, whatever later syncs say. */
  isSyncBroken = false;

  /** @param length - of what is put on the disk; what was appended since the sync began is not */
  sync(length = this.content.length): void {
    if (!this.isSyncBroken) this.durable = this.content.subarray(0, length);
  }
}

/** A file, or a folder. */
export type Entry = DiskFile | 'folder';

/** How the disk fails at present. */
export interface DiskFaults {
  isFull: boolean;
  /** Syncs fail. */
  isSyncFailing: boolean;
  /** Part of the reads that fail. */
  readFailures: number;
  /** Part of the reads before which a bit of the file flips. */
  flips: number;
}

/** The disk of one machine. */
export interface Disk {
  readonly faults: DiskFaults;
  /** By path. */
  readonly entries: Map<string, Entry>;
  readonly dice: Dice;
  readonly clock: VirtualClock;
  /** How often the machine was started. */
  readonly boots: number;
  /** The names in a folder as they are now survive a loss of power. */
  syncNames(folder: string): void;
}
