import { dirname, join, resolve } from 'node:path';
import { YardmasterError } from '../../../core/api/index.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import { type FileSystem, syncFolder, SYSTEM_FILES } from '../../log/file-system.ts';
import { FolderLock } from '../../log/folder-lock.ts';
import { numbersIn } from '../../log/numbered-files.ts';
import { readSegment, RESTORE, type Segment } from './read-segment.ts';

const NAME = /^(\d{8,})\.ylog$/;

/** What was read from the folder of a journal. */
export interface Contents {
  /** Id of the scheduler whose journal it is; undefined: it is new. */
  readonly schedulerId: string | undefined;
  readonly entries: readonly Stimulus[];
  /** Sentences for the log: what was cut. */
  readonly notes: readonly string[];
  /** The number of the next segment. */
  readonly next: number;
}

/** Path of the segment of this number. */
export function segmentPath(folder: string, segment: number): string {
  return join(folder, `${String(segment).padStart(8, '0')}.ylog`);
}

/** The files of one journal. Each segment begins with all that was known then, so the newest one counts. */
export class JournalFolder {
  private constructor(
    readonly path: string,
    private readonly lock: FolderLock,
    private readonly files: FileSystem,
  ) {}

  /**
   * @param stopped - of `FolderLock.watch`
   * @throws YardmasterError `ERR_JOURNAL` when it is in use, or cannot be used
   */
  static open(path: string, files: FileSystem = SYSTEM_FILES, stopped?: string): JournalFolder {
    try {
      makeFolder(resolve(path), files);
      return new JournalFolder(path, FolderLock.take(path, files, stopped), files);
    } catch (error) {
      throw asJournalError(error, `the journal ${path} cannot be used${becauseOf(error)}`);
    }
  }

  pathOf(segment: number): string {
    return segmentPath(this.path, segment);
  }

  /** @throws YardmasterError `ERR_JOURNAL` when it is damaged */
  read(): Contents {
    const numbers = segmentsOf(this.path, this.files);
    const next = (numbers.at(-1) ?? 0) + 1;
    const notes: string[] = [];
    for (const number of numbers.reverse()) {
      const path = this.pathOf(number);
      const segment = readSegment(path, this.files);
      const { header, entries, isComplete, torn } = segment;
      if (!isComplete) {
        if (number === 1 || numbers.length > 1) {
          notes.push(`${path} is left out: the scheduler ended before its beginning was written`);
          continue;
        }
        throw incomplete(segment);
      }
      if (torn !== undefined) {
        notes.push(
          `the last ${torn.nbytes} bytes of ${path} were not written completely, and are left out (from byte ${torn.offset})`,
        );
      }
      return { schedulerId: header?.schedulerId, entries, notes, next };
    }
    return { schedulerId: undefined, entries: [], notes, next };
  }

  /** The segment has everything that those before it had. @throws Error of the file system */
  dropBefore(segment: number): void {
    for (const number of segmentsOf(this.path, this.files)) {
      if (number < segment) this.files.rmSync(this.pathOf(number), { force: true });
    }
  }

  /** Shows that this scheduler lives. Returns false when another one has taken the folder. */
  beat(): boolean {
    return this.lock.beat();
  }

  /** Another scheduler may use the folder. */
  release(): void {
    this.lock.release();
  }
}

/** A loss of power leaves neither the folder nor those above it that it makes behind without their names. */
function makeFolder(path: string, files: FileSystem): void {
  const first = files.mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    syncFolder(dirname(made), files);
  }
}

/** Numbers of the segments in a folder, ascending. */
export function segmentsOf(folder: string, files: FileSystem = SYSTEM_FILES): number[] {
  return numbersIn(files.readdirSync(folder), NAME);
}

export function asJournalError(error: unknown, what: string): YardmasterError {
  if (YardmasterError.is(error, 'ERR_JOURNAL')) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new YardmasterError('ERR_JOURNAL', `${what}: ${reason}`, {}, { cause: error });
}

function becauseOf(error: unknown): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall !== 'mkdir') return '';
  if (code === 'EEXIST') return ', because it is a file; name a folder';
  return code === 'ENOENT' ? ', because a symbolic link leads to nothing' : '';
}

function incomplete({ path, torn, nbytes }: Segment): YardmasterError {
  const offset = torn?.offset ?? nbytes;
  return new YardmasterError(
    'ERR_JOURNAL',
    `the journal cannot be read: ${path} ends within its first part, at byte ${offset}, and there is no older segment; ${RESTORE}`,
    { file: path, offset },
  );
}
