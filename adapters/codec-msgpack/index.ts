import { DecodeError, Decoder, Encoder, type ExtensionCodecType } from '@msgpack/msgpack';

import { type WireMessage, YardmasterError } from '../../core/api/index.ts';
import { DEPTH_MAX, findRefusal, isUnsafeInteger, pathText } from './plain-data.ts';

/** Default limit of a frame, and so of a message, in bytes: 1 GiB. */
export const FRAME_BYTES_MAX = 2 ** 30;

/** The header of a msgpack array of up to 2^32 - 1 items. */
export const BATCH_HEADER_BYTES = 5;

/** Memory for encoding that is kept for the next message. A larger one is let go. */
const KEPT_BYTES_MAX = 256 * 1024;

/** Up to this size one decoder serves all frames. */
const SMALL_FRAME_BYTES = 64 * 1024;

/** Extensions of msgpack (timestamps, …) have no place on our wire. */
const NO_EXTENSIONS: ExtensionCodecType<undefined> = {
  tryToEncode: () => null,
  decode: (_data, type) => {
    throw new DecodeError(`extension type ${type} is not part of the protocol`);
  },
};

/**
 * Plain data to msgpack and back. What arrives equals what was sent, or sending is refused:
 * `undefined` fields are left out, `undefined` in an array becomes `null`, a `Buffer` arrives as
 * `Uint8Array`, and -0 as 0; nothing else changes.
 *
 * Holds reused memory, so each transport has its own. Not thread-safe, not re-entrant.
 */
export class MsgpackCodec {
  private encoder = newEncoder();
  private readonly smallDecoder = newDecoder(SMALL_FRAME_BYTES);

  /** @param frameBytesMax - limit of a batch of one message; default 1 GiB */
  constructor(readonly frameBytesMax = FRAME_BYTES_MAX) {}

  /**
   * @returns memory that belongs to the caller
   * @throws YardmasterError `ERR_NOT_SERIALISABLE` naming the path of what cannot travel
   */
  encode(value: unknown): Uint8Array {
    const shared = this.encodeShared(value);
    return this.keep(shared) ? shared : shared.slice();
  }

  /**
   * As `encode`, but the result is valid only until the next call, unless `keep` is called for it.
   */
  encodeShared(value: unknown): Uint8Array {
    const refusal = findRefusal(value);
    if (refusal !== undefined) throw notSerialisable(refusal.path, refusal.reason);
    try {
      return this.encoder.encodeSharedRef(value);
    } catch (cause) {
      this.encoder = newEncoder();
      throw notSerialisable([], cause instanceof Error ? cause.message : String(cause), cause);
    }
  }

  /**
   * Gives a large shared result to its caller for good, without copying it. False when it is so
   * small that the memory stays with the codec; then the caller copies.
   */
  keep(shared: Uint8Array): boolean {
    if (shared.buffer.byteLength <= KEPT_BYTES_MAX) return false;
    this.encoder = newEncoder();
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
    if (encoded.length + BATCH_HEADER_BYTES > this.frameBytesMax) {
      this.keep(encoded);
      throw new YardmasterError(
        'ERR_FRAME',
        `a message of ${encoded.length} bytes does not fit in a frame of ${this.frameBytesMax} bytes; send it in parts or raise frameBytesMax on both sides`,
        { nbytes: encoded.length, frameBytesMax: this.frameBytesMax, op: message['op'] },
      );
    }
    return encoded;
  }

  /**
   * @param owned - the whole buffer belongs to these bytes and nobody writes to it any more, so that
   *   a value which fills most of it may stay in it; otherwise each `Uint8Array` is a copy
   * @throws YardmasterError `ERR_FRAME` when the bytes are not one value of plain data
   */
  decode(bytes: Uint8Array, owned = false): unknown {
    // Plain views, because a Buffer would give Buffers.
    const plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    // No array can have more items than the frame has bytes, so a false header allocates little.
    const decoder =
      plain.length <= SMALL_FRAME_BYTES ? this.smallDecoder : newDecoder(plain.length);
    let value: unknown;
    try {
      value = decoder.decode(plain);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw unreadable(`is not msgpack: ${reason}`, plain, cause);
    }
    return settleValue(value, owned, 0, plain);
  }

  /**
   * @param owned - see `decode`
   * @throws YardmasterError `ERR_FRAME` not readable, `ERR_PROTOCOL` not an array of objects
   */
  decodeBatch(bytes: Uint8Array, owned = false): WireMessage[] {
    const batch = this.decode(bytes, owned);
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

function newEncoder(): Encoder {
  return new Encoder({
    extensionCodec: NO_EXTENSIONS,
    ignoreUndefined: true,
    maxDepth: DEPTH_MAX + 2,
    initialBufferSize: 4096,
  });
}

function newDecoder(itemsMax: number): Decoder {
  return new Decoder({
    extensionCodec: NO_EXTENSIONS,
    maxArrayLength: itemsMax,
    maxMapLength: itemsMax,
    mapKeyConverter: (key) => {
      if (typeof key === 'string') return key;
      throw new DecodeError(`the key of a map is a ${typeof key}, not a string`);
    },
  });
}

/** Checks what the decoder does not, and copies byte arrays out of memory that is not theirs. */
function settleValue(value: unknown, owned: boolean, depth: number, frame: Uint8Array): unknown {
  if (typeof value === 'number') {
    if (isUnsafeInteger(value)) throw unreadable(`has the integer ${value}, beyond ±2^53`, frame);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) {
    return owned && value.byteLength * 2 > value.buffer.byteLength ? value : value.slice();
  }
  if (depth > DEPTH_MAX) {
    throw unreadable(`has values nested deeper than ${DEPTH_MAX} levels`, frame);
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index];
      const settled = settleValue(item, owned, depth + 1, frame);
      if (settled !== item) value[index] = settled;
    }
    return value;
  }
  const fields = value as Record<string, unknown>;
  for (const name in fields) {
    const field = fields[name];
    const settled = settleValue(field, owned, depth + 1, frame);
    if (settled !== field) fields[name] = settled;
  }
  return value;
}

function isMessage(value: unknown): value is WireMessage {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  );
}

function notSerialisable(
  path: readonly (string | number)[],
  reason: string,
  cause?: unknown,
): YardmasterError {
  const where = pathText(path);
  return new YardmasterError(
    'ERR_NOT_SERIALISABLE',
    `the message cannot be sent: ${where === '' ? '' : `at ${where}: `}${reason}`,
    { path: where, reason },
    cause === undefined ? {} : { cause },
  );
}

function unreadable(what: string, frame: Uint8Array, cause?: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_FRAME',
    `a frame of ${frame.length} bytes ${what}`,
    { nbytes: frame.length },
    cause === undefined ? {} : { cause },
  );
}
