import { dirname, join, resolve } from 'node:path';
import { messageOf, YardmasterError } from '../../core/api/index.ts';
import type { StatePart } from '../../core/kernel/snapshot.ts';
import type { LogCheckpoint } from '../../core/log/format.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { FolderLock } from '../log/folder-lock.ts';
import { type FileSystem, readSmallText, syncFolder, SYSTEM_FILES } from '../log/segment-file.ts';
import { readSegment, RESTORE, segmentPath, segmentsOf } from './read-log.ts';

export interface Contents {
  /** Id of the scheduler whose journal it is; undefined: it is new. */
  readonly schedulerId: string | undefined;
  /** The state when the newest segment began; undefined: there was none. */
  readonly checkpoint: LogCheckpoint | undefined;
  readonly parts: readonly StatePart[];
  /** The stimuli since then. */
  readonly entries: readonly Stimulus[];
  /** Sentences for the log: what was cut. */
  readonly notes: readonly string[];
  /** The number of the next segment. */
  readonly next: number;
}

/** The files of one journal. Each segment begins with all that was known then, so the newest one counts. */
export class JournalFolder {
  private constructor(
    readonly path: string,
    readonly lock: FolderLock,
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

  /** @throws YardmasterError `ERR_JOURNAL` when it is damaged */
  read(): Contents {
    const numbers = segmentsOf(this.path, this.files);
    const next = (numbers.at(-1) ?? 0) + 1;
    const notes: string[] = [];
    for (const number of numbers.reverse()) {
      const path = segmentPath(this.path, number);
      const { header, parts, checkpoint, entries, nbytes, torn } = readSegment(
        path,
        this.files,
        () => void this.lock.beat(),
      );
      if (checkpoint === undefined) {
        if (number === 1 || numbers.length > 1) {
          notes.push(`${path} is left out: the scheduler ended before its beginning was written`);
          continue;
        }
        throw incomplete(path, torn?.offset ?? nbytes);
      }
      if (torn !== undefined) {
        notes.push(
          `the last ${torn.nbytes} bytes of ${path} were not written completely, and are left out (from byte ${torn.offset})`,
        );
      }
      return { schedulerId: header?.schedulerId, checkpoint, parts, entries, notes, next };
    }
    const nothing = { schedulerId: undefined, checkpoint: undefined, parts: [], entries: [] };
    return { ...nothing, notes, next };
  }
}

/** The file that is there while a journal is read. */
const READING = 'reading';
/** An entry at which so many starts have ended, one after the other, is left out. */
const ENDS_MAX = 2;

/** The content of the file. Places are those of entries behind the checkpoint of the newest segment. */
interface ReadingState {
  /** The number of the next segment. */
  readonly next: number;
  readonly leftOut: readonly number[];
  /** The entry that is handled, and how many starts came to it and no further, this one included. */
  readonly place?: number;
  readonly ends?: number;
}

/**
 * The entries that are left out because schedulers end at them while they read their journal. One that throws is known
 * at once. One that hangs, or takes all memory, is known by a file: it says that reading has begun, and after a start
 * that did not come to its end, at which entry each further one is.
 */
export class FatalEntries {
  private readonly leftOut: Set<number>;
  /** Of the start that did not come to its end. */
  private readonly last: ReadingState | undefined;
  private readonly path: string;

  constructor(
    folder: string,
    private readonly next: number,
    private readonly files: FileSystem = SYSTEM_FILES,
  ) {
    this.path = join(folder, READING);
    this.last = this.read();
    this.leftOut = new Set(this.last?.leftOut);
  }

  /** The entry that several starts have not survived, and that is not left out yet. */
  get found(): number | undefined {
    const { place, ends = 0 } = this.last ?? {};
    return place === undefined || ends < ENDS_MAX || this.has(place) ? undefined : place;
  }

  has(place: number): boolean {
    return this.leftOut.has(place);
  }

  add(place: number): void {
    this.leftOut.add(place);
    this.write({});
  }

  begin(): void {
    this.write({});
  }

  /** The entry is going to be handled. */
  beginEntry(place: number): void {
    // Otherwise, to write it down would take longer than to handle it.
    if (this.last === undefined) return;
    const { place: lastPlace, ends = 0 } = this.last;
    this.write({ place, ends: place === lastPlace ? ends + 1 : 1 });
  }

  /** All entries were handled. What keeps the scheduler from its start now is none of them. */
  endEntries(): void {
    if (this.last !== undefined) this.write({});
  }

  /** A new segment is in the place of the entries. */
  end(): void {
    this.files.rmSync(this.path, { force: true });
  }

  private read(): ReadingState | undefined {
    try {
      const state = JSON.parse(readSmallText(this.path, this.files)) as ReadingState;
      return state.next === this.next ? state : undefined;
    } catch {
      return undefined; // There is none, or the power failed while it was written.
    }
  }

  private write(entry: Pick<ReadingState, 'place' | 'ends'>): void {
    const state: ReadingState = { next: this.next, leftOut: [...this.leftOut], ...entry };
    try {
      this.files.writeFileSync(this.path, JSON.stringify(state), { mode: 0o600 });
    } catch {
      // A disk that is full keeps no scheduler from its start.
    }
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

export function asJournalError(error: unknown, what: string): YardmasterError {
  if (YardmasterError.is(error, 'ERR_JOURNAL')) return error;
  return new YardmasterError('ERR_JOURNAL', `${what}: ${messageOf(error)}`, {}, { cause: error });
}

function becauseOf(error: unknown): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall !== 'mkdir') return '';
  if (code === 'EEXIST') return ', because it is a file; name a folder';
  return code === 'ENOENT' ? ', because a symbolic link leads to nothing' : '';
}

function incomplete(path: string, offset: number): YardmasterError {
  return new YardmasterError(
    'ERR_JOURNAL',
    `the journal cannot be read: ${path} ends within its first part, at byte ${offset}, and there is no older segment; ${RESTORE}`,
    { file: path, offset },
  );
}
