import { YardmasterError } from '../api/errors.ts';
import {
  BODY_HEADER_BYTES,
  crc32c,
  FILE_HEADER_BYTES,
  FORMAT_VERSION,
  FORMAT_VERSION_MIN,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type LogFrame,
  MAGIC,
  type PayloadCodec,
  STARTS_SERIES,
} from './format.ts';

/** The kind of damage at a place of a log. */
type LogDamage =
  /** The log ends within its first bytes or within a frame: the writer was killed, or the disk was full. */
  | 'torn'
  /** A frame whose checksum, order or payload is wrong, with more frames after it. */
  | 'damaged'
  /** No log, or one of another version. */
  | 'foreign';

/**
 * Reads a log from its bytes, in pieces of any size. Does no I/O itself.
 *
 * Every frame is complete and checked before it is given out. After the last piece {@link end} says whether the log ends
 * between two frames.
 */
export class LogReader {
  private pending: Buffer = Buffer.alloc(0);
  /** The bytes after it, in pieces that are joined when a frame is complete. */
  private later: Uint8Array[] = [];
  private laterBytes = 0;
  /** From the first pending byte to the end of its frame, once that is known. */
  private frameBytes = 0;
  /** Place of the first pending byte in the file. */
  private offset = 0;
  private isOpened = false;
  private sequence = 0;

  /**
   * @param codec - undefined: only the heads of frames are read, and neither checked nor decoded
   * @param file - for messages
   * @param from - the first byte that is read is not that of the file, but that of this frame
   */
  constructor(
    private readonly codec: PayloadCodec | undefined,
    private readonly file: string,
    from?: { readonly offset: number; readonly sequence: number },
  ) {
    if (from === undefined) return;
    this.offset = from.offset;
    this.sequence = from.sequence;
    this.isOpened = true;
  }

  /**
   * Frames that are complete with these bytes.
   * @throws YardmasterError `ERR_LOG` with file, offset and kind of damage
   */
  *read(bytes: Uint8Array): Generator<LogFrame, void, undefined> {
    this.later.push(bytes);
    this.laterBytes += bytes.length;
    if (this.nbytes < this.frameBytes) return;
    this.pending =
      this.nbytes === bytes.length ? asBuffer(bytes) : Buffer.concat([this.pending, ...this.later]);
    this.later = [];
    this.laterBytes = 0;
    if (!this.isOpened && !this.open()) return;
    for (let frame = this.next(); frame !== undefined; frame = this.next()) yield frame;
  }

  /** @throws YardmasterError `ERR_LOG` (`torn`) when the log ends within a frame */
  end(): void {
    const { nbytes: length } = this;
    if (this.isOpened && length === 0) return;
    throw this.damage(
      'torn',
      this.isOpened
        ? `ends within a frame, ${length} bytes after its beginning`
        : `ends after ${length} bytes, before its first frame`,
    );
  }

  private get nbytes(): number {
    return this.pending.length + this.laterBytes;
  }

  private open(): boolean {
    const { pending } = this;
    const known = Math.min(pending.length, MAGIC.length);
    if (Buffer.compare(pending.subarray(0, known), MAGIC.subarray(0, known)) !== 0) {
      // A loss of power leaves zeros where what was written had not reached the disk.
      if (pending.subarray(0, FILE_HEADER_BYTES).every((byte) => byte === 0)) {
        throw this.damage('torn', 'begins with zeros: its beginning did not reach the disk');
      }
      throw this.damage('foreign', 'is no log of Yardmaster: it does not begin with YARDLOG');
    }
    if (pending.length < FILE_HEADER_BYTES) return false;
    const version = pending.readUInt32LE(MAGIC.length);
    if (version < FORMAT_VERSION_MIN || version > FORMAT_VERSION) {
      throw this.damage(
        'foreign',
        `has the format ${version}, and this version of Yardmaster reads the formats ${FORMAT_VERSION_MIN} to ${FORMAT_VERSION}`,
      );
    }
    this.isOpened = true;
    this.drop(FILE_HEADER_BYTES);
    return true;
  }

  private next(): LogFrame | undefined {
    const { pending, offset } = this;
    if (pending.length < FRAME_HEADER_BYTES) return undefined;
    const length = pending.readUInt32LE(0);
    if (length < BODY_HEADER_BYTES || length > FRAME_BYTES_MAX) {
      throw this.damage('damaged', `has a frame of ${length} bytes`);
    }
    const end = FRAME_HEADER_BYTES + length;
    this.frameBytes = end;
    if (pending.length < end) return undefined;
    const body = pending.subarray(FRAME_HEADER_BYTES, end);
    if (this.codec !== undefined && crc32c(body) !== pending.readUInt32LE(4)) {
      throw this.damage('damaged', 'has a frame with a wrong checksum');
    }
    const frame = this.decode(body, offset);
    this.drop(end);
    return frame;
  }

  private decode(body: Buffer, offset: number): LogFrame {
    const number = body.readUInt8(0) & ~STARTS_SERIES;
    const startsSeries = body.readUInt8(0) !== number;
    const kind = FRAME_KINDS[number];
    if (kind === undefined) throw this.damage('damaged', `has a frame of the kind ${number}`);
    const sequence = body.readUInt32LE(4) + 2 ** 32 * body.readUInt32LE(8);
    if (sequence !== this.sequence) {
      throw this.damage('damaged', `continues with frame ${sequence} after ${this.sequence - 1}`);
    }
    if ((sequence === 0) !== (kind === 'header')) {
      throw this.damage('damaged', `has a ${kind} as frame ${sequence}`);
    }
    this.sequence++;
    const timeMs = body.readDoubleLE(12);
    const mark = body.readUInt32LE(0) >>> 8;
    let payload: unknown;
    try {
      if (startsSeries) this.codec?.restart();
      payload = this.codec?.decode(body.subarray(BODY_HEADER_BYTES));
    } catch (cause) {
      throw this.damage('damaged', `has a frame that is not readable`, cause);
    }
    return { kind, offset, sequence, timeMs, mark, payload } as LogFrame;
  }

  private drop(nbytes: number): void {
    this.pending = this.pending.subarray(nbytes);
    this.offset += nbytes;
    this.frameBytes = 0;
  }

  private damage(damage: LogDamage, what: string, cause?: unknown): YardmasterError {
    const { file, offset, sequence } = this;
    return new YardmasterError(
      'ERR_LOG',
      `the log ${file} ${what}, at byte ${offset} (frame ${sequence})`,
      { file, offset, frame: sequence, damage },
      cause === undefined ? {} : { cause },
    );
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
