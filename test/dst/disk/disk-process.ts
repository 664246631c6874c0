import { dirname } from 'node:path';
import type { FileSystem } from '../../../adapters/log/segment-file.ts';
import { type Disk, DiskFile } from './disk.ts';

/** An open file or folder. */
interface Opened {
  readonly path: string;
  readonly file: DiskFile | undefined;
}

const SYNC_MS_MAX = 30;

/** The files of a disk as one process uses them, until it is killed. */
export class DiskProcess implements FileSystem {
  private readonly opened = new Map<number, Opened>();
  private lastDescriptor = 2;
  private isDead = false;

  constructor(
    private readonly disk: Disk,
    /** When it was started, in ticks. */
    private readonly startedAt: number,
  ) {}

  /** From now on it can do nothing; what it has written stays. */
  kill(): void {
    this.isDead = true;
    this.opened.clear();
  }

  mkdirSync(path: string): string | undefined {
    this.checkAlive();
    const { entries } = this.disk;
    if (entries.has(path)) return undefined;
    const above = this.mkdirSync(dirname(path));
    entries.set(path, 'folder');
    return above ?? path;
  }

  mkdtempSync(prefix: string): string {
    let number = 0;
    while (this.disk.entries.has(`${prefix}${number}`)) number++;
    this.mkdirSync(`${prefix}${number}`);
    return `${prefix}${number}`;
  }

  readdirSync(path: string): string[] {
    this.checkAlive();
    this.find(path);
    const start = path === '/' ? path : `${path}/`;
    return [...this.disk.entries.keys()]
      .filter((each) => each !== '/' && dirname(each) === path)
      .map((each) => each.slice(start.length))
      .sort();
  }

  rmSync(path: string): void {
    this.checkAlive();
    this.disk.entries.delete(path);
  }

  removePrivateFolder(path: string, mayRemove: (opened: string) => boolean = () => true): boolean {
    this.checkAlive();
    const { entries } = this.disk;
    if (entries.get(path) !== 'folder' || !mayRemove(path)) return false;
    for (const each of [...entries.keys()]) if (each.startsWith(`${path}/`)) entries.delete(each);
    return entries.delete(path);
  }

  readFileSync(file: string | number): string {
    this.checkAlive();
    if (file === '/proc/sys/kernel/random/boot_id') return `boot-${this.disk.boots}\n`;
    if (file === `/proc/${process.pid}/stat`) {
      return `${process.pid} (node) S ${'0 '.repeat(18)}${this.startedAt} 0`;
    }
    const path = typeof file === 'number' ? this.descriptor(file).path : file;
    return this.fileAt(path).content.toString('utf8');
  }

  writeFileSync(
    path: string,
    content: string | Uint8Array,
    { flag }: { readonly flag?: 'wx' } = {},
  ): void {
    this.checkAlive();
    const file = this.create(path, flag === 'wx');
    const bytes = Buffer.from(content as Uint8Array);
    file.content = bytes;
    if (!this.disk.faults.isFull || bytes.length === 0) return;
    file.content = bytes.subarray(0, this.disk.dice.between(0, bytes.length - 1));
    throw failure('ENOSPC', 'no space left on device, write');
  }

  openSync(path: string, flags: string | number): number {
    this.checkAlive();
    const isMade = flags === 'wx';
    const entry = isMade ? this.create(path, true) : this.find(path);
    this.opened.set(++this.lastDescriptor, { path, file: entry === 'folder' ? undefined : entry });
    return this.lastDescriptor;
  }

  fstatSync(file: number): { readonly size: number; isFile(): boolean } {
    const opened = this.descriptor(file);
    return { size: opened.file?.content.length ?? 0, isFile: () => opened.file !== undefined };
  }

  readSync(
    file: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): number {
    const opened = this.opened.get(file);
    const { faults, dice } = this.disk;
    const { content } = fileOf(opened);
    if (faults.readFailures > 0 && dice.chance(faults.readFailures)) {
      throw failure('EIO', 'i/o error, read');
    }
    if (faults.flips > 0 && content.length > 0 && dice.chance(faults.flips)) {
      const at = dice.between(0, content.length - 1);
      content[at] = (content[at] as number) ^ (1 << dice.between(0, 7));
    }
    const part = content.subarray(position, position + length);
    bytes.set(part, offset);
    return part.length;
  }

  /** May write a part, as the system does. */
  writeSync(file: number, bytes: Uint8Array, offset: number): number {
    const target = fileOf(this.descriptor(file));
    const { faults, dice } = this.disk;
    const rest = bytes.length - offset;
    const nbytes = faults.isFull ? dice.between(0, rest - 1) : rest;
    if (nbytes <= 0) throw failure('ENOSPC', 'no space left on device, write');
    target.content = Buffer.concat([target.content, bytes.subarray(offset, offset + nbytes)]);
    return nbytes;
  }

  fsyncSync(file: number): void {
    const { path, file: target } = this.descriptor(file);
    this.checkSync(target);
    if (target === undefined) this.disk.syncNames(path);
    else target.sync();
  }

  fdatasyncSync(file: number): void {
    const target = fileOf(this.descriptor(file));
    this.checkSync(target);
    target.sync();
  }

  /** Takes time, in which the process may be killed and the power lost. */
  fdatasync(file: number, done: (error: Error | null) => void): void {
    const target = this.opened.get(file)?.file;
    const { dice, clock } = this.disk;
    if (target === undefined) {
      clock.setTimer(0, () => done(failure('EBADF', 'bad file descriptor, fdatasync')));
      return;
    }
    const { length } = target.content;
    clock.setTimer(dice.oneOf([0, 0.1, dice.between(1, SYNC_MS_MAX)]), () => {
      if (this.isDead) return;
      try {
        this.checkSync(target);
        target.sync(length);
      } catch (error) {
        done(error as Error);
        return;
      }
      done(null);
    });
  }

  closeSync(file: number): void {
    this.opened.delete(file);
  }

  private descriptor(file: number): Opened {
    this.checkAlive();
    const opened = this.opened.get(file);
    if (opened === undefined) throw failure('EBADF', 'bad file descriptor');
    return opened;
  }

  private find(path: string): DiskFile | 'folder' {
    const entry = this.disk.entries.get(path);
    if (entry === undefined) throw failure('ENOENT', `no such file or directory, '${path}'`);
    return entry;
  }

  private fileAt(path: string): DiskFile {
    const entry = this.find(path);
    if (entry === 'folder') throw failure('EISDIR', `illegal operation on a directory, '${path}'`);
    return entry;
  }

  private create(path: string, isNew: boolean): DiskFile {
    const { entries } = this.disk;
    this.find(dirname(path));
    if (entries.has(path)) {
      if (isNew) throw failure('EEXIST', `file already exists, '${path}'`);
      return this.fileAt(path);
    }
    const file = new DiskFile();
    entries.set(path, file);
    return file;
  }

  private checkSync(file: DiskFile | undefined): void {
    if (!this.disk.faults.isSyncFailing) return;
    if (file !== undefined) file.isSyncBroken = true;
    throw failure('EIO', 'i/o error, fdatasync');
  }

  private checkAlive(): void {
    if (this.isDead) throw failure('ESRCH', 'the process was killed, as the trial wants it');
  }
}

function fileOf(opened: Opened | undefined): DiskFile {
  if (opened?.file === undefined) throw failure('EBADF', 'bad file descriptor');
  return opened.file;
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
