/**
 * The disk of one machine, in memory: it fills up, fails, and forgets what was not synced when the power is lost, as
 * POSIX permits: names and contents in any order, the last write torn, pages of it missing.
 */
import { dirname } from 'node:path';
import type { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import type { Dice } from '../dice.ts';
import type { Disk, DiskFaults, DiskFile, Entry } from './disk.ts';
import { DiskProcess } from './disk-process.ts';

/** Bytes that reach the disk together or not at all. */
const PAGE_BYTES = [64, 512];

export class MemoryDisk implements Disk {
  readonly faults: DiskFaults = { isFull: false, isSyncFailing: false, readFailures: 0, flips: 0 };
  /** By path. */
  readonly entries = new Map<string, Entry>([['/', 'folder']]);
  /** Entries whose names are on the disk for certain. */
  private durableEntries = new Map<string, Entry>(this.entries);
  private processes: DiskProcess[] = [];
  private processCount = 0;
  /** How often the machine was started. */
  boots = 1;

  constructor(
    readonly dice: Dice,
    readonly clock: VirtualClock,
  ) {}

  /** The files, for a new process. */
  openProcess(): DiskProcess {
    const files = new DiskProcess(this, ++this.processCount);
    this.processes.push(files);
    return files;
  }

  /** The names in a folder as they are now survive a loss of power. */
  syncNames(folder: string): void {
    for (const entries of [this.entries, this.durableEntries]) {
      for (const path of [...entries.keys()]) {
        if (dirname(path) !== folder || path === '/') continue;
        const entry = this.entries.get(path);
        if (entry === undefined) this.durableEntries.delete(path);
        else this.durableEntries.set(path, entry);
      }
    }
  }

  /** Ends all processes; what was not synced may be gone. */
  losePower(): void {
    for (const process of this.processes) process.kill();
    this.processes = [];
    this.boots++;
    const { dice, entries, durableEntries } = this;
    const isTidy = dice.chance(0.3);
    for (const path of new Set([...durableEntries.keys(), ...entries.keys()])) {
      const durable = durableEntries.get(path);
      if (entries.get(path) === durable || (!isTidy && dice.chance(0.5))) continue;
      if (durable === undefined) entries.delete(path);
      else entries.set(path, durable);
    }
    for (const path of [...entries.keys()]) if (!this.isReachable(path)) entries.delete(path);
    for (const entry of entries.values()) if (entry !== 'folder') this.loseUnsynced(entry);
    this.durableEntries = new Map(entries);
  }

  private isReachable(path: string): boolean {
    return path === '/' || (this.entries.has(dirname(path)) && this.isReachable(dirname(path)));
  }

  private loseUnsynced(file: DiskFile): void {
    const { dice } = this;
    const { content, durable } = file;
    const isAppended =
      content.length > durable.length && durable.equals(content.subarray(0, durable.length));
    if (isAppended) {
      const torn = Buffer.from(content.subarray(0, dice.between(durable.length, content.length)));
      if (dice.chance(0.5)) this.losePages(torn, durable.length);
      file.content = torn;
    } else if (dice.chance(0.5)) file.content = durable;
    file.durable = file.content;
    file.isSyncBroken = false;
  }

  private losePages(bytes: Buffer, from: number): void {
    const { dice } = this;
    const pageBytes = dice.oneOf(PAGE_BYTES);
    for (let page = Math.floor(from / pageBytes); page * pageBytes < bytes.length; page++) {
      const end = Math.min(bytes.length, (page + 1) * pageBytes);
      if (dice.chance(0.5)) bytes.fill(0, Math.max(from, page * pageBytes), end);
    }
  }
}
