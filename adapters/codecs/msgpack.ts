import { CONTAINER_VALUES, type WireMessage, YardmasterError } from '../../core/api/index.ts';
import { withoutSharedMemory } from '../../core/util/bytes.ts';
import { isPlainObject } from '../../core/util/values.ts';

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

  /** The texts of earlier values, if later ones refer to them. */
  private readonly texts: SeriesTexts | undefined;

  /**
   * @param frameBytesMax - limit of a batch of one message; default 1 GiB
   * @param options - `isSharing`: bytes that refer to shared memory are encoded as they are, because they stay in this
   *   process. Default: they contain a copy of it; `foreign`: values of another protocol, which are refused by default;
   *   `isSeries`: values are read in the order in which they were written, so that a text which is repeated is written as
   *   its number. Such a codec serves one writer or one reader. Default: each value stands for itself
   */
  constructor(
    readonly frameBytesMax = FRAME_BYTES_MAX,
    private readonly options: {
      readonly isSharing?: boolean;
      readonly foreign?: ForeignValues;
      readonly isSeries?: boolean;
    } = {},
  ) {
    if (options.isSeries === true) this.texts = new SeriesTexts();
    this.decoder = new Decoder(options.foreign, this.texts);
    this.encoder = this.makeEncoder();
  }

  /** Forgets the texts of earlier values: a series begins with the next one. */
  restart(): void {
    this.texts?.clear();
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
      this.options.isSharing,
      this.options.foreign,
      this.texts,
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

  /**
   * Messages as they lie in a batch, all before the first is sent: one that cannot travel holds back all.
   * @returns memory that belongs to the caller
   * @throws YardmasterError as {@link encodeMessage}
   */
  encodeAll(messages: readonly WireMessage[]): Uint8Array[] {
    return messages.map((message) => {
      const shared = this.encodeMessage(message);
      return this.keep(shared) ? shared : shared.slice();
    });
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

/** Longer texts are seldom repeated. */
const CACHED_TEXT_MAX = 100;

/**
 * Reads values of msgpack. Our own, because it checks, and finds repeated texts (names of fields,
 * addresses, modules) again instead of making them anew, all in the pass that reads. What a map, a
 * byte array or a number becomes is for the subclass to say.
 *
 * Not re-entrant.
 */
export abstract class MsgpackReader {
  protected bytes: Buffer = EMPTY;
  protected view: DataView = EMPTY_VIEW;
  protected at = 0;
  /** Values that may still be read, counted as {@link IncomingLimits.valuesMax} says. */
  private valuesLeft = Infinity;
  /** Texts that came lately, each in the place that its bytes lead to. */
  private readonly texts: string[];

  /**
   * @param depthMax - levels of nesting that are read
   * @param cachedTexts - texts that are remembered; a power of two
   */
  constructor(
    private readonly depthMax: number,
    cachedTexts: number,
  ) {
    this.texts = new Array<string>(cachedTexts).fill('');
  }

  /** The one value that the bytes are. @param valuesMax - as {@link IncomingLimits.valuesMax} */
  protected readAll({ buffer, byteOffset, byteLength }: Uint8Array, valuesMax: number): unknown {
    this.valuesLeft = valuesMax;
    this.bytes = Buffer.from(buffer, byteOffset, byteLength);
    this.view = new DataView(buffer, byteOffset, byteLength);
    this.at = 0;
    try {
      const value = this.read(0);
      if (this.at === byteLength) return value;
      throw this.unreadable(`it has ${byteLength - this.at} bytes after its value`);
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      throw this.unreadable('it ends within a value', thrown);
    } finally {
      this.bytes = EMPTY; // Large frames shall not live on here.
      this.view = EMPTY_VIEW;
    }
  }

  protected abstract readMap(count: number, depth: number): unknown;
  protected abstract readBytes(length: number): unknown;
  /** A value of a type that JSON does not have. */
  protected abstract readExtension(code: number): unknown;
  protected abstract float(value: number): unknown;
  /**
   * An integer of 64 bits, the last ones that were read.
   * @param value - the same, if a number can hold it
   */
  protected abstract wideInteger(value: number, isSigned: boolean): unknown;
  protected abstract text(bytes: Buffer, at: number, length: number): string;
  /** @param why - what is wrong with the bytes: "it ends within a value" */
  protected abstract unreadable(why: string, cause?: unknown): Error;

  protected read(depth: number): unknown {
    const code = this.view.getUint8(this.at++);
    if (code < 0x80) return code;
    if (code >= 0xe0) return code - 0x100;
    if (code < 0x90) return this.readMap(code & 0x0f, depth);
    if (code < 0xa0) return this.readArray(code & 0x0f, depth);
    if (code < 0xc0) return this.readText(code & 0x1f);
    switch (code) {
      case 0xc0:
        return null;
      case 0xc2:
        return false;
      case 0xc3:
        return true;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.readBytes(this.length(code - 0xc4));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.readText(this.length(code - 0xd9));
      case 0xdc:
      case 0xdd:
        return this.readArray(this.length(code - 0xdb), depth);
      case 0xde:
      case 0xdf:
        return this.readMap(this.length(code - 0xdd), depth);
      default:
        return this.readNumber(code);
    }
  }

  /** The text that follows; undefined when something else does. */
  protected readName(): string | undefined {
    const code = this.view.getUint8(this.at);
    if (code < 0xa0 || (code > 0xbf && code < 0xd9) || code > 0xdb) return undefined;
    this.at++;
    return this.readText(code < 0xc0 ? code & 0x1f : this.length(code - 0xd9));
  }

  /** The budget of values bounds memory and time where the values are small. */
  protected spend(values: number): void {
    this.valuesLeft -= values;
    if (this.valuesLeft < 0) {
      throw this.unreadable('it has more values than this side accepts at once');
    }
  }

  /** No container has more items than its frame has bytes, so a false header allocates nothing. */
  protected checkCount(count: number, depth: number): void {
    this.spend(count + CONTAINER_VALUES);
    if (depth > this.depthMax) {
      throw this.unreadable(`it is nested deeper than ${this.depthMax} levels`);
    }
    if (count > this.bytes.length - this.at) throw this.unreadable('it ends within a value');
  }

  protected take(length: number): Uint8Array {
    const { bytes, at } = this;
    this.skip(length);
    return new Uint8Array(bytes.buffer, bytes.byteOffset + at, length);
  }

  /** @param size - 0, 1, 2 for 8, 16, 32 bits */
  protected length(size: number): number {
    const { view, at } = this;
    if (size === 0) {
      this.at = at + 1;
      return view.getUint8(at);
    }
    if (size === 1) {
      this.at = at + 2;
      return view.getUint16(at);
    }
    this.at = at + 4;
    return view.getUint32(at);
  }

  private readNumber(code: number): unknown {
    const { view, at } = this;
    switch (code) {
      case 0xca:
        this.at += 4;
        return this.float(view.getFloat32(at));
      case 0xcb:
        this.at += 8;
        return this.float(view.getFloat64(at));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.length(code - 0xcc);
      case 0xcf:
        this.at += 8;
        return this.wideInteger(view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4), false);
      case 0xd0:
        this.at += 1;
        return view.getInt8(at);
      case 0xd1:
        this.at += 2;
        return view.getInt16(at);
      case 0xd2:
        this.at += 4;
        return view.getInt32(at);
      case 0xd3:
        this.at += 8;
        return this.wideInteger(view.getInt32(at) * 2 ** 32 + view.getUint32(at + 4), true);
      default:
        return this.readExtension(code);
    }
  }

  private readArray(length: number, depth: number): unknown[] {
    this.checkCount(length, depth);
    const value: unknown[] = [];
    for (let index = 0; index < length; index++) value.push(this.read(depth + 1));
    return value;
  }

  protected readText(length: number): string {
    const { bytes, at } = this;
    this.skip(length);
    if (length === 0) return '';
    if (length > CACHED_TEXT_MAX) return this.text(bytes, at, length);
    const { texts } = this;
    const place = hashOf(bytes, at, length) & (texts.length - 1);
    const known = texts[place] as string;
    if (isSame(known, bytes, at, length)) return known;
    const text = this.text(bytes, at, length);
    texts[place] = text;
    return text;
  }

  private skip(length: number): void {
    this.at += length;
    if (this.at > this.bytes.length) throw this.unreadable('it ends within a value');
  }
}

const EMPTY = Buffer.alloc(0);
const EMPTY_VIEW = new DataView(new ArrayBuffer(0));

/** Of some of the bytes: keys that are numbered differ in the last ones. */
function hashOf(bytes: Uint8Array, at: number, length: number): number {
  const end = at + length;
  let hash = length;
  hash = hash * 31 + (bytes[at] as number);
  hash = hash * 31 + (bytes[at + (length >> 1)] as number);
  hash = hash * 31 + (bytes[end - (length > 2 ? 3 : 1)] as number);
  hash = hash * 31 + (bytes[end - (length > 1 ? 2 : 1)] as number);
  return hash * 31 + (bytes[end - 1] as number);
}

/** Only ever true for ASCII: other texts have fewer characters than bytes. */
function isSame(text: string, bytes: Uint8Array, at: number, length: number): boolean {
  if (text.length !== length) return false;
  for (let index = length - 1; index >= 0; index--) {
    if (text.charCodeAt(index) !== bytes[at + index]) return false;
  }
  return true;
}

/** The error for bytes that are not one value of plain data. */
class Unreadable extends Error {}

const CACHED_TEXTS = 512;

/** Reads plain data, and copies byte arrays out of the frame. */
class Decoder extends MsgpackReader {
  private isOwned = false;

  /**
   * @param foreign - reads values of another protocol. Default: they are refused
   * @param series - those of earlier values. Default: no value refers to another one
   */
  constructor(
    private readonly foreign?: ForeignValues,
    private readonly series?: SeriesTexts,
  ) {
    super(DEPTH_MAX, CACHED_TEXTS);
  }

  /**
   * @param isOwned - a byte array that fills most of the buffer may stay in it
   * @param valuesMax - as {@link IncomingLimits.valuesMax}
   * @throws Unreadable
   */
  decode(bytes: Uint8Array, isOwned: boolean, valuesMax = Infinity): unknown {
    this.isOwned = isOwned;
    return this.readAll(bytes, valuesMax);
  }

  protected readMap(count: number, depth: number): Record<string, unknown> {
    this.checkCount(2 * count, depth);
    const value: Record<string, unknown> = {};
    for (let index = 0; index < count; index++) {
      const name = this.readName();
      if (name === undefined) throw this.unreadable('a map has a key that is not a string');
      if (name === '__proto__') throw this.unreadable('it has a field of the name __proto__');
      value[name] = this.read(depth + 1);
    }
    return value;
  }

  protected override readName(): string | undefined {
    const { series } = this;
    if (series === undefined) return super.readName();
    const name = this.read(0);
    if (typeof name === 'number') return series.names[name];
    if (typeof name !== 'string') return undefined;
    series.nameNumber(name);
    return name;
  }

  protected override readText(length: number): string {
    const text = super.readText(length);
    this.series?.add(text);
    return text;
  }

  protected readBytes(length: number): Uint8Array {
    const part = this.take(length);
    return this.isOwned && 2 * length > part.buffer.byteLength ? part : part.slice();
  }

  protected readExtension(code: number): unknown {
    if (this.foreign !== undefined && code === 0xc9) {
      const length = this.length(2);
      if (this.view.getUint8(this.at++) === FOREIGN_TYPE) {
        return this.foreign.read(this.take(length).slice());
      }
    }
    if (this.series !== undefined && code === 0xd5 && this.length(0) === TEXT_TYPE) {
      const text = this.series.recent[this.length(1)];
      if (text !== undefined) return text;
    }
    throw this.unreadable(`the type 0x${code.toString(16)} is not part of it`);
  }

  protected float(value: number): number {
    if (isUnsafeInteger(value)) throw this.unreadable(`it has the integer ${value}, beyond ±2^53`);
    return value;
  }

  protected wideInteger(value: number): number {
    return this.float(value);
  }

  protected text(bytes: Buffer, at: number, length: number): string {
    return bytes.toString('utf8', at, at + length);
  }

  protected unreadable(why: string): Unreadable {
    return new Unreadable(`is not msgpack of this protocol: ${why}`);
  }
}

/** Up to this length a loop over the characters is faster than a call into Node. */
const SHORT_TEXT = 40;
const INITIAL_BYTES = 4096;
/** Room for the header of a frame, so that it is sent with what it announces. */
const HEADROOM_BYTES = 16;
/** Lengths that fit into one byte. */
const LENGTH_8_MAX = 0xff;
/** Bytes that a code unit may take. */
const UTF8_MAX = 3;

/** A value needs more bytes than there may be. */
export class TooLarge extends Error {}

/** Writes values of msgpack one after the other into memory that it keeps and lets grow. */
export class MsgpackWriter {
  protected bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  protected view = viewOf(this.bytes);
  protected at = 0;

  /**
   * @param bytesMax - beyond this it throws {@link TooLarge}, before memory is taken for it
   * @param growth - the memory that it grows into
   */
  constructor(
    private readonly bytesMax = Infinity,
    private readonly growth = new FrameMemory(),
  ) {}

  /** Bytes as they are. */
  protected writeRaw(value: Uint8Array): void {
    this.reserve(value.length);
    this.bytes.set(value, this.at);
    this.at += value.length;
  }

  /** @param value - a safe integer */
  protected writeInteger(value: number): void {
    this.reserve(9);
    if (value >= 0) this.writeNatural(value);
    else this.writeNegative(value);
  }

  protected writeFloat(value: number): void {
    this.reserve(9);
    this.bytes[this.at] = 0xcb;
    this.view.setFloat64(this.at + 1, value);
    this.at += 9;
  }

  private writeNatural(value: number): void {
    const { bytes, view, at } = this;
    if (value < 0x80) {
      bytes[at] = value;
      this.at = at + 1;
    } else if (value < 0x100) {
      bytes[at] = 0xcc;
      bytes[at + 1] = value;
      this.at = at + 2;
    } else if (value < 0x10000) {
      bytes[at] = 0xcd;
      view.setUint16(at + 1, value);
      this.at = at + 3;
    } else if (value < 2 ** 32) {
      bytes[at] = 0xce;
      view.setUint32(at + 1, value);
      this.at = at + 5;
    } else {
      bytes[at] = 0xcf;
      view.setUint32(at + 1, value / 2 ** 32);
      view.setUint32(at + 5, value);
      this.at = at + 9;
    }
  }

  private writeNegative(value: number): void {
    const { bytes, view, at } = this;
    if (value >= -0x20) {
      bytes[at] = value;
      this.at = at + 1;
    } else if (value >= -0x80) {
      bytes[at] = 0xd0;
      view.setInt8(at + 1, value);
      this.at = at + 2;
    } else if (value >= -0x8000) {
      bytes[at] = 0xd1;
      view.setInt16(at + 1, value);
      this.at = at + 3;
    } else if (value >= -(2 ** 31)) {
      bytes[at] = 0xd2;
      view.setInt32(at + 1, value);
      this.at = at + 5;
    } else {
      bytes[at] = 0xd3;
      view.setInt32(at + 1, Math.floor(value / 2 ** 32));
      view.setUint32(at + 5, value);
      this.at = at + 9;
    }
  }

  /** False: it is not well-formed, and cannot travel. */
  protected writeText(text: string): boolean {
    const { length } = text;
    const isWritten = length > SHORT_TEXT ? this.writeAscii(text) : this.writeShortText(text);
    if (!isWritten) {
      const nbytes = Buffer.byteLength(text);
      if (nbytes !== length && !isWellFormed(text)) return false;
      this.writeTextHeader(nbytes);
      this.reserve(nbytes);
      this.at += this.bytes.write(text, this.at);
    }
    return true;
  }

  /** As `writeShortText`, with one call into Node; false also when it is too long for it. */
  private writeAscii(text: string): boolean {
    const { length } = text;
    if (length > LENGTH_8_MAX) return false;
    this.reserve(2 + UTF8_MAX * length);
    const { bytes, at } = this;
    if (bytes.write(text, at + 2) !== length) return false;
    bytes[at] = 0xd9;
    bytes[at + 1] = length;
    this.at = at + 2 + length;
    return true;
  }

  /** False, and nothing is written: it has characters beyond ASCII. */
  private writeShortText(text: string): boolean {
    const { length } = text;
    this.reserve(length + 2);
    const { bytes } = this;
    let at = this.at;
    if (length >= 32) bytes[at++] = 0xd9;
    bytes[at++] = length < 32 ? 0xa0 | length : length;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[at++] = code;
    }
    this.at = at;
    return true;
  }

  private writeTextHeader(nbytes: number): void {
    if (nbytes >= 32 && nbytes < 0x100) this.writeLength8(0xd9, nbytes);
    else this.writeHeader(nbytes, 0xa0, 0xda, 32);
  }

  protected writeBytes(value: Uint8Array): void {
    const { length } = value;
    if (length < 0x100) this.writeLength8(0xc4, length);
    else this.writeHeader(length, undefined, 0xc5);
    this.writeRaw(value);
  }

  protected writeLength8(code: number, length: number): void {
    this.reserve(2);
    this.bytes[this.at++] = code;
    this.bytes[this.at++] = length;
  }

  /**
   * @param short - code of the form whose length lies in the code itself, below `shortMax`
   * @param long - code of the form with 16 bits of length; the next one has 32
   */
  protected writeHeader(
    length: number,
    short: number | undefined,
    long: number,
    shortMax = 16,
  ): void {
    this.reserve(5);
    const { bytes, view, at } = this;
    if (short !== undefined && length < shortMax) {
      bytes[at] = short | length;
      this.at = at + 1;
    } else if (length < 0x10000) {
      bytes[at] = long;
      view.setUint16(at + 1, length);
      this.at = at + 3;
    } else {
      if (length >= 2 ** 32) throw new TooLarge();
      bytes[at] = long + 1;
      view.setUint32(at + 1, length);
      this.at = at + 5;
    }
  }

  protected writeByte(byte: number): void {
    this.reserve(1);
    this.bytes[this.at++] = byte;
  }

  protected reserve(nbytes: number): void {
    const needed = this.at + nbytes;
    if (needed <= this.bytes.length) return;
    if (needed > this.bytesMax) throw new TooLarge();
    const { buffer, byteOffset, length } = this.growth.take(
      Math.max(needed, 2 * this.bytes.length),
    );
    const larger = Buffer.from(buffer, byteOffset, length);
    larger.set(this.bytes.subarray(0, this.at));
    this.setMemory(larger);
  }

  /** Releases memory that has grown beyond this. Nothing is written yet. */
  protected shrink(keptBytes: number): void {
    if (this.bytes.length > keptBytes) this.setMemory(Buffer.allocUnsafeSlow(INITIAL_BYTES));
  }

  private setMemory(memory: Buffer<ArrayBuffer>): void {
    this.bytes = memory;
    this.view = viewOf(memory);
  }
}

/**
 * Writes plain data as msgpack, in one pass that also notices what cannot travel. Our own, because
 * checking and encoding are one visit of each value here: half the CPU time of a library between two
 * passes of checks, for a report of a finished task, and the decoder likewise.
 */
class Encoder extends MsgpackWriter {
  /**
   * @param bytesMax - see {@link MsgpackWriter}
   * @param growth - see {@link MsgpackWriter}
   * @param isSharing - whether bytes stay in this process, so that they may refer to shared memory. Default false
   * @param foreign - writes values that are not plain data. Default: they cannot travel
   * @param series - those of earlier values. Default: no value refers to another one
   */
  constructor(
    bytesMax?: number,
    growth?: FrameMemory,
    private readonly isSharing = false,
    private readonly foreign?: ForeignValues,
    private readonly series?: SeriesTexts,
  ) {
    super(bytesMax, growth);
  }

  /**
   * @returns a view of shared memory, with {@link HEADROOM_BYTES} before it that are free; undefined when something in
   *   the value cannot travel
   */
  encode(value: unknown): Uint8Array | undefined {
    this.at = HEADROOM_BYTES;
    if (!this.write(value, 0)) return undefined;
    const { buffer, byteOffset } = this.bytes;
    return new Uint8Array(buffer, byteOffset + HEADROOM_BYTES, this.at - HEADROOM_BYTES);
  }

  /** False: the value cannot travel. */
  private write(value: unknown, depth: number): boolean {
    switch (typeof value) {
      case 'string':
        return this.series === undefined
          ? this.writeText(value)
          : this.writeSeriesText(value, this.series);
      case 'number':
        return this.writeNumber(value);
      case 'boolean':
        this.writeByte(value ? 0xc3 : 0xc2);
        return true;
      case 'undefined':
        this.writeByte(0xc0);
        return true;
      case 'object':
        if (value === null) {
          this.writeByte(0xc0);
          return true;
        }
        if (value instanceof Uint8Array) {
          this.writeBytes(this.isSharing ? value : withoutSharedMemory(value));
          return true;
        }
        if (depth >= DEPTH_MAX) return false;
        if (Array.isArray(value)) return this.writeArray(value, depth);
        return isPlainObject(value) ? this.writeFields(value, depth) : this.writeForeign(value);
      case 'bigint':
        return this.writeForeign(value);
      case 'function':
      case 'symbol':
        return false;
    }
  }

  private writeArray(value: readonly unknown[], depth: number): boolean {
    const { length } = value;
    this.writeHeader(length, 0x90, 0xdc);
    for (let index = 0; index < length; index++) {
      if (!this.write(value[index], depth + 1)) return false;
    }
    return true;
  }

  private writeFields(value: WritableFields, depth: number): boolean {
    let count = 0;
    for (const name in value) if (value[name] !== undefined) count++;
    this.writeHeader(count, 0x80, 0xde);
    for (const name in value) {
      if (name === '__proto__') return false;
      const field = value[name];
      if (field === undefined) continue;
      if (!this.writeName(name) || !this.write(field, depth + 1)) return false;
    }
    return true;
  }

  private writeName(name: string): boolean {
    const { series } = this;
    if (series === undefined) return this.writeText(name);
    const number = series.nameNumber(name);
    if (number === undefined) return this.writeSeriesText(name, series);
    this.writeByte(number);
    return true;
  }

  private writeSeriesText(text: string, series: SeriesTexts): boolean {
    const number = series.numberOf(text);
    if (number === undefined) return this.writeText(text);
    this.reserve(4);
    this.writeByte(0xd5);
    this.writeByte(TEXT_TYPE);
    this.view.setUint16(this.at, number);
    this.at += 2;
    return true;
  }

  private writeForeign(value: object | bigint): boolean {
    const bytes = this.foreign?.write(value);
    if (bytes === undefined) return false;
    this.reserve(6);
    this.writeByte(0xc9);
    this.view.setUint32(this.at, bytes.length);
    this.at += 4;
    this.writeByte(FOREIGN_TYPE);
    this.writeRaw(bytes);
    return true;
  }

  private writeNumber(value: number): boolean {
    if (Number.isSafeInteger(value)) this.writeInteger(value);
    else if (isUnsafeInteger(value)) return false;
    else this.writeFloat(value);
    return true;
  }
}

/** The extension type of msgpack for values of another protocol. */
const FOREIGN_TYPE = 0x46;

/** The extension type of msgpack for a text of {@link SeriesTexts}, by its number. */
const TEXT_TYPE = 0x54;
/** Shorter texts are no longer than their number. */
const NUMBERED_TEXT_MIN = 4;
/** Names of fields that get a number: those that fit into one byte. */
const NUMBERED_NAMES = 0x80;
/** Texts that have a number at the same time: those that fit into two bytes. */
const NUMBERED_TEXTS = 0x10000;
/** Characters that are hashed: keys differ in the last ones. */
const HASHED_CHARACTERS = 12;

/**
 * The texts that earlier values of a series have spelled out. Its writer and its reader add the same ones in the same
 * order, so a number says which one is meant.
 */
class SeriesTexts {
  /** By number. */
  readonly names: string[] = [];
  /** By number. The newest text takes the place of the oldest. */
  readonly recent: string[] = [];
  private readonly nameNumbers = new Map<string, number>();
  private next = 0;
  /** The number that a text with this hash had last. */
  private readonly numbers = new Uint16Array(NUMBERED_TEXTS);

  clear(): void {
    this.names.length = 0;
    this.recent.length = 0;
    this.nameNumbers.clear();
    this.next = 0;
  }

  /** The number of a name; undefined: it has none yet, and gets one as long as there are any. */
  nameNumber(name: string): number | undefined {
    const { names, nameNumbers } = this;
    const number = nameNumbers.get(name);
    if (number === undefined && names.length < NUMBERED_NAMES) {
      nameNumbers.set(name, names.length);
      names.push(name);
    }
    return number;
  }

  /** The number of a text; undefined: it has none, and is added. */
  numberOf(text: string): number | undefined {
    const { length } = text;
    if (length < NUMBERED_TEXT_MIN || length > CACHED_TEXT_MAX) return undefined;
    let hash = length;
    for (let at = Math.max(0, length - HASHED_CHARACTERS); at < length; at++) {
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x9e3779b1);
    }
    const place = hash >>> 16;
    const number = this.numbers[place] as number;
    if (this.recent[number] === text) return number;
    this.numbers[place] = this.next;
    this.add(text);
    return undefined;
  }

  /** A text was spelled out. It gets the next number, if it is neither short nor long. */
  add(text: string): void {
    if (text.length < NUMBERED_TEXT_MIN || text.length > CACHED_TEXT_MAX) return;
    this.recent[this.next] = text;
    this.next = (this.next + 1) % NUMBERED_TEXTS;
  }
}

/** Values of another protocol that are not plain data, as bytes. */
export interface ForeignValues {
  /** Undefined: the value is not of that protocol. */
  write(value: object | bigint): Uint8Array | undefined;
  /** @param bytes - belong to the reader */
  read(bytes: Uint8Array): unknown;
}

type WritableFields = Readonly<Record<string, unknown>>;

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Memory for a frame with one part of a large result (512 KiB), and what is around it. */
const BLOCK_BYTES = 576 * 1024;

/** Smaller frames are cheap to allocate anew. */
const SMALL_BYTES = BLOCK_BYTES / 2;

/** Blocks that are kept: twice what one transfer has under way. */
const FREE_MAX = 8;

/**
 * Memory for large frames that is used again. The parts of a large result would otherwise each take memory that
 * the operating system has to clear first, which costs more than all copying.
 */
export class FrameMemory {
  private readonly free: ArrayBuffer[] = [];

  /** Memory that is not cleared, and to which nothing else refers. */
  take(nbytes: number): Uint8Array<ArrayBuffer> {
    if (nbytes < SMALL_BYTES || nbytes > BLOCK_BYTES) return unclearedBytes(nbytes);
    const block = this.free.pop() ?? unclearedBytes(BLOCK_BYTES).buffer;
    return new Uint8Array(block, 0, nbytes);
  }

  /**
   * @param bytes - memory from `take`, or a part of it, to which nothing refers any more
   * @returns whether it is kept for a later frame
   */
  giveBack({ buffer }: Uint8Array): boolean {
    const { free } = this;
    if (!(buffer instanceof ArrayBuffer) || buffer.byteLength !== BLOCK_BYTES) return false;
    if (free.length >= FREE_MAX || free.includes(buffer)) return false;
    free.push(buffer);
    return true;
  }
}

/** Not from the pool of `Buffer`, which others share. */
export function unclearedBytes(nbytes: number): Uint8Array<ArrayBuffer> {
  const buffer = Buffer.allocUnsafeSlow(nbytes);
  return new Uint8Array(buffer.buffer, buffer.byteOffset, nbytes);
}

/** Nesting of arrays and objects that may travel; also what ends the walk through a cycle. */
export const DEPTH_MAX = 200;

/** Above it a number cannot count exactly any more: 2^53 and 2^53 + 1 look the same. */
const INTEGER_MAX = 2 ** 53;

/**
 * From here on no integer of msgpack can hold the value, so that every decoder reads it as a float.
 */
const FLOAT_ONLY_MIN = 2 ** 64;

/** A value that cannot travel. */
interface Refusal {
  /** Field names and indices that lead to it. */
  readonly path: (string | number)[];
  readonly reason: string;
}

/**
 * Finds the first thing in a value that would not arrive as it is: what msgpack cannot express, and
 * what its encoder would change without a word (a Map becomes `{}`, a Float64Array bytes).
 * Cost: one visit of each value; nothing is allocated while all is well.
 */
export function findRefusal(value: unknown, depth = 0): Refusal | undefined {
  switch (typeof value) {
    case 'boolean':
    case 'undefined':
      return undefined;
    case 'number':
      return isUnsafeInteger(value)
        ? refuse(`the integer ${value} is beyond ±2^53 and would lose digits; send it as a string`)
        : undefined;
    case 'string':
      return isWellFormed(value)
        ? undefined
        : refuse('the string has half of a surrogate pair, which UTF-8 cannot carry');
    case 'object':
      return value === null ? undefined : refusalInObject(value, depth);
    case 'bigint':
      return refuse('a bigint cannot travel; send it as a string');
    case 'function':
      return refuse(`a function (${value.name || 'anonymous'}) cannot travel`);
    case 'symbol':
      return refuse('a symbol cannot travel');
  }
}

/** As text: `tasks[3].annotations.fn`. */
export function pathText(path: readonly (string | number)[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/** An integer that a double does not hold exactly. */
function isUnsafeInteger(value: number): boolean {
  const size = Math.abs(value);
  return size > INTEGER_MAX && size < FLOAT_ONLY_MIN;
}

function refusalInObject(value: object, depth: number): Refusal | undefined {
  if (value instanceof Uint8Array) return undefined;
  if (depth >= DEPTH_MAX) {
    return refuse(`it is nested deeper than ${DEPTH_MAX} levels (does it contain itself?)`);
  }
  if (Array.isArray(value)) return refusalInArray(value, depth);
  if (!isPlainObject(value)) {
    return refuse(`${describeClass(value)} cannot travel; send plain data made from it`);
  }
  return refusalInFields(value, depth);
}

function refusalInArray(value: readonly unknown[], depth: number): Refusal | undefined {
  for (let index = 0; index < value.length; index++) {
    const refusal = findRefusal(value[index], depth + 1);
    if (refusal !== undefined) {
      refusal.path.unshift(index);
      return refusal;
    }
  }
  return undefined;
}

function refusalInFields(
  value: Readonly<Record<string, unknown>>,
  depth: number,
): Refusal | undefined {
  for (const name in value) {
    const refusal =
      name === '__proto__'
        ? refuse('a field of this name cannot travel')
        : (findRefusal(value[name], depth + 1) ?? (isWellFormed(name) ? undefined : badName()));
    if (refusal !== undefined) {
      refusal.path.unshift(name);
      return refusal;
    }
  }
  return undefined;
}

function describeClass(value: object): string {
  const { constructor } = value as { readonly constructor?: { readonly name?: unknown } };
  const name = constructor?.name;
  return typeof name === 'string' && name !== ''
    ? `an instance of ${name}`
    : 'an object of a class';
}

function badName(): Refusal {
  return refuse('the name of the field has half of a surrogate pair, which UTF-8 cannot carry');
}

function refuse(reason: string): Refusal {
  return { path: [], reason };
}

/** In Node 20, but not yet in the type library of ES2023. */
export function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed();
}
