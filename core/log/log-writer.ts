import { crc32c } from './crc32c.ts';
import {
  BODY_HEADER_BYTES,
  FILE_HEADER_BYTES,
  FORMAT_VERSION,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
  type FrameKind,
  MAGIC,
  type PayloadCodec,
} from './format.ts';

/** Frames are gathered up to this size before they are handed on. */
const CHUNK_BYTES = 128 * 1024;

/** Takes bytes for good. Never throws: what fails to be written is the receiver's concern. */
export type LogSink = (bytes: Uint8Array) => void;

/** Makes the bytes of a log. Writes nowhere itself. */
export class LogWriter {
  private chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  private length = 0;
  private sequence = 0;
  private handedOn = 0;

  /** @param isShared - the sink has used the bytes when it returns: they are overwritten then */
  constructor(
    private readonly codec: PayloadCodec,
    private readonly sink: LogSink,
    private readonly isShared = false,
  ) {
    const head = Buffer.alloc(FILE_HEADER_BYTES);
    head.set(MAGIC);
    head.writeUInt32LE(FORMAT_VERSION, MAGIC.length);
    this.chunk.set(head);
    this.length = head.length;
  }

  /** Bytes so far. */
  get nbytes(): number {
    return this.handedOn + this.length;
  }

  /** Frames so far. */
  get frames(): number {
    return this.sequence;
  }

  /**
   * Adds a frame.
   * @param mark - see `FramePlace.mark`
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` when the payload is no plain data; nothing is added then
   */
  append(kind: FrameKind, timeMs: number, payload: unknown, mark = 0): void {
    const encoded = this.codec.encodeShared(payload);
    const bodyLength = BODY_HEADER_BYTES + encoded.length;
    const needed = FRAME_HEADER_BYTES + bodyLength;
    if (this.length + needed > this.chunk.length) {
      this.flush();
      if (needed > CHUNK_BYTES) this.chunk = Buffer.allocUnsafe(needed);
    }
    const { chunk, length: start } = this;
    const body = start + FRAME_HEADER_BYTES;
    chunk.writeUInt32LE(((mark << 8) | FRAME_KINDS.indexOf(kind)) >>> 0, body);
    chunk.writeUInt32LE(this.sequence % 2 ** 32, body + 4);
    chunk.writeUInt32LE(Math.floor(this.sequence / 2 ** 32), body + 8);
    chunk.writeDoubleLE(timeMs, body + 12);
    chunk.set(encoded, body + BODY_HEADER_BYTES);
    chunk.writeUInt32LE(bodyLength, start);
    chunk.writeUInt32LE(crc32c(chunk.subarray(body, body + bodyLength)), start + 4);
    this.length += needed;
    this.sequence++;
  }

  /** Hands on what has been gathered. */
  flush(): void {
    if (this.length === 0) return;
    this.handedOn += this.length;
    this.sink(this.chunk.subarray(0, this.length));
    if (!this.isShared || this.chunk.length > CHUNK_BYTES) {
      this.chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    }
    this.length = 0;
  }
}
