import { dirname } from 'node:path';
import { type FileSystem, syncFolder } from './file-system.ts';

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
