import { Encoder } from '../codec.ts';
import { LARGE_FRAME_BYTES, preludeBytes, writePrelude } from './frames.ts';

/** Space in front of a message for its prelude with up to six frames and the header of a batch. */
const HEADROOM_BYTES = preludeBytes(6) + 5;

/**
 * Packs messages for a stream: single ones, and batches, which are lists of messages that grow until
 * they are taken.
 */
export class MessageWriter {
  private readonly encoder = new Encoder();
  private batchCount = 0;

  /** Messages in the batch. */
  get count(): number {
    return this.batchCount;
  }

  /** Bytes of the batch, without those of opaque values. */
  get nbytes(): number {
    return this.batchCount === 0 ? 0 : this.encoder.length - HEADROOM_BYTES;
  }

  /** Frames of opaque values in the batch. */
  get frameCount(): number {
    return this.batchCount === 0 ? 0 : this.encoder.frameCount;
  }

  /**
   * Encodes at once, so that later changes do not matter; bytes of opaque values are not copied yet.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; then the batch is as it was
   */
  add(message: unknown): void {
    if (this.batchCount === 0) this.encoder.reset(HEADROOM_BYTES);
    this.encoder.write(message);
    this.batchCount++;
  }

  /** The batch so far as chunks for a socket, whose memory is the caller's. */
  takeBatch(): Uint8Array[] {
    if (this.batchCount === 0) return [];
    const count = this.batchCount;
    this.batchCount = 0;
    const { memory: bytes } = this.encoder;
    let start = HEADROOM_BYTES;
    if (count < 16) bytes[--start] = 0x90 | count;
    else {
      start -= 5;
      bytes[start] = 0xdd;
      new DataView(bytes.buffer, bytes.byteOffset).setUint32(start + 1, count);
    }
    return this.pack(start);
  }

  /**
   * One message by itself. The batch must have been taken before.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`
   */
  single(message: unknown): Uint8Array[] {
    this.encoder.reset(HEADROOM_BYTES);
    this.encoder.write(message);
    return this.pack(HEADROOM_BYTES);
  }

  /** @param start - where frame 0 begins in the memory of the encoder */
  private pack(start: number): Uint8Array[] {
    const { encoder } = this;
    const frames = encoder.takeFrames();
    const lengths = [encoder.length - start];
    for (const { length } of frames) lengths.push(length);
    const prelude = preludeBytes(lengths.length);
    const chunks: Uint8Array[] = [];
    let from = start - prelude;
    if (from >= 0) writePrelude(encoder.memory, from, lengths);
    else {
      const apart = new Uint8Array(prelude);
      writePrelude(apart, 0, lengths);
      chunks.push(apart);
      from = start;
    }
    for (const frame of frames) {
      if (frame.length < LARGE_FRAME_BYTES) encoder.raw(frame);
      else {
        if (encoder.length > from) chunks.push(encoder.copy(from));
        chunks.push(frame);
        from = encoder.length;
      }
    }
    if (encoder.length > from) chunks.push(encoder.copy(from));
    return chunks;
  }
}
