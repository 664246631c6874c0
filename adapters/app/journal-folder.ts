import { constants, copyFileSync, truncateSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Clock, type Timer, YardmasterError } from '../../core/api/index.ts';
import { VERSION } from '../../core/api/plugin.ts';
import {
  BODY_HEADER_BYTES,
  crc32c,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type LogHeader,
  MARK_MASK,
} from '../../core/log/format.ts';
import { LogReader } from '../../core/log/log-reader.ts';
import { LogWriter } from '../../core/log/log-writer.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { beforeTurnsEnd } from '../../core/shared/turn.ts';
import { MsgpackCodec } from '../codecs/msgpack.ts';
import { DASK_VALUES } from '../dask/wire/codec.ts';
import { FolderLock } from '../log/folder-lock.ts';
import {
  type FileSystem,
  numbersIn,
  readBytes,
  readSmallText,
  SegmentFile,
  syncFolder,
  SYSTEM_FILES,
  openToRead,
} from '../log/segment-file.ts';

const NAME = /^(\d{8,})\.ylog$/;

/** The contents of the folder of a journal. */
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

/** The file that is there while a journal is read. */
const READING = 'reading';
/** An entry at which so many starts have ended, one after the other, is left out. */
const ENDS_MAX = 2;

/** The content of the file. Places are those of entries of the newest segment. */
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

const CHUNK_BYTES = 2 ** 20;

/** A segment of a journal. */
interface Segment {
  readonly path: string;
  readonly header: LogHeader | undefined;
  readonly entries: readonly Stimulus[];
  /** True when all that was known when it began is in it. */
  readonly isComplete: boolean;
  /** That were read. */
  readonly nbytes: number;
  /** A last frame that was not written to its end: where it begins, and how much of it there is. */
  readonly torn: { readonly offset: number; readonly nbytes: number } | undefined;
}

/** The advice for a journal whose only segment has lost its first part. */
const RESTORE =
  'restore it from a copy, or move the folder of the journal away, to start without the tasks that were in it';

/** A file that is being read. */
interface Opened {
  readonly fd: number;
  readonly files: FileSystem;
}

/**
 * Reads one segment. What was not written to its end is left out, and so is what a loss of power has garbled because
 * it was not on the disk yet.
 * @throws YardmasterError `ERR_JOURNAL` when it cannot be read, or when something is damaged that was on the disk
 */
export function readSegment(path: string, files: FileSystem = SYSTEM_FILES): Segment {
  const fd = openFile(path, files);
  try {
    return read(path, fd, files);
  } finally {
    files.closeSync(fd);
  }
}

/** Not through a symbolic link, which could lead to a file of another journal. */
function openFile(path: string, files: FileSystem): number {
  try {
    return openToRead(path, files);
  } catch (cause) {
    const isLink = (cause as NodeJS.ErrnoException).code === 'ELOOP';
    throw new YardmasterError(
      'ERR_JOURNAL',
      `the segment ${path} cannot be read: ${isLink ? 'it is a symbolic link' : (cause as Error).message}`,
      { file: path },
      { cause },
    );
  }
}

function read(path: string, fd: number, files: FileSystem): Segment {
  const reader = new LogReader(journalCodec(), path);
  const entries: Stimulus[] = [];
  let header: LogHeader | undefined;
  let isComplete = false;
  let nbytes = 0;
  let torn: Segment['torn'];
  try {
    for (const bytes of chunks(fd, files)) {
      nbytes += bytes.byteLength;
      for (const frame of reader.read(bytes)) {
        if (frame.kind === 'header') header = frame.payload;
        else if (frame.kind === 'entry') entries.push(frame.payload);
        else if (frame.kind === 'checkpoint') isComplete = true;
      }
    }
    reader.end();
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
    torn = tearOf({ path, isComplete, fd, files }, error);
  }
  if (header !== undefined && header.segment === undefined) {
    throw new YardmasterError('ERR_JOURNAL', `${path} is a recording, not a segment of a journal`, {
      file: path,
    });
  }
  return { path, header, entries, isComplete, nbytes, torn };
}

/** @throws YardmasterError `ERR_JOURNAL` when what is wrong is not the end of what was written */
function tearOf(
  { path, isComplete, fd, files }: Pick<Segment, 'path' | 'isComplete'> & Opened,
  error: YardmasterError,
): Segment['torn'] {
  const {
    offset = 0,
    frame = 0,
    damage,
  } = error.data as {
    readonly offset?: number;
    readonly frame?: number;
    readonly damage?: string;
  };
  const rest = readRest(fd, offset, files);
  if (damage === 'foreign' || isAttested(rest, frame)) {
    const remedy = isComplete
      ? `; "yardmaster log repair ${path}" keeps what is before that place`
      : `; it lies before the end of the first part, without which nothing can be restored: ${RESTORE}`;
    throw new YardmasterError(
      'ERR_JOURNAL',
      damage === 'foreign' ? error.message : `${error.message}${remedy}`,
      { file: path, offset, damage },
      { cause: error },
    );
  }
  return { offset, nbytes: rest.length };
}

/** True when a readable frame follows that was written when the damaged one was on the disk for certain. */
function isAttested(bytes: Buffer, frame: number): boolean {
  const least = FRAME_HEADER_BYTES + BODY_HEADER_BYTES;
  for (let at = 1; at + least <= bytes.length; at++) {
    const length = bytes.readUInt32LE(at);
    if (length < BODY_HEADER_BYTES || at + FRAME_HEADER_BYTES + length > bytes.length) continue;
    const body = at + FRAME_HEADER_BYTES;
    if (bytes.readUInt8(body) >= FRAME_KINDS.length) continue;
    const sequence = bytes.readUInt32LE(body + 4) + 2 ** 32 * bytes.readUInt32LE(body + 8);
    const unsynced = bytes.readUInt32LE(body) >>> 8;
    if (sequence - unsynced <= frame || sequence > frame + bytes.length) continue;
    if (crc32c(bytes.subarray(body, body + length)) === bytes.readUInt32LE(at + 4)) return true;
  }
  return false;
}

function* chunks(fd: number, files: FileSystem): Generator<Uint8Array, void, undefined> {
  for (let at = 0; ;) {
    const bytes = Buffer.allocUnsafe(CHUNK_BYTES);
    const nbytes = files.readSync(fd, bytes, 0, CHUNK_BYTES, at);
    if (nbytes === 0) return;
    at += nbytes;
    yield bytes.subarray(0, nbytes);
  }
}

function readRest(fd: number, offset: number, files: FileSystem): Buffer {
  const bytes = Buffer.alloc(Math.max(0, files.fstatSync(fd).size - offset));
  let length = 0;
  for (let nbytes = -1; nbytes !== 0; length += nbytes) {
    nbytes = files.readSync(fd, bytes, length, bytes.length - length, offset + length);
  }
  return bytes.subarray(0, length);
}

/** The repair of a file. */
interface Repair {
  /** Bytes that were kept; undefined: nothing was wrong. */
  readonly keptBytes: number | undefined;
  /** The file as it was. */
  readonly copy: string | undefined;
}

/**
 * Cuts a log before its first frame that cannot be read. The file as it was is kept beside it.
 * @throws YardmasterError `ERR_LOG` when it is no log, when there is such a copy already, or when nothing useful would be
 *   left: the first part of a journal's segment is damaged
 */
export async function repairLog(file: string): Promise<Repair> {
  const offset = await damageOf(file);
  if (offset === undefined) return { keptBytes: undefined, copy: undefined };
  const copy = `${file}.damaged`;
  try {
    copyFileSync(file, copy, constants.COPYFILE_EXCL);
    truncateSync(file, offset);
  } catch (cause) {
    const message = `the log ${file} cannot be repaired: ${(cause as Error).message}`;
    throw new YardmasterError('ERR_LOG', message, { file }, { cause });
  }
  return { keptBytes: offset, copy };
}

/** The offset of the first frame that cannot be read. */
async function damageOf(file: string): Promise<number | undefined> {
  const reader = new LogReader(journalCodec(), file);
  // Without its header nothing can be read, and a segment of a journal says first all that was known when it began.
  let isFirstPart = true;
  try {
    for await (const bytes of readBytes(file)) {
      for (const frame of reader.read(bytes)) {
        if (frame.kind === 'header') isFirstPart = frame.payload.segment !== undefined;
        else if (frame.kind === 'checkpoint') isFirstPart = false;
      }
    }
    reader.end();
    return undefined;
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
    const { offset, damage } = error.data as { readonly offset?: number; readonly damage?: string };
    if (offset === undefined || damage === 'foreign') throw error;
    if (!isFirstPart) return offset;
    throw new YardmasterError(
      'ERR_LOG',
      `${error.message}; what is before that place cannot be used by itself: restore the file from a copy`,
      { file, offset, damage },
      { cause: error },
    );
  }
}

/** The options of writing a segment. */
interface WriterOptions {
  readonly durability: Durability;
  readonly header: Pick<LogHeader, 'schedulerId' | 'segment'>;
  readonly clock: Clock;
  readonly files: FileSystem;
  /** The reports of a client up to this number are written, as the durability says. */
  readonly onCommit: (client: string, upTo: number) => void;
  /** The file cannot be put on the disk. */
  readonly onError: (error: Error) => void;
}

/**
 * Writes one segment. The entries of one turn of the event loop are written at once, before anything is sent to
 * peers, and put on the disk at once, while those of the next turns are already gathered.
 */
export class JournalWriter {
  private readonly log: LogWriter;
  private acknowledgements = new Map<string, number>();
  private isDue = false;
  private isSyncing = false;
  private isOver = false;
  /** Frames that the operating system has. */
  private writtenFrames = 0;
  /** Frames that are on the disk. */
  private syncedFrames = 0;
  private entries = 0;
  private timer: Timer | undefined;
  private readonly stopFlushing = beforeTurnsEnd(() => this.flush());

  private constructor(
    private readonly file: SegmentFile,
    private readonly options: WriterOptions,
  ) {
    this.log = new LogWriter(journalCodec(), (bytes) => file.write(bytes), true);
  }

  /** @throws Error of the file system */
  static create(path: string, options: WriterOptions): JournalWriter {
    const writer = new JournalWriter(SegmentFile.create(path, options.files), options);
    const { header, clock } = options;
    const config = {};
    const payload = { version: VERSION, createdAtMs: Date.now(), config, folder: '', ...header };
    writer.log.append('header', clock.nowMs(), payload satisfies LogHeader);
    writer.syncAtIntervals();
    return writer;
  }

  get nbytes(): number {
    return this.file.nbytes;
  }

  /** Nothing is being put on the disk. */
  get isIdle(): boolean {
    return !this.isSyncing;
  }

  /** @throws Error of the file system */
  checkpoint(entries: Iterable<Stimulus>, nowMs: number): void {
    for (const entry of entries) this.append(entry, nowMs);
    this.log.append('checkpoint', nowMs, { entries: this.entries }, this.unsyncedFrames);
    this.syncNow();
  }

  /**
   * The operating system has it before anything is sent at the end of this turn of the event loop.
   * @throws Error of the file system; YardmasterError `ERR_NOT_SERIALISABLE`, `ERR_FRAME`: nothing is written then
   */
  write(entry: Stimulus, nowMs: number): void {
    this.append(entry, nowMs);
    this.schedule();
  }

  /** Says so to the client when all that was written until now is on the disk. */
  acknowledge(client: string, upTo: number): void {
    this.acknowledgements.set(client, upTo);
    this.schedule();
  }

  /** @throws Error of the file system */
  close(): void {
    this.stop();
    this.syncNow();
    // Attests the entries before it: damage to them cannot be taken for the end of an unfinished write.
    this.log.append('checkpoint', this.options.clock.nowMs(), { entries: this.entries });
    this.log.flush();
    this.file.close();
    this.commit(this.acknowledgements);
  }

  /** Closes the file without a promise that anything of it is on the disk. */
  abandon(): void {
    this.stop();
    this.file.close();
  }

  /** Each frame says how many of those before it may be missing after a loss of power. */
  private append(entry: Stimulus, nowMs: number): void {
    this.log.append('entry', nowMs, entry, this.unsyncedFrames);
    this.entries++;
  }

  private get unsyncedFrames(): number {
    return Math.min(this.log.frames - this.syncedFrames, MARK_MASK);
  }

  private syncNow(): void {
    this.log.flush();
    this.file.syncNow();
    this.writtenFrames = this.log.frames;
    this.syncedFrames = this.log.frames;
  }

  private stop(): void {
    this.isOver = true;
    this.stopFlushing();
    this.timer?.cancel();
  }

  /** The operating system has all entries. */
  flush(): void {
    if (this.isOver) return;
    try {
      this.log.flush();
      this.writtenFrames = this.log.frames;
    } catch (error) {
      this.options.onError(error as Error);
    }
  }

  /** Once a turn of the event loop. */
  private schedule(): void {
    if (this.isDue) return;
    this.isDue = true;
    setImmediate(() => {
      this.isDue = false;
      this.endGroup();
    });
  }

  private endGroup(): void {
    this.flush();
    if (this.isOver || this.isSyncing) return;
    if (this.options.durability === 'commit') {
      this.syncInBackground();
      return;
    }
    const { acknowledgements } = this;
    this.acknowledgements = new Map();
    this.commit(acknowledgements);
  }

  private syncAtIntervals(): void {
    const { durability, clock } = this.options;
    if (typeof durability !== 'object' || this.isOver) return;
    this.timer = clock.setTimer(durability.intervalMs, () => {
      this.syncInBackground();
      this.syncAtIntervals();
    });
  }

  private syncInBackground(): void {
    if (this.isSyncing || this.file.isSynced) return;
    const { acknowledgements, writtenFrames } = this;
    this.acknowledgements = new Map();
    this.isSyncing = true;
    this.file.sync((error) => {
      this.isSyncing = false;
      if (error !== null) this.options.onError(error);
      else {
        this.syncedFrames = writtenFrames;
        this.commit(acknowledgements);
      }
      if (!this.isOver && !this.file.isSynced) this.schedule();
    });
  }

  private commit(acknowledgements: ReadonlyMap<string, number>): void {
    for (const [client, upTo] of acknowledgements) this.options.onCommit(client, upTo);
  }
}

/** Returns a codec for the entries of journals. Graphs of Dask's clients have values that sockets refuse. */
function journalCodec(): MsgpackCodec {
  return new MsgpackCodec(undefined, { foreign: DASK_VALUES });
}

/** The moment at which an entry counts as written. */
export type Durability =
  /** The entry counts when it is on the disk, where it survives a power failure. */
  | 'commit'
  /** The entry counts when the operating system has it, which puts it on the disk within this time. */
  | { readonly intervalMs: number }
  /** The entry counts when the operating system has it, which puts it on the disk when it likes. */
  | 'none';

/** The options of a journal. */
export interface JournalOptions {
  /** It is made if it does not exist. One scheduler at a time uses it. */
  readonly folder: string;
  /** Default `commit`. */
  readonly durability?: Durability;
  /** The reaction to a disk that is full or fails: `stop` the scheduler, or `continue` without a journal. Default `stop`. */
  readonly onJournalError?: 'stop' | 'continue';
  /** Milliseconds that a scheduler which starts again waits for the workers that it had. Default 30 000. */
  readonly workerWaitMs?: number;
  /** Bytes by which a segment grows before the next one is begun, at least. Default 64 MiB. */
  readonly segmentBytes?: number;
  /** The file system of its files. Default: that of this machine. */
  readonly files?: FileSystem;
}

const INTERVAL = /^interval=(\d+)(ms|s)$/;

/** @throws YardmasterError `ERR_CONFIG` */
export function durabilityOf(text: string): Durability {
  if (text === 'commit' || text === 'none') return text;
  const [, amount, unit] = INTERVAL.exec(text) ?? [];
  const intervalMs = Number(amount) * (unit === 's' ? 1000 : 1);
  if (intervalMs > 0) return { intervalMs };
  throw new YardmasterError(
    'ERR_CONFIG',
    `the durability "${text}" is none of commit, interval=50ms and none`,
    { durability: text },
  );
}
