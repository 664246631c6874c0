import { constants } from 'node:fs';
import { YardmasterError } from '../../../core/api/index.ts';
import { crc32c } from '../../../core/log/crc32c.ts';
import {
  BODY_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type LogHeader,
} from '../../../core/log/format.ts';
import { LogReader } from '../../../core/log/log-reader.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import { type FileSystem, SYSTEM_FILES } from '../../log/file-system.ts';
import { journalCodec } from './journal-options.ts';

const CHUNK_BYTES = 2 ** 20;

/** What a segment of a journal holds. */
export interface Segment {
  readonly path: string;
  readonly header: LogHeader | undefined;
  readonly entries: readonly Stimulus[];
  /** Whether all that was known when it began is in it. */
  readonly isComplete: boolean;
  /** That were read. */
  readonly nbytes: number;
  /** A last frame that was not written to its end: where it begins, and how much of it there is. */
  readonly torn: { readonly offset: number; readonly nbytes: number } | undefined;
}

/** What helps when the first part of the only segment is gone. */
export const RESTORE =
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
    return files.openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
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

/** Whether a readable frame follows that was written when the damaged one was on the disk for certain. */
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
