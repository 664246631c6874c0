import { closeSync, fdatasync, fdatasyncSync, fsyncSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

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
  ) {}

  /** Makes the file; it must not exist yet. @throws Error of the file system */
  static create(path: string): SegmentFile {
    return new SegmentFile(path, openSync(path, 'wx', 0o600));
  }

  /** @throws Error of the file system; then a part of the bytes may be written */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) at += writeSync(this.fd, bytes, at);
    this.nbytes += bytes.length;
    this.syncedAll = false;
  }

  /** Puts what was written on the disk, and the name of the file with it. @throws Error of the file system */
  syncNow(): void {
    fdatasyncSync(this.fd);
    const folder = openSync(dirname(this.path), 'r');
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
    this.syncedAll = true;
  }

  /** Puts what was written on the disk, in the background. One call at a time. */
  sync(done: (error: Error | null) => void): void {
    this.isSyncing = true;
    this.syncedAll = true;
    fdatasync(this.fd, (error) => {
      this.isSyncing = false;
      if (this.isClosed) closeSync(this.fd);
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
    if (!this.isSyncing) closeSync(this.fd);
  }
}
