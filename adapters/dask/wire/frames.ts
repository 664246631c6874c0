import { YardmasterError } from '../../../core/api/index.ts';
import { unclearedBytes } from '../../codecs/msgpack.ts';

// The layout of messages on a Dask stream, with all numbers unsigned, 64 bits, little-endian:
//
// total     bytes that follow, of this message
// count     number of frames
// length    of each frame
// frames
//
// From 2023.11 on a peer's `total` leaves out the large frames at the end, which simply follow. The
// lengths are right in both forms, so a reader uses them. Messages are written in the older form,
// which peers of all versions read.

const WORD = 8;
const HEAD_BYTES = 2 * WORD;

/** A frame of at least this size has separate memory and is never copied again. */
export const LARGE_FRAME_BYTES = 64 * 1024;
/** Smaller frames that follow each other share memory of this size. */
const SEGMENT_BYTES = 256 * 1024;
/** Memory that is set aside for a frame of which nothing has come. Dask cuts frames at this size. */
const TRUSTED_BYTES = 64 * 1024 * 1024;

/** The limits of a reader. */
export interface FrameLimits {
  /** Of all frames of a message together. */
  readonly messageBytesMax: number;
  readonly framesMax: number;
  /** Values in a message, as `IncomingLimits.valuesMax` counts them. */
  readonly valuesMax: number;
}

/** For registered peers, and those that this side has called. A graph names its tasks by three values each, or more. */
export const FRAME_LIMITS: FrameLimits = {
  messageBytesMax: 2 ** 36,
  framesMax: 2 ** 22,
  valuesMax: 16_000_000,
};

/** For callers that have said no more than that they speak the protocol. */
export const CALLER_LIMITS: FrameLimits = {
  messageBytesMax: 16 * 1024 * 1024,
  framesMax: 2 ** 14,
  valuesMax: 500_000,
};

/** Largest frame: what Node can hold in one piece. */
const FRAME_BYTES_MAX = 2 ** 32 - 1;

/** Bytes in front of the frames. */
export function preludeBytes(count: number): number {
  return HEAD_BYTES + count * WORD;
}

/** Writes the prelude of a message. @param at - where in `target` */
export function writePrelude(target: Uint8Array, at: number, lengths: readonly number[]): void {
  const view = new DataView(target.buffer, target.byteOffset, target.byteLength);
  let total = WORD + lengths.length * WORD;
  let place = at + HEAD_BYTES;
  for (const length of lengths) {
    setNatural(view, place, length);
    total += length;
    place += WORD;
  }
  setNatural(view, at, total);
  setNatural(view, at + WORD, lengths.length);
}

/** A message ready for a stream: small frames in one piece, large ones as they are. */
export function packFrames(frames: readonly Uint8Array[]): Uint8Array[] {
  const prelude = new Uint8Array(preludeBytes(frames.length));
  writePrelude(
    prelude,
    0,
    frames.map(({ length }) => length),
  );
  return joinSmall([prelude, ...frames]);
}

function joinSmall(parts: readonly Uint8Array[]): Uint8Array[] {
  const joined: Uint8Array[] = [];
  let small: Uint8Array[] = [];
  const endRun = (): void => {
    if (small.length > 0)
      joined.push(small.length === 1 ? (small[0] as Uint8Array) : Buffer.concat(small));
    small = [];
  };
  for (const part of parts) {
    if (part.length === 0) continue;
    if (part.length < LARGE_FRAME_BYTES) small.push(part);
    else {
      endRun();
      joined.push(part);
    }
  }
  endRun();
  return joined;
}

/** Finds the messages in a stream of bytes that comes in chunks of any size. */
export class FrameReader {
  private readonly prelude = new Growing(preludeBytes(1));
  private lengths: number[] = [];
  private frames: Uint8Array[] = [];
  private segment: Growing | undefined;
  private segmentEnd = 0;
  private endedMessages = 0;

  /**
   * @param onMessage - gets the frames of each message. They may lie in the chunk that was pushed, so
   *   the memory of a chunk must not be used again.
   * @param limitsNow - are asked for with each message
   */
  constructor(
    private readonly onMessage: (frames: readonly Uint8Array[]) => void,
    private readonly limitsNow: () => FrameLimits = () => FRAME_LIMITS,
  ) {}

  /**
   * @throws YardmasterError `ERR_FRAME`; then the stream is of no more use
   */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.lengths.length > 0) at = this.readBody(chunk, at);
      else at = this.prelude.length === 0 ? this.readWhole(chunk, at) : this.readPrelude(chunk, at);
    }
  }

  /**
   * Memory for the next bytes of the stream: the rest of a large frame. Undefined when they are to be
   * pushed. What was written into it is announced by {@link filled}, before anything is pushed.
   */
  space(): Uint8Array | undefined {
    const { segment } = this;
    if (segment === undefined || segment.wanted - segment.length < LARGE_FRAME_BYTES) {
      return undefined;
    }
    return segment.space();
  }

  /** So many bytes lie in the memory that {@link space} returned. */
  filled(nbytes: number): void {
    const { segment } = this;
    if (segment === undefined) return;
    segment.length += nbytes;
    if (segment.length === segment.wanted) this.endSegment(this.frames.length, this.segmentEnd);
  }

  /** Number of the message of which a part has come; undefined between two messages. */
  get messageUnderWay(): number | undefined {
    return this.lengths.length > 0 || this.prelude.length > 0 ? this.endedMessages : undefined;
  }

  /** The reason why a stream that ends here was cut; undefined when no message is incomplete. */
  endError(): YardmasterError | undefined {
    if (this.messageUnderWay === undefined) return undefined;
    return new YardmasterError(
      'ERR_FRAME',
      `the connection ended within a message, after ${this.frames.length} of ${this.lengths.length} frames; the process of the peer died, or the network failed`,
      { frames: this.frames.length, expected: this.lengths.length },
    );
  }

  /** The usual case: the message lies in the chunk, and so do its frames from now on. */
  private readWhole(chunk: Uint8Array, start: number): number {
    const left = chunk.length - start;
    if (left < HEAD_BYTES) return this.readPrelude(chunk, start);
    const view = new DataView(chunk.buffer, chunk.byteOffset + start, left);
    const total = getNatural(view, 0);
    const count = getNatural(view, WORD);
    this.checkHead(total, count);
    let at = preludeBytes(count);
    if (at > left) return this.readPrelude(chunk, start);
    const frames: Uint8Array[] = [];
    for (let index = 0; index < count; index++) {
      const length = getNatural(view, HEAD_BYTES + index * WORD);
      if (length > left - at) return this.readPrelude(chunk, start);
      frames.push(chunk.subarray(start + at, start + at + length));
      at += length;
    }
    this.checkTotal(total, at - WORD);
    this.endedMessages++;
    this.onMessage(frames);
    return start + at;
  }

  private readPrelude(chunk: Uint8Array, start: number): number {
    const { prelude } = this;
    let at = prelude.fill(chunk, start, HEAD_BYTES);
    if (prelude.length < HEAD_BYTES) return at;
    const count = getNatural(prelude.view, WORD);
    if (prelude.length === HEAD_BYTES) this.checkHead(getNatural(prelude.view, 0), count);
    const nbytes = preludeBytes(count);
    at = prelude.fill(chunk, at, nbytes);
    if (prelude.length === nbytes) this.endPrelude(count);
    return at;
  }

  private endPrelude(count: number): void {
    const { view } = this.prelude;
    const lengths: number[] = [];
    let sum = WORD + count * WORD;
    for (let index = 0; index < count; index++) {
      const length = getNatural(view, HEAD_BYTES + index * WORD);
      if (length > FRAME_BYTES_MAX) {
        throw tooLarge(`a frame of ${length} bytes`, `${FRAME_BYTES_MAX} bytes`);
      }
      lengths.push(length);
      sum += length;
    }
    const { messageBytesMax } = this.limitsNow();
    if (sum > messageBytesMax) {
      throw tooLarge(`a message of ${sum} bytes`, `${messageBytesMax} bytes`);
    }
    this.checkTotal(getNatural(view, 0), sum);
    this.prelude.clear();
    this.lengths = lengths;
    this.frames = [];
    if (count === 0 || lengths.every((length) => length === 0)) this.endSegment(0, count);
  }

  private readBody(chunk: Uint8Array, start: number): number {
    this.segment ??= this.startSegment();
    const { segment } = this;
    const at = segment.fill(chunk, start, segment.wanted);
    if (segment.length === segment.wanted) this.endSegment(this.frames.length, this.segmentEnd);
    return at;
  }

  /** A large frame, or some small ones. */
  private startSegment(): Growing {
    const { lengths } = this;
    let end = this.frames.length;
    let nbytes = 0;
    for (; end < lengths.length; end++) {
      const length = lengths[end] as number;
      if (nbytes > 0 && (length >= LARGE_FRAME_BYTES || nbytes + length > SEGMENT_BYTES)) break;
      nbytes += length;
      if (length >= LARGE_FRAME_BYTES) {
        end++;
        break;
      }
    }
    // Empty frames at the end belong to it too, as nothing else would end them.
    while (end < lengths.length && lengths[end] === 0) end++;
    this.segmentEnd = end;
    return new Growing(nbytes);
  }

  private endSegment(from: number, to: number): void {
    const bytes = this.segment?.bytes ?? EMPTY;
    let at = 0;
    for (let index = from; index < to; index++) {
      const length = this.lengths[index] as number;
      this.frames.push(bytes.subarray(at, at + length));
      at += length;
    }
    this.segment = undefined;
    if (this.frames.length < this.lengths.length) return;
    const { frames } = this;
    this.lengths = [];
    this.frames = [];
    this.endedMessages++;
    this.onMessage(frames);
  }

  private checkHead(total: number, count: number): void {
    const { framesMax, messageBytesMax } = this.limitsNow();
    if (count > framesMax) throw tooLarge(`a message of ${count} frames`, `${framesMax} frames`);
    if (total > messageBytesMax) {
      throw tooLarge(`a message of ${total} bytes`, `${messageBytesMax} bytes`);
    }
    if (count >= 1 && total >= WORD + count * WORD) return;
    throw new YardmasterError(
      'ERR_FRAME',
      `the peer announced a message of ${total} bytes with ${count} frames, which cannot be; it does not speak the protocol of Dask, or the stream is damaged`,
      { total, count },
    );
  }

  /** @param sum - of the prelude and all frames, without the first word */
  private checkTotal(total: number, sum: number): void {
    if (total <= sum) return;
    throw new YardmasterError(
      'ERR_FRAME',
      `the peer announced a message of ${total} bytes whose frames have ${sum}; it does not speak the protocol of Dask, or the stream is damaged`,
      { total, sum },
    );
  }
}

/** Memory that grows with the bytes that arrive; it never gets far ahead of them. */
class Growing {
  private memory: Uint8Array<ArrayBuffer>;
  length = 0;

  /** @param wanted - bytes in the end */
  constructor(readonly wanted: number) {
    this.memory = unclearedBytes(Math.min(wanted, TRUSTED_BYTES));
  }

  get bytes(): Uint8Array {
    return this.memory.subarray(0, this.length);
  }

  get view(): DataView {
    return new DataView(this.memory.buffer, this.memory.byteOffset, this.length);
  }

  /** @returns where in the chunk it stopped: at its end, or when `end` bytes are there */
  fill(chunk: Uint8Array, start: number, end: number): number {
    const nbytes = Math.min(end - this.length, chunk.length - start);
    if (nbytes <= 0) return start;
    this.reserve(this.length + nbytes, end);
    this.memory.set(chunk.subarray(start, start + nbytes), this.length);
    this.length += nbytes;
    return start + nbytes;
  }

  /** Memory for what follows; there is some as long as not all that is wanted has come. */
  space(): Uint8Array {
    this.reserve(this.length + 1, this.wanted);
    return this.memory.subarray(this.length);
  }

  clear(): void {
    if (this.memory.length > SEGMENT_BYTES) this.memory = unclearedBytes(this.wanted);
    this.length = 0;
  }

  private reserve(nbytes: number, end: number): void {
    if (nbytes <= this.memory.length) return;
    // When this many bytes have arrived, the rest is trusted: a frame of gigabytes is moved once.
    const trusted = this.length >= TRUSTED_BYTES ? end : Math.max(nbytes, 2 * this.memory.length);
    const larger = unclearedBytes(Math.min(Math.max(end, this.wanted), trusted));
    larger.set(this.memory.subarray(0, this.length));
    this.memory = larger;
  }
}

const EMPTY = new Uint8Array(0);

function setNatural(view: DataView, at: number, value: number): void {
  view.setUint32(at, value, true);
  view.setUint32(at + 4, value / 2 ** 32, true);
}

/** Above 2^53 it is not exact, which no limit allows anyway. */
function getNatural(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
}

function tooLarge(what: string, limit: string): YardmasterError {
  return new YardmasterError(
    'ERR_FRAME',
    `the peer announced ${what}; the limit is ${limit}. It does not speak the protocol of Dask, the stream is damaged, or it has to register first`,
  );
}
