import { type FileHandle, open } from 'node:fs/promises';
import { YardmasterError } from '../../core/api/index.ts';

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
