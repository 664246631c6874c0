import * as fs from 'node:fs';
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { YardmasterError } from '../../core/api/index.ts';
import { removePrivateFolder } from './private-folder.ts';

/** A file of a journal. Bytes are in the hands of the operating system when `write` returns. */
export class SegmentFile {
  private isSyncing = false;
  private isClosed = false;
  private syncedAll = true;
  /** Bytes so far. */
  nbytes = 0;

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
    this.nbytes += bytes.length;
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
}

/** More than this waiting to be written: the disk does not keep up. */
const PENDING_BYTES_MAX = 256 * 2 ** 20;

/** A file that is written from the beginning to the end, in order, without anyone waiting for it. */
export class AppendFile {
  private readonly pending: Uint8Array[] = [];
  private pendingBytes = 0;
  private writing: Promise<void> | undefined;
  private error: YardmasterError | undefined;

  private constructor(
    readonly path: string,
    private readonly opening: Promise<FileHandle>,
    private readonly onError: (error: YardmasterError) => void,
  ) {}

  /**
   * Makes the file; it must not exist yet.
   * @param onError - called once, when the file cannot be written any more; what comes later is dropped
   * @throws YardmasterError `ERR_LOG`
   */
  static async create(
    path: string,
    onError: (error: YardmasterError) => void,
  ): Promise<AppendFile> {
    try {
      const handle = await open(path, 'wx', 0o600);
      return new AppendFile(path, Promise.resolve(handle), onError);
    } catch (cause) {
      throw failure(path, 'cannot be made', cause);
    }
  }

  /** As {@link create}, at once: when the file cannot be made, `onError` is called. */
  static begin(path: string, onError: (error: YardmasterError) => void): AppendFile {
    const opening = open(path, 'wx', 0o600);
    opening.catch(() => undefined); // The first write fails with it.
    return new AppendFile(path, opening, onError);
  }

  /** Takes the bytes for good; they are written soon. */
  append(bytes: Uint8Array): void {
    if (this.error !== undefined) return;
    if (this.pendingBytes + bytes.length > PENDING_BYTES_MAX) {
      this.fail(failure(this.path, `ends here: its disk is ${this.pendingBytes} bytes behind`));
      return;
    }
    this.pending.push(bytes);
    this.pendingBytes += bytes.length;
    this.writing ??= this.write();
  }

  /** Writes what is pending and closes the file. Never rejects. */
  async close(): Promise<void> {
    while (this.writing !== undefined) await this.writing;
    try {
      const handle = await this.opening;
      if (this.error === undefined) await handle.datasync();
      await handle.close();
    } catch (cause) {
      this.fail(failure(this.path, 'cannot be closed', cause));
    }
  }

  private async write(): Promise<void> {
    try {
      const handle = await this.opening;
      while (this.pending.length > 0 && this.error === undefined) {
        const batch = this.pending.splice(0);
        this.pendingBytes = 0;
        await writeAll(handle, Buffer.concat(batch));
      }
    } catch (cause) {
      this.fail(failure(this.path, 'cannot be written any more', cause));
    } finally {
      this.writing = undefined;
    }
  }

  private fail(error: YardmasterError): void {
    this.pending.length = 0;
    if (this.error !== undefined) return;
    this.error = error;
    this.onError(error);
  }
}

/** `write` may write a part only. */
async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, at);
    at += bytesWritten;
  }
}

function failure(file: string, what: string, cause?: unknown): YardmasterError {
  const reason = cause instanceof Error ? `: ${cause.message}${remedyFor(cause)}` : '';
  return new YardmasterError(
    'ERR_LOG',
    `the log ${file} ${what}${reason}`,
    { file },
    cause === undefined ? {} : { cause },
  );
}

function remedyFor(cause: NodeJS.ErrnoException): string {
  if (cause.code === 'EEXIST') return '; choose another name, or remove what is there';
  return cause.code === 'ENOENT' ? '; make its folder first' : '';
}

/** The numbers in the names of files that belong together, ascending. @param pattern - its first group is the number */
export function numbersIn(names: readonly string[], pattern: RegExp): number[] {
  return names
    .flatMap((name) => pattern.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

const CHUNK_BYTES = 2 ** 20;

/**
 * The bytes of a log, in pieces.
 * @param start - the first byte
 * @throws YardmasterError `ERR_LOG` when the file cannot be read
 */
export async function* readBytes(
  file: string,
  start = 0,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    const stream = createReadStream(file, { highWaterMark: CHUNK_BYTES, start });
    for await (const bytes of stream) yield bytes as Uint8Array;
  } catch (cause) {
    throw new YardmasterError(
      'ERR_LOG',
      `the log ${file} cannot be read: ${(cause as Error).message}`,
      { file },
      { cause },
    );
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

/** The files of this machine. */
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
