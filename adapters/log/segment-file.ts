import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { removePrivateFolder } from './private-folder.ts';

/** A file of a log. Bytes are in the hands of the operating system when `write` returns. */
export class SegmentFile {
  private isSyncing = false;
  private isClosed = false;
  private syncedAll = true;

  private constructor(
    readonly path: string,
    private readonly fd: number,
    private readonly files: FileSystem,
  ) {}

  /** Makes the file; it must not exist yet. @throws Error of the file system */
  static create(path: string, files: FileSystem): SegmentFile {
    return new SegmentFile(path, files.openSync(path, 'wx', 0o600), files);
  }

  /** @throws Error of the file system; then a part of the bytes may be written */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) at += this.files.writeSync(this.fd, bytes, at);
    this.syncedAll = false;
  }

  /** Puts what was written on the disk, and the name of the file with it. @throws Error of the file system */
  syncNow(): void {
    this.files.fdatasyncSync(this.fd);
    syncFolder(dirname(this.path), this.files);
    this.syncedAll = true;
  }

  /** Puts what was written on the disk, in the background. One call at a time. */
  sync(done: (error: Error | null) => void): void {
    this.isSyncing = true;
    this.syncedAll = true;
    this.files.fdatasync(this.fd, (error) => {
      this.isSyncing = false;
      if (this.isClosed) this.files.closeSync(this.fd);
      done(error);
    });
  }

  get isSynced(): boolean {
    return this.syncedAll && !this.isSyncing;
  }

  /** Also while it is being synced: then it is closed after that. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    if (!this.isSyncing) this.files.closeSync(this.fd);
  }

  /** Closes and deletes the file, if it can be deleted. */
  remove(): void {
    this.close();
    try {
      this.files.rmSync(this.path, { force: true });
    } catch {
      // It stays.
    }
  }
}

/** Node's number for an open file. */
type Descriptor = number;

/**
 * The operations on files that journals and spilled results consist of, as `node:fs` has them, and
 * the deletion of a folder that no other user can misdirect. Tests give a
 * file system in memory that fails as disks do.
 */
export interface FileSystem {
  mkdirSync(
    path: string,
    options: { readonly recursive: true; readonly mode?: number },
  ): string | undefined;
  mkdtempSync(prefix: string): string;
  readdirSync(path: string): string[];
  rmSync(path: string, options: { readonly force: true }): void;
  removePrivateFolder(path: string, mayRemove?: (opened: string) => boolean): boolean;
  readFileSync(file: string | Descriptor, encoding: 'utf8'): string;
  writeFileSync(
    path: string,
    content: string | Uint8Array,
    options?: { readonly flag?: 'wx'; readonly mode?: number },
  ): void;
  openSync(path: string, flags: string | number, mode?: number): Descriptor;
  fstatSync(file: Descriptor): { readonly size: number; isFile(): boolean };
  readSync(
    file: Descriptor,
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): number;
  writeSync(file: Descriptor, bytes: Uint8Array, offset: number): number;
  fsyncSync(file: Descriptor): void;
  fdatasyncSync(file: Descriptor): void;
  fdatasync(file: Descriptor, done: (error: Error | null) => void): void;
  closeSync(file: Descriptor): void;
}

export const SYSTEM_FILES: FileSystem = { ...fs, removePrivateFolder };

/**
 * Opens a file to read it. Where others can write to its folder, the name may stand for a pipe, whose reader would wait for ever,
 * for a link, which could lead anywhere, or for a device: they are not opened.
 * @throws Error of the file system, or one that says that it is no file
 */
export function openToRead(path: string, files: FileSystem): Descriptor {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = fs.constants;
  // The last two are undefined on Windows, and then count as 0.
  const file = files.openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (files.fstatSync(file).isFile()) return file;
  files.closeSync(file);
  throw new Error('it is no file, but a pipe, a device or a folder');
}

/** The text of a small file, opened with {@link openToRead}. @throws Error of the file system; one that says what is wrong with it */
export function readSmallText(path: string, files: FileSystem, bytesMax = 4096): string {
  const file = openToRead(path, files);
  try {
    const { size } = files.fstatSync(file);
    if (size > bytesMax) throw new Error(`it has ${size} bytes, and not at most ${bytesMax}`);
    return files.readFileSync(file, 'utf8');
  } finally {
    files.closeSync(file);
  }
}

/** Puts the names in a folder on the disk. @throws Error of the file system */
export function syncFolder(path: string, files: FileSystem): void {
  const folder = files.openSync(path, 'r');
  try {
    files.fsyncSync(folder);
  } finally {
    files.closeSync(folder);
  }
}

/**
 * Puts a text in the place of a file, which is whole at any moment. In a folder of all users, a link of a known name would
 * have another file overwritten.
 * @param mode - default: as the process makes files
 * @throws Error of the file system; then the file is as it was
 */
export function replaceFile(path: string, text: string, mode?: number): void {
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    fs.writeFileSync(draft, text, { flag: 'wx', mode });
    fs.renameSync(draft, path);
  } catch (error) {
    fs.rmSync(draft, { force: true });
    throw error;
  }
}
