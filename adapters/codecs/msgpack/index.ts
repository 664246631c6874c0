import { type WireMessage, YardmasterError } from '../../../core/api/index.ts';
import { Decoder, Unreadable } from './decoder.ts';
import { Encoder, type ForeignValues, TooLarge } from './encoder.ts';
import { FrameMemory } from './frame-memory.ts';
import { findRefusal, pathText } from './plain-data.ts';

export { type ForeignValues, HEADROOM_BYTES } from './encoder.ts';
export { findRefusal, isWellFormed, pathText } from './plain-data.ts';

/** Default limit of a frame, and so of a message, in bytes: 1 GiB. */
export const FRAME_BYTES_MAX = 2 ** 30;

/** The header of a msgpack array of up to 2^32 - 1 items. */
export const BATCH_HEADER_BYTES = 5;

/** Memory for encoding that is kept for the next message. A larger buffer is released. */
const KEPT_BYTES_MAX = 256 * 1024;

/**
 * Plain data to msgpack and back. What arrives equals what was sent, or sending is refused:
 * `undefined` fields are left out, `undefined` in an array becomes `null`, a `Buffer` arrives as
 * `Uint8Array`, and -0 as 0; nothing else changes.
 *
 * Holds reused memory, so each transport has its own. Not thread-safe, not re-entrant.
 */
export class MsgpackCodec {
  /** Of large frames, those that are sent and those that come. */
  readonly memory = new FrameMemory();
  private encoder: Encoder;
  private readonly decoder: Decoder;

  private readonly isSharing: boolean;
  private readonly foreign: ForeignValues | undefined;

  /**
   * @param frameBytesMax - limit of a batch of one message; default 1 GiB
   * @param options - `isSharing`: bytes that refer to shared memory are encoded as they are, because they stay in this
   *   process. Default: they contain a copy of it; `foreign`: values of another protocol, which are refused by default
   */
  constructor(
    readonly frameBytesMax = FRAME_BYTES_MAX,
    options: { readonly isSharing?: boolean; readonly foreign?: ForeignValues } = {},
  ) {
    this.isSharing = options.isSharing ?? false;
    this.foreign = options.foreign;
    this.decoder = new Decoder(options.foreign);
    this.encoder = this.makeEncoder();
  }

  /** Limit of one encoded message. */
  get messageBytesMax(): number {
    return this.frameBytesMax - BATCH_HEADER_BYTES;
  }

  /**
   * @returns memory that belongs to the caller
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` naming the path of what cannot travel
   */
  encode(value: unknown): Uint8Array {
    const shared = this.encodeShared(value);
    return this.keep(shared) ? shared : shared.slice();
  }

  /**
   * As `encode`, but the result is valid only until the next call, unless `keep` is called for it. Before it in its
   * buffer are `HEADROOM_BYTES` for what the caller wants to send first.
   */
  encodeShared(value: unknown): Uint8Array {
    const encoded = this.encoded(value);
    if (encoded !== undefined) return encoded;
    // Searches for the refused value and its path only now, so that successful encoding has no
    // overhead.
    const { path, reason } = findRefusal(value) ?? { path: [], reason: 'it is not plain data' };
    throw notSerialisable(path, reason);
  }

  private encoded(value: unknown): Uint8Array | undefined {
    try {
      return this.encoder.encode(value);
    } catch (cause) {
      if (cause instanceof TooLarge) {
        this.encoder = this.makeEncoder();
        throw this.tooLarge(sizeOf(value), value);
      }
      if (!(cause instanceof RangeError)) throw cause;
      this.encoder = this.makeEncoder(); // Releases the memory that it had grown to.
      throw new YardmasterError(
        'ERR_FRAME',
        `there is no memory to encode a message that needs more than Node can allocate at once; send it in parts (the limit of a frame is ${this.frameBytesMax} bytes)`,
        { frameBytesMax: this.frameBytesMax },
        { cause },
      );
    }
  }

  /**
   * Gives a large shared result to its caller for good, without copying it. False when it is so
   * small that the memory stays with the codec; then the caller copies.
   */
  keep(shared: Uint8Array): boolean {
    if (shared.buffer.byteLength <= KEPT_BYTES_MAX) return false;
    this.encoder = this.makeEncoder();
    return true;
  }

  /**
   * A message as it lies in a batch; shared as in `encodeShared`.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`; `ERR_FRAME` when it is larger than a frame may be
   */
  encodeMessage(message: WireMessage): Uint8Array {
    if (!isMessage(message)) {
      throw notSerialisable([], 'a message has to be an object with named fields');
    }
    const encoded = this.encodeShared(message);
    if (encoded.length > this.messageBytesMax) {
      this.keep(encoded);
      throw this.tooLarge(encoded.length, message);
    }
    return encoded;
  }

  /** It stops at about the limit of a frame, before memory is taken for more. */
  private makeEncoder(): Encoder {
    return new Encoder(
      this.frameBytesMax + KEPT_BYTES_MAX,
      this.memory,
      this.isSharing,
      this.foreign,
    );
  }

  private tooLarge(nbytes: number, value: unknown): YardmasterError {
    const { frameBytesMax } = this;
    const op = isMessage(value) ? { op: value['op'] } : {};
    return new YardmasterError(
      'ERR_FRAME',
      `a message of ${nbytes} bytes does not fit in a frame of ${frameBytesMax} bytes; send it in parts or raise frameBytesMax on both sides`,
      { nbytes, frameBytesMax, ...op },
    );
  }

  /** @throws YardmasterError `ERR_NOT_SERIALISABLE` when `encodeMessage` would throw it */
  check(message: WireMessage): void {
    if (!isMessage(message)) {
      throw notSerialisable([], 'a message has to be an object with named fields');
    }
    const refusal = findRefusal(message);
    if (refusal !== undefined) throw notSerialisable(refusal.path, refusal.reason);
  }

  /**
   * @param owned - the buffer belongs to these bytes and is not written to any more, so that a
   *   value which fills most of it may stay in it; otherwise each `Uint8Array` is a copy
   * @param valuesMax - values that it may have, see `IncomingLimits`
   * @throws YardmasterError `ERR_FRAME` when the bytes are not one value of plain data
   */
  decode(bytes: Uint8Array, owned = false, valuesMax = Infinity): unknown {
    try {
      return this.decoder.decode(bytes, owned, valuesMax);
    } catch (cause) {
      if (!(cause instanceof Unreadable)) throw cause;
      throw unreadable(cause.message, bytes, cause);
    }
  }

  /**
   * @param owned - see `decode`
   * @param valuesMax - see `decode`
   * @throws YardmasterError `ERR_FRAME` not readable, `ERR_PROTOCOL` not an array of objects
   */
  decodeBatch(bytes: Uint8Array, owned = false, valuesMax = Infinity): WireMessage[] {
    const batch = this.decode(bytes, owned, valuesMax);
    if (!Array.isArray(batch) || !batch.every(isMessage)) {
      throw new YardmasterError(
        'ERR_PROTOCOL',
        `the peer sent a frame of ${bytes.length} bytes that is not an array of messages`,
        { nbytes: bytes.length },
      );
    }
    return batch;
  }
}

function isMessage(value: unknown): value is WireMessage {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  );
}

function notSerialisable(path: readonly (string | number)[], reason: string): YardmasterError {
  const where = pathText(path);
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `the message cannot be sent: ${where === '' ? '' : `at ${where}: `}${reason}`,
    { path: where, reason },
  );
}

function unreadable(what: string, frame: Uint8Array, cause: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_FRAME',
    `a frame of ${frame.length} bytes ${what}`,
    { nbytes: frame.length },
    { cause },
  );
}

/** Bytes of the text and binary data in a value: about what it takes encoded. O(values). */
function sizeOf(value: unknown): number {
  let nbytes = 0;
  const stack: unknown[] = [value];
  const seen = new Set<object>();
  while (stack.length > 0) {
    const next = stack.pop();
    nbytes++;
    if (typeof next === 'string') nbytes += Buffer.byteLength(next);
    else if (next instanceof Uint8Array) nbytes += next.byteLength;
    else if (typeof next === 'object' && next !== null && !seen.has(next)) {
      seen.add(next);
      for (const [name, field] of Object.entries(next)) {
        if (!Array.isArray(next)) nbytes += 1 + name.length;
        stack.push(field);
      }
    }
  }
  return nbytes;
}
