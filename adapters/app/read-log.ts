import { constants, copyFileSync, openSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { YardmasterError } from '../../core/api/index.ts';
import type { StatePart } from '../../core/kernel/snapshot.ts';
import {
  BODY_HEADER_BYTES,
  crc32c,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type LogCheckpoint,
  type LogFrame,
  type LogHeader,
  STARTS_SERIES,
} from '../../core/log/format.ts';
import { LogReader } from '../../core/log/log-reader.ts';
import type { Stimulus } from '../../core/messages/stimulus.ts';
import { MsgpackCodec } from '../codecs/msgpack.ts';
import { DASK_VALUES } from '../dask/wire/codec.ts';
import { type FileSystem, openToRead, SYSTEM_FILES } from '../log/segment-file.ts';

/** Returns a codec for the frames of logs. Graphs of Dask's clients have values that sockets refuse. */
export function logCodec(): MsgpackCodec {
  return new MsgpackCodec(undefined, { foreign: DASK_VALUES, isSeries: true });
}

// ---- the files of a log ----------------------------------------------------------------------

const NAME = /^(\d{8,})\.ylog$/;

export function segmentPath(folder: string, segment: number): string {
  return join(folder, `${String(segment).padStart(8, '0')}.ylog`);
}

/** Numbers of the segments in a folder, ascending. */
export function segmentsOf(folder: string, files: FileSystem = SYSTEM_FILES): number[] {
  const numbers = files.readdirSync(folder).flatMap((name) => NAME.exec(name)?.[1] ?? []);
  return numbers.map(Number).sort((a, b) => a - b);
}

/**
 * The files that a log is read from, the oldest first: itself, those of the folder of a recording, or the segment of a
 * journal from which a scheduler would start.
 * @throws YardmasterError `ERR_LOG` when there is none, one is missing between others, or they are of two logs
 */
export function logFiles(path: string): readonly string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
  const numbers = segmentsOf(path);
  const [first] = numbers;
  if (first === undefined) {
    throw new YardmasterError(
      'ERR_LOG',
      `the folder ${path} holds no log: give a recording, or the folder of "yardmaster scheduler --journal" or --record-keep`,
      { folder: path },
    );
  }
  const files = numbers.map((number) => segmentPath(path, number));
  const kinds = files.map((file) => headerOf(file)?.holds);
  if (kinds.includes('requests')) {
    const recording = files[kinds.indexOf('all')];
    if (recording !== undefined) {
      throw new YardmasterError(
        'ERR_LOG',
        `the folder ${path} holds a journal and, with ${recording}, a recording: give each a folder of its own`,
        { folder: path, file: recording },
      );
    }
    const complete = files.findLast((file) => hasCheckpoint(file));
    return [complete ?? (files.at(-1) as string)];
  }
  for (const [index, number] of numbers.entries()) {
    if (number === first + index) continue;
    const missing = segmentPath(path, first + index);
    throw new YardmasterError(
      'ERR_LOG',
      `the recording ${path} lacks ${missing}; each of its files can be read by itself`,
      { folder: path, file: missing },
    );
  }
  return files;
}

const CHUNK_BYTES = 2 ** 20;

/** @throws YardmasterError `ERR_LOG` when the file cannot be read */
function* bytesOf(file: string, start = 0): Generator<Uint8Array, void, undefined> {
  let fd: number | undefined;
  try {
    fd = openSync(file, 'r');
    yield* chunksOf(fd, SYSTEM_FILES, start);
  } catch (cause) {
    if (YardmasterError.is(cause)) throw cause;
    const message = `the log ${file} cannot be read: ${(cause as Error).message}`;
    throw new YardmasterError('ERR_LOG', message, { file }, { cause });
  } finally {
    if (fd !== undefined) SYSTEM_FILES.closeSync(fd);
  }
}

/** @throws Error of the file system */
function* chunksOf(
  fd: number,
  files: FileSystem,
  start = 0,
): Generator<Uint8Array, void, undefined> {
  for (let at = start; ;) {
    const bytes = Buffer.allocUnsafe(CHUNK_BYTES);
    const nbytes = files.readSync(fd, bytes, 0, CHUNK_BYTES, at);
    if (nbytes === 0) return;
    at += nbytes;
    yield bytes.subarray(0, nbytes);
  }
}

// ---- frames ----------------------------------------------------------------------------------

/**
 * Frames of a log, each checked; the files of a folder count on. The last thing it does is to throw when a file is damaged.
 * @param from - the header, and then what begins with this checkpoint
 * @throws YardmasterError `ERR_LOG` with file, offset and kind of damage
 */
export async function* readRecording(
  path: string,
  from?: CheckpointPlace,
): AsyncGenerator<LogFrame, void, undefined> {
  const codec = logCodec();
  const files = logFiles(path);
  const first = from === undefined ? 0 : files.indexOf(from.file);
  let sequence = from?.number ?? 0;
  if (from !== undefined) yield firstFrame(from.file);
  for (const [index, file] of files.slice(first).entries()) {
    const begin = index === 0 ? from : undefined;
    const reader = new LogReader(codec, file, begin);
    for (const bytes of bytesOf(file, begin?.offset)) {
      for (const frame of reader.read(bytes)) {
        if (index > 0 && frame.kind === 'header') continue;
        yield frame.sequence === sequence ? frame : { ...frame, sequence };
        sequence++;
      }
      // What else waits has its turn.
      await new Promise(setImmediate);
    }
    reader.end();
  }
}

/**
 * As {@link readRecording}, for what is of no use without the whole.
 * @throws YardmasterError `ERR_LOG`, which says how to keep the readable part of a damaged file
 */
export async function* wholeRecording(path: string): AsyncGenerator<LogFrame, void, undefined> {
  try {
    yield* readRecording(path);
  } catch (error) {
    const { file } = YardmasterError.is(error, 'ERR_LOG') ? error.data : {};
    if (typeof file !== 'string' || damageOf(file) === undefined) throw error;
    const { message, data } = error as YardmasterError;
    throw new YardmasterError(
      'ERR_LOG',
      `${message}; once its scheduler has ended, ${keptBy(file)}`,
      data,
      {
        cause: error,
      },
    );
  }
}

function keptBy(file: string): string {
  return `"yardmaster log repair ${file}" keeps what is before that place`;
}

function firstFrame(file: string): LogFrame {
  const reader = new LogReader(logCodec(), file);
  for (const bytes of bytesOf(file)) for (const frame of reader.read(bytes)) return frame;
  reader.end();
  throw new YardmasterError('ERR_LOG', `the log ${file} ends before its first frame`, { file });
}

/** Undefined when it cannot be read. */
function headerOf(file: string): LogHeader | undefined {
  try {
    return firstFrame(file).payload as LogHeader;
  } catch (error) {
    if (YardmasterError.is(error, 'ERR_LOG')) return undefined;
    throw error;
  }
}

/** A checkpoint at which a replay can begin. */
export interface CheckpointPlace {
  readonly file: string;
  /** The offset of its first frame, in bytes. */
  readonly offset: number;
  /** Sequence number of that frame in its file, and in the whole log. */
  readonly sequence: number;
  readonly number: number;
  /** Number of its last frame. */
  readonly endNumber: number;
  readonly timeMs: number;
}

/**
 * The checkpoints of a log, in order. Only the heads of frames are read, so that this takes little more than reading
 * the file; it ends where the file is damaged. O(bytes).
 */
export function checkpointsOf(path: string): readonly CheckpointPlace[] {
  const found: CheckpointPlace[] = [];
  let number = 0;
  for (const [index, file] of logFiles(path).entries()) {
    let first: CheckpointPlace | undefined;
    for (const { kind, offset, sequence, timeMs } of headsOf(file)) {
      const place = { file, offset, sequence, number, endNumber: number, timeMs };
      if (kind === 'state') first ??= place;
      else {
        if (kind === 'checkpoint' && first !== undefined)
          found.push({ ...first, endNumber: number });
        first = undefined;
      }
      if (index === 0 || kind !== 'header') number++;
    }
  }
  return found;
}

/** The last checkpoint from which this frame can be reached. */
export function checkpointBefore(path: string, frame: number): CheckpointPlace | undefined {
  return checkpointsOf(path).findLast(({ endNumber }) => endNumber <= frame);
}

/** Frames without what they hold, up to the first that is damaged. */
function* headsOf(file: string): Generator<Omit<LogFrame, 'payload'>, void, undefined> {
  const reader = new LogReader(undefined, file);
  try {
    for (const bytes of bytesOf(file)) yield* reader.read(bytes);
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
  }
}

function hasCheckpoint(file: string): boolean {
  for (const { kind } of headsOf(file)) if (kind === 'checkpoint') return true;
  return false;
}

// ---- a segment from which a scheduler starts -------------------------------------------------

interface Segment {
  readonly path: string;
  readonly header: LogHeader | undefined;
  /** The state when it began. */
  readonly parts: readonly StatePart[];
  /** Completes the state; undefined: the segment ends before. */
  readonly checkpoint: LogCheckpoint | undefined;
  /** The stimuli since then. */
  readonly entries: readonly Stimulus[];
  /** Bytes that were read. */
  readonly nbytes: number;
  /** A last frame that was not written to its end: where it begins, and how much of it there is. */
  readonly torn: { readonly offset: number; readonly nbytes: number } | undefined;
}

/** The advice for a journal whose only segment has lost its first part. */
export const RESTORE =
  'restore it from a copy, or move the folder of the journal away, to start without the tasks that were in it';

/**
 * Reads one segment of a journal. What was not written to its end is left out, and so is what a loss of power has garbled
 * because it was not on the disk yet.
 * @param onChunk - called after each MiB
 * @throws YardmasterError `ERR_JOURNAL` when it cannot be read, or when something is damaged that was on the disk
 */
export function readSegment(
  path: string,
  files: FileSystem = SYSTEM_FILES,
  onChunk: () => void = () => undefined,
): Segment {
  let fd: number;
  try {
    fd = openToRead(path, files);
  } catch (cause) {
    const isLink = (cause as NodeJS.ErrnoException).code === 'ELOOP';
    const why = isLink ? 'it is a symbolic link' : (cause as Error).message;
    const message = `the segment ${path} cannot be read: ${why}`;
    throw new YardmasterError('ERR_JOURNAL', message, { file: path }, { cause });
  }
  try {
    return read(path, fd, files, onChunk);
  } finally {
    files.closeSync(fd);
  }
}

function read(path: string, fd: number, files: FileSystem, onChunk: () => void): Segment {
  const reader = new LogReader(logCodec(), path);
  const parts: StatePart[] = [];
  const entries: Stimulus[] = [];
  let header: LogHeader | undefined;
  let checkpoint: LogCheckpoint | undefined;
  let nbytes = 0;
  let torn: Segment['torn'];
  try {
    for (const bytes of chunksOf(fd, files)) {
      nbytes += bytes.byteLength;
      for (const frame of reader.read(bytes)) {
        if (frame.kind === 'header') header = frame.payload;
        else if (frame.kind === 'state') parts.push(frame.payload);
        else if (frame.kind === 'checkpoint') checkpoint = frame.payload;
        else if (frame.kind === 'stimulus') entries.push(frame.payload);
      }
      onChunk();
    }
    reader.end();
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
    const rest = restOf(fd, files, error);
    const { offset, frame, damage } = placeOf(error);
    if (damage === 'foreign') {
      throw new YardmasterError('ERR_JOURNAL', error.message, { file: path }, { cause: error });
    }
    if (isAttested(rest, frame)) {
      const remedy =
        checkpoint === undefined
          ? `it lies before the end of the first part, without which nothing can be restored: ${RESTORE}`
          : keptBy(path);
      const data = { file: path, offset, damage };
      throw new YardmasterError('ERR_JOURNAL', `${error.message}; ${remedy}`, data, {
        cause: error,
      });
    }
    torn = { offset, nbytes: rest.length };
  }
  if (header?.holds === 'all') {
    throw new YardmasterError('ERR_JOURNAL', `${path} is a recording, not a segment of a journal`, {
      file: path,
    });
  }
  return { path, header, parts, checkpoint, entries, nbytes, torn };
}

interface DamagePlace {
  readonly offset: number;
  readonly frame: number;
  readonly damage: string;
}

function placeOf({ data }: YardmasterError): DamagePlace {
  return { offset: 0, frame: 0, damage: '', ...(data as Partial<DamagePlace>) };
}

/** True when a readable frame follows that was written when the damaged one was on the disk for certain. */
function isAttested(bytes: Buffer, frame: number): boolean {
  const least = FRAME_HEADER_BYTES + BODY_HEADER_BYTES;
  for (let at = 1; at + least <= bytes.length; at++) {
    const length = bytes.readUInt32LE(at);
    if (length < BODY_HEADER_BYTES || at + FRAME_HEADER_BYTES + length > bytes.length) continue;
    const body = at + FRAME_HEADER_BYTES;
    if ((bytes.readUInt8(body) & ~STARTS_SERIES) >= FRAME_KINDS.length) continue;
    const sequence = bytes.readUInt32LE(body + 4) + 2 ** 32 * bytes.readUInt32LE(body + 8);
    const unsynced = bytes.readUInt32LE(body) >>> 8;
    if (sequence - unsynced <= frame || sequence > frame + bytes.length) continue;
    if (crc32c(bytes.subarray(body, body + length)) === bytes.readUInt32LE(at + 4)) return true;
  }
  return false;
}

/** The bytes from the damaged frame on. */
function restOf(fd: number, files: FileSystem, error: YardmasterError): Buffer {
  return Buffer.concat([...chunksOf(fd, files, placeOf(error).offset)]);
}

// ---- repair ----------------------------------------------------------------------------------

interface Repair {
  /** Bytes that were kept; undefined: nothing was wrong. */
  readonly keptBytes: number | undefined;
  /** The file as it was. */
  readonly copy: string | undefined;
}

/**
 * Cuts a log before its first frame that cannot be read. The file as it was is kept beside it.
 * @throws YardmasterError `ERR_LOG` when it is no log, when there is such a copy already, or when nothing useful would be
 *   left, because its first part is damaged
 */
export function repairLog(file: string): Repair {
  const offset = damageOf(file);
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
function damageOf(file: string): number | undefined {
  const reader = new LogReader(logCodec(), file);
  // Without its first checkpoint nothing can be made of the rest.
  let isFirstPart = true;
  try {
    for (const bytes of bytesOf(file)) {
      for (const { kind } of reader.read(bytes)) isFirstPart &&= kind !== 'checkpoint';
    }
    reader.end();
    return undefined;
  } catch (error) {
    if (!YardmasterError.is(error, 'ERR_LOG')) throw error;
    const { offset, damage } = placeOf(error);
    if (damage === '' || damage === 'foreign') throw error;
    if (!isFirstPart) return offset;
    throw new YardmasterError(
      'ERR_LOG',
      `${error.message}; what is before that place cannot be used by itself: restore the file from a copy`,
      { file, offset, damage },
      { cause: error },
    );
  }
}
