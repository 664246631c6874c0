import { type IncomingLimits, type WireMessage, YardmasterError } from '../../../core/api/index.ts';
import { BATCH_HEADER_BYTES, type MsgpackCodec } from '../../codecs/msgpack.ts';

// The layout of messages on a stream of bytes. Each side sends
//
// preamble   the line "yardmaster-tcp/1\n"
// frame      4 bytes: length of the payload, big-endian
// payload: a msgpack array of messages (maps with string keys)
// ...
// goodbye    a frame of length 0: nothing follows, the connection ends in good order
//
// A stream that ends without a goodbye was cut: its process died, or the network failed.

const LENGTH_BYTES = 4;
const HEADER_BYTES = LENGTH_BYTES + BATCH_HEADER_BYTES;

/** A frame with more than one message does not grow beyond this: its receiver handles it in one go. */
const BATCH_BYTES_MAX = 64 * 1024;

/** A message of at least this size has a separate frame, so that it is not copied. */
const LARGE_MESSAGE_BYTES = 64 * 1024;

/**
 * Memory that each connection keeps for its next batch; a larger buffer is passed on with its
 * frame.
 */
const KEPT_BYTES = 4096;

/** Memory that is set aside for a frame before any of it has come. */
const TRUSTED_BYTES = 64 * 1024 * 1024;

/** Ends a stream in good order. */
export const GOODBYE: Uint8Array = new Uint8Array(LENGTH_BYTES);

/** Packs messages into frames. */
export class FrameWriter {
  private batch = new Uint8Array(KEPT_BYTES);
  private batchBytes = HEADER_BYTES;
  private batchCount = 0;
  private frames: Uint8Array[] = [];
  private frameBytes = 0;

  constructor(private readonly codec: MsgpackCodec) {}

  /** Bytes that `take` would return. */
  get nbytes(): number {
    return this.frameBytes + (this.batchCount === 0 ? 0 : this.batchBytes);
  }

  /**
   * Encodes messages at once, so that later changes to them do not matter. All or none are added.
   * @throws YardmasterError `ERR_NOT_SERIALISABLE`, or `ERR_FRAME` when one is too large
   */
  add(messages: readonly WireMessage[]): void {
    const [first] = messages;
    if (first === undefined) return;
    if (messages.length === 1) {
      this.append(this.codec.encodeMessage(first));
      return;
    }
    for (const bytes of this.codec.encodeAll(messages)) this.append(bytes);
  }

  /** Frames that are ready to be sent. The memory is the caller's, who may give it to `codec.memory` in the end. */
  take(): Uint8Array[] {
    this.endBatch();
    const { frames } = this;
    this.frames = [];
    this.frameBytes = 0;
    return frames;
  }

  private append(encoded: Uint8Array): void {
    if (encoded.length >= LARGE_MESSAGE_BYTES) {
      this.endBatch();
      this.push(this.ownFrame(encoded));
      return;
    }
    const bytesMax = Math.min(BATCH_BYTES_MAX, this.codec.frameBytesMax + LENGTH_BYTES);
    if (this.batchBytes + encoded.length > bytesMax) this.endBatch();
    this.reserve(this.batchBytes + encoded.length);
    this.batch.set(encoded, this.batchBytes);
    this.batchBytes += encoded.length;
    this.batchCount++;
  }

  /** The frame of a large message, in one piece, for which a kept message has room before it. */
  private ownFrame(encoded: Uint8Array): Uint8Array {
    const nbytes = HEADER_BYTES + encoded.length;
    const isKept = this.codec.keep(encoded);
    const frame = isKept
      ? new Uint8Array(encoded.buffer, encoded.byteOffset - HEADER_BYTES, nbytes)
      : new Uint8Array(nbytes);
    if (!isKept) frame.set(encoded, HEADER_BYTES);
    writeHeader(frame, encoded.length, 1);
    return frame;
  }

  private reserve(nbytes: number): void {
    if (nbytes <= this.batch.length) return;
    const larger = new Uint8Array(Math.max(nbytes, 2 * this.batch.length));
    larger.set(this.batch.subarray(0, this.batchBytes));
    this.batch = larger;
  }

  private endBatch(): void {
    if (this.batchCount === 0) return;
    writeHeader(this.batch, this.batchBytes - HEADER_BYTES, this.batchCount);
    if (this.batch.length <= KEPT_BYTES) this.push(this.batch.slice(0, this.batchBytes));
    else {
      this.push(this.batch.subarray(0, this.batchBytes));
      this.batch = new Uint8Array(KEPT_BYTES);
    }
    this.batchBytes = HEADER_BYTES;
    this.batchCount = 0;
  }

  private push(chunk: Uint8Array): void {
    this.frames.push(chunk);
    this.frameBytes += chunk.length;
  }
}

/** The receiver of what a reader finds in a stream. */
export interface FrameSink {
  /** The peer speaks our protocol. */
  onPreamble(): void;
  onBatch(batch: readonly WireMessage[]): void;
  onGoodbye(): void;
}

/** Finds the frames in a stream of bytes that comes in chunks of any size. */
export class FrameReader {
  private stage: 'preamble' | 'length' | 'payload' | 'done' = 'preamble';
  private preamble: Uint8Array = new Uint8Array(0);
  private length = 0;
  private lengthBytes = 0;
  private payload: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  private payloadBytes = 0;
  private endedFrames = 0;
  private readonly ownLimits: IncomingLimits;
  private limits: IncomingLimits;

  /** @param valuesMax - values in one frame, see `IncomingLimits` */
  constructor(
    private readonly codec: MsgpackCodec,
    private readonly sink: FrameSink,
    valuesMax = Infinity,
  ) {
    this.ownLimits = { frameBytesMax: codec.frameBytesMax, valuesMax };
    this.limits = this.ownLimits;
  }

  /** From the next frame on; undefined: the limits of the transport. */
  limit(limits: IncomingLimits | undefined): void {
    this.limits = limits ?? this.ownLimits;
  }

  /** Number of the frame of which a part has come; undefined between two frames. */
  get frameUnderWay(): number | undefined {
    return this.stage === 'payload' || this.lengthBytes > 0 ? this.endedFrames : undefined;
  }

  /** The peer has shown that it speaks our protocol. */
  get isOpen(): boolean {
    return this.stage !== 'preamble';
  }

  /**
   * The chunk is not kept.
   * @throws YardmasterError `ERR_PROTOCOL`, `ERR_FRAME`; then the stream is of no more use
   */
  push(chunk: Uint8Array): void {
    let offset = this.stage === 'preamble' ? this.readPreamble(chunk) : 0;
    while (offset < chunk.length) {
      switch (this.stage) {
        case 'length':
          offset = this.readLength(chunk, offset);
          break;
        case 'payload':
          offset = this.readPayload(chunk, offset);
          break;
        case 'preamble':
          return;
        case 'done':
          throw new YardmasterError('ERR_PROTOCOL', 'the peer sent more after its goodbye');
      }
    }
  }

  /** The reason why a stream that ends here is not in good order; undefined when it is. */
  endError(): YardmasterError | undefined {
    switch (this.stage) {
      case 'done':
        return undefined;
      case 'preamble':
        return this.preamble.length === 0
          ? new YardmasterError('ERR_CLOSED', 'the peer left without a word')
          : new YardmasterError(
              'ERR_PROTOCOL',
              `the peer left after ${this.preamble.length} bytes of the preamble; it does not speak the protocol of Yardmaster, or it died`,
            );
      case 'length':
        if (this.lengthBytes > 0) return truncated(this.lengthBytes, LENGTH_BYTES, 'header');
        return new YardmasterError(
          'ERR_CLOSED',
          'the peer went away without a goodbye: its process ended, or the network failed',
        );
      case 'payload':
        return truncated(this.payloadBytes, this.length, 'frame');
    }
  }

  private readPreamble(chunk: Uint8Array): number {
    const before = this.preamble.length;
    const received = new Uint8Array(before + chunk.length);
    received.set(this.preamble);
    received.set(chunk, before);
    const nbytes = checkPreamble(received);
    if (nbytes === undefined) {
      this.preamble = received;
      return chunk.length;
    }
    this.preamble = new Uint8Array(0);
    this.stage = 'length';
    this.sink.onPreamble();
    return nbytes - before;
  }

  private readLength(chunk: Uint8Array, start: number): number {
    let offset = start;
    while (offset < chunk.length && this.lengthBytes < LENGTH_BYTES) {
      this.length = this.length * 256 + (chunk[offset++] ?? 0);
      this.lengthBytes++;
    }
    if (this.lengthBytes < LENGTH_BYTES) return offset;
    const { frameBytesMax } = this.limits;
    if (this.length > frameBytesMax) {
      const isOwn = this.limits === this.ownLimits;
      throw new YardmasterError(
        'ERR_FRAME',
        `the peer announced a frame of ${this.length} bytes; the limit is ${frameBytesMax} (${isOwn ? 'frameBytesMax' : 'of a peer that looks only, or has not registered'})`,
        { nbytes: this.length, frameBytesMax },
      );
    }
    this.stage = this.length === 0 ? 'done' : 'payload';
    if (this.length === 0) this.sink.onGoodbye();
    return offset;
  }

  private readPayload(chunk: Uint8Array, offset: number): number {
    const end = offset + this.length - this.payloadBytes;
    if (this.payloadBytes === 0 && end <= chunk.length) {
      this.endFrame(chunk.subarray(offset, end), false);
      return end;
    }
    const part = chunk.subarray(offset, end);
    this.reserve(this.payloadBytes + part.length);
    this.payload.set(part, this.payloadBytes);
    this.payloadBytes += part.length;
    if (this.payloadBytes === this.length) {
      const { payload } = this;
      this.payload = new Uint8Array(0);
      this.endFrame(payload, true);
    }
    return offset + part.length;
  }

  /** Grows with what has come, so that a false header costs little. */
  private reserve(nbytes: number): void {
    if (nbytes <= this.payload.length) return;
    const size = Math.min(this.length, Math.max(TRUSTED_BYTES, 2 * nbytes));
    const larger = this.codec.memory.take(size);
    larger.set(this.payload.subarray(0, this.payloadBytes));
    this.payload = larger;
  }

  private endFrame(bytes: Uint8Array, owned: boolean): void {
    this.length = 0;
    this.lengthBytes = 0;
    this.payloadBytes = 0;
    this.stage = 'length';
    this.endedFrames++;
    const batch = this.codec.decodeBatch(bytes, owned, this.limits.valuesMax);
    if (batch.length > 0) this.sink.onBatch(batch);
  }
}

function writeHeader(target: Uint8Array, messageBytes: number, count: number): void {
  const view = new DataView(target.buffer, target.byteOffset, HEADER_BYTES);
  view.setUint32(0, messageBytes + BATCH_HEADER_BYTES);
  view.setUint8(LENGTH_BYTES, 0xdd); // A msgpack array with a count of 32 bits.
  view.setUint32(LENGTH_BYTES + 1, count);
}

function truncated(nbytes: number, expected: number, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_FRAME',
    `the connection ended within a ${what}: ${nbytes} of ${expected} bytes came; the process of the peer died, or the network failed`,
    { nbytes, expected },
  );
}

/** Version of the framing: goes up when peers of before could not read it. */
const VERSION = '1';
const NAME = 'yardmaster-tcp/';

/** The first bytes on a connection, from both sides: a line of ASCII. */
export const PREAMBLE: Uint8Array = new TextEncoder().encode(`${NAME}${VERSION}\n`);

/** Longest line that is read to find out which version a peer speaks. */
const PREAMBLE_BYTES_MAX = NAME.length + 16;

/** First bytes by which other protocols are known. */
const OTHER_PROTOCOLS: readonly { readonly name: string; readonly starts: readonly string[] }[] = [
  {
    name: 'HTTP',
    starts: [
      ...['GET ', 'POST ', 'HEAD ', 'PUT ', 'DELETE ', 'OPTIONS ', 'PATCH ', 'CONNECT ', 'TRACE '],
      ...['HTTP/', 'PRI * HTTP/2'],
    ],
  },
  { name: 'TLS', starts: ['\x16\x03', '\x15\x03'] },
  { name: 'SSH', starts: ['SSH-'] },
  { name: 'Redis', starts: ['*1\r\n', '*2\r\n', '-ERR ', '+OK\r\n', '+PONG'] },
  { name: 'the PROXY protocol', starts: ['PROXY ', '\r\n\r\n\0\r\nQUIT\n'] },
  { name: 'SMTP or FTP', starts: ['220 ', '220-', 'EHLO ', 'HELO '] },
];

/**
 * Checks the beginning of what a peer sends.
 *
 * @param received - all bytes so far
 * @returns the length of the preamble; undefined while there could be more of it to come
 * @throws YardmasterError `ERR_PROTOCOL` at the first byte that does not fit, naming what the peer
 *   seems to speak
 */
function checkPreamble(received: Uint8Array): number | undefined {
  const nbytes = Math.min(received.length, PREAMBLE.length);
  let same = 0;
  while (same < nbytes && received[same] === PREAMBLE[same]) same++;
  if (same === PREAMBLE.length) return same;
  if (same === received.length) return undefined;
  const text = latin1(received.subarray(0, PREAMBLE_BYTES_MAX));
  if (same < NAME.length) throw otherProtocol(text);
  checkVersion(text);
  return undefined;
}

/** In the first message of Dask there are one or two. */
const DASK_FRAMES_MAX = 16;

/** True when these first bytes of a peer look like Dask's protocol. */
export function seemsDask(firstBytes: Uint8Array): boolean {
  return isDask(latin1(firstBytes.subarray(0, PREAMBLE_BYTES_MAX)));
}

/**
 * A message of Dask begins with its length, less than 64 KiB for the first one, and the number of its
 * frames, which are few: little-endian integers of 64 bits.
 */
function isDask(text: string): boolean {
  const codes = Array.from(text, (character) => character.charCodeAt(0));
  const [count = 1] = codes.slice(8);
  if (codes.length < 8 || count < 1 || count > DASK_FRAMES_MAX) return false;
  return codes.every((code, at) => code === 0 || at < 2 || at === 8 || at >= 16);
}

/** The error that names the protocol which these first bytes look like. */
function otherProtocol(text: string): YardmasterError {
  const known = isDask(text)
    ? 'Dask'
    : OTHER_PROTOCOLS.find(({ starts }) =>
        starts.some((start) => text.startsWith(start) || (text !== '' && start.startsWith(text))),
      )?.name;
  const seen = JSON.stringify(text.slice(0, 16));
  return new YardmasterError(
    'ERR_PROTOCOL',
    known === undefined
      ? `the peer does not speak the protocol of Yardmaster: its first bytes are ${seen}; check host and port`
      : `the peer seems to speak ${known}, not the protocol of Yardmaster: its first bytes are ${seen}; ${adviceFor(known)}`,
    { firstBytes: text.slice(0, 16), seems: known },
  );
}

/** The text begins with our name, but the version is not ours. Waits for its end. */
function checkVersion(text: string): void {
  const end = text.indexOf('\n');
  if (end === -1 && text.length < PREAMBLE_BYTES_MAX) return;
  const version = text.slice(NAME.length, end === -1 ? undefined : end);
  throw new YardmasterError(
    'ERR_PROTOCOL',
    `the peer speaks version ${JSON.stringify(version)} of the protocol, this side version "${VERSION}"; run the same version of Yardmaster on both sides`,
    { version, expected: VERSION },
  );
}

function adviceFor(protocol: string): string {
  switch (protocol) {
    case 'HTTP':
      return 'there is no web page on this port';
    case 'TLS':
      return 'use tls:// on both sides, or tcp:// on both sides';
    case 'Dask':
      return 'use the address at which its process speaks the protocol of Yardmaster; peers of Dask themselves connect to the address that the plugin "dask" opens';
    default:
      return 'check host and port';
  }
}

function latin1(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}
