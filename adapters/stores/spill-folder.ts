import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

import { type SpillArea, type ValueReader, YardmasterError } from '../../core/api/index.ts';
import { type FileSystem, readSmallText, SYSTEM_FILES } from '../log/segment-file.ts';

const PREFIX = 'yardmaster-spill-';
const OWNER_FILE = 'owner.json';

/** Distinguishes this process from an earlier one with the same id, as happens in containers. */
const PROCESS_MARK = `${process.pid}-${Math.round(performance.timeOrigin)}`;

interface Owner {
  readonly pid: number;
  readonly host: string;
  readonly mark: string;
}

interface Spilled {
  readonly file: string;
  readonly nbytes: number;
  readonly checksum: number;
}

/** Folders that this process has made and not deleted, and where they are. */
const open = new Map<string, FileSystem>();
let cleansUpAtExit = false;

/** The parent of the workers' spill folders, unless an option names another one. */
export function defaultSpillFolder(): string {
  return tmpdir();
}

/**
 * Keeps results in files, in a separate folder that only this user can read. The folder is created
 * with the first result, and deleted when the area is closed or the process exits. {@link
 * removeAbandoned} deletes the folders of killed processes later. Names of files cannot be guessed: where
 * others may replace the folder, a file that is deleted by its path is one of these all the same.
 */
export class SpillFolder implements SpillArea {
  private readonly spilled = new Map<string, Spilled>();
  private folder: string | undefined;
  private total = 0;
  private readonly token = randomBytes(8).toString('hex');
  private fileCount = 0;

  /** @param parent - where the folder is made; it is created when it does not exist */
  constructor(
    readonly parent: string = defaultSpillFolder(),
    private readonly files: FileSystem = SYSTEM_FILES,
  ) {}

  get nbytes(): number {
    return this.total;
  }

  /** Undefined until something was written. */
  get path(): string | undefined {
    return this.folder;
  }

  write(key: string, value: Uint8Array): void {
    this.delete(key);
    this.folder ??= makeFolder(this.parent, this.files);
    const file = join(this.folder, `${this.token}-${this.fileCount++}.bin`);
    try {
      this.files.writeFileSync(file, value, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      this.files.rmSync(file, { force: true });
      throw error;
    }
    const nbytes = value.byteLength;
    this.spilled.set(key, { file, nbytes, checksum: crc32(value) });
    this.total += nbytes;
  }

  /** @throws YardmasterError `ERR_FRAME` when the file is not what was written, else as the system says */
  read(key: string): Uint8Array {
    const reader = this.open(key);
    try {
      return reader.read(reader.nbytes);
    } finally {
      reader.close();
    }
  }

  /** Errors as for {@link read}; those of damage come with the last part. */
  open(key: string): ValueReader {
    const entry = this.spilled.get(key);
    if (entry !== undefined) return new FileReader(key, entry, this.files);
    throw new YardmasterError('ERR_FRAME', `"${key}" is not on disk`, { key });
  }

  delete(key: string): void {
    const entry = this.spilled.get(key);
    if (entry === undefined) return;
    this.spilled.delete(key);
    this.total -= entry.nbytes;
    try {
      this.files.rmSync(entry.file, { force: true });
    } catch {
      // Another process has it open; it goes with the folder.
    }
  }

  close(): void {
    this.spilled.clear();
    this.total = 0;
    if (this.folder === undefined) return;
    removeOwn(this.folder, this.files);
    open.delete(this.folder);
    this.folder = undefined;
  }
}

/** Reads a spilled result from its beginning to its end. */
class FileReader implements ValueReader {
  private readonly file: number;
  private at = 0;
  private checksum = 0;

  constructor(
    private readonly key: string,
    private readonly entry: Spilled,
    private readonly files: FileSystem,
  ) {
    this.file = files.openSync(entry.file, 'r');
  }

  get nbytes(): number {
    return this.entry.nbytes;
  }

  /** Into shared memory, which threads read without a copy. */
  read(nbytesMax: number): Uint8Array {
    const nbytes = Math.min(nbytesMax, this.nbytes - this.at);
    const bytes = new Uint8Array(new SharedArrayBuffer(nbytes));
    for (let filled = 0; filled < nbytes;) {
      const count = this.files.readSync(
        this.file,
        bytes,
        filled,
        nbytes - filled,
        this.at + filled,
      );
      if (count === 0) throw this.damaged(this.at + filled);
      filled += count;
    }
    this.at += nbytes;
    this.checksum = crc32(bytes, this.checksum);
    const isWrong = this.at === this.nbytes && this.checksum !== this.entry.checksum;
    if (isWrong) throw this.damaged(this.at);
    return bytes;
  }

  close(): void {
    this.files.closeSync(this.file);
  }

  private damaged(nbytes: number): YardmasterError {
    const { file, nbytes: expectedNbytes } = this.entry;
    return new YardmasterError(
      'ERR_FRAME',
      `the file ${file} with the result "${this.key}" was changed by another process`,
      { key: this.key, file, nbytes, expectedNbytes },
    );
  }
}

/**
 * Deletes the folders of processes of this machine that are no more. Folders that it may not read, that
 * another user may have planted, or that belong to another host (a shared disk), stay.
 * @returns the folders that it deleted
 */
export function removeAbandoned(parent: string = defaultSpillFolder()): string[] {
  let names: string[];
  try {
    names = readdirSync(parent);
  } catch {
    return []; // There is nothing yet, or not for us.
  }
  const removed: string[] = [];
  for (const name of names) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(parent, name);
    if (removeQuietly(folder, SYSTEM_FILES, isAbandoned)) removed.push(folder);
  }
  return removed;
}

function makeFolder(parent: string, files: FileSystem): string {
  files.mkdirSync(parent, { recursive: true });
  const folder = files.mkdtempSync(join(parent, PREFIX)); // Only this user may read it.
  const owner: Owner = { pid: process.pid, host: hostname(), mark: PROCESS_MARK };
  try {
    files.writeFileSync(join(folder, OWNER_FILE), JSON.stringify(owner));
  } catch (error) {
    removeQuietly(folder, files, () => true); // On a full disk each attempt would leave another one.
    throw error;
  }
  open.set(folder, files);
  if (!cleansUpAtExit) process.once('exit', removeAll);
  cleansUpAtExit = true;
  return folder;
}

function removeAll(): void {
  for (const [folder, files] of open) removeOwn(folder, files);
  open.clear();
}

function isAbandoned(folder: string): boolean {
  const owner = ownerOf(folder, SYSTEM_FILES);
  if (owner === undefined) return false; // Being made at this moment, or not ours.
  const { pid, host, mark } = owner;
  if (host !== hostname() || typeof pid !== 'number') return false;
  if (pid === process.pid) return mark !== PROCESS_MARK;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Undefined when the folder has none that can be read. */
function ownerOf(folder: string, files: FileSystem): Partial<Owner> | undefined {
  try {
    return JSON.parse(readSmallText(join(folder, OWNER_FILE), files)) as Partial<Owner>;
  } catch {
    return undefined;
  }
}

/** Deletes a folder of this process, and not what another user may have put into its place. */
function removeOwn(folder: string, files: FileSystem): void {
  removeQuietly(folder, files, (opened) => ownerOf(opened, files)?.mark === PROCESS_MARK);
}

/** Removes a file. One that cannot be deleted is left for the next worker that starts. */
function removeQuietly(
  folder: string,
  files: FileSystem,
  mayRemove: (opened: string) => boolean,
): boolean {
  try {
    return files.removePrivateFolder(folder, mayRemove);
  } catch {
    return false; // Another process has a file open, or has already moved or deleted it.
  }
}
