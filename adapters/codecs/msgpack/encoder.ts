import { FrameMemory } from './frame-memory.ts';
import { withoutSharedMemory } from '../../../core/util/shared-memory.ts';
import { isPlainObject } from '../../../core/util/plain-object.ts';
import { DEPTH_MAX, isUnsafeInteger, isWellFormed } from './plain-data.ts';

/** Up to this length a loop over the characters is faster than a call into Node. */
const SHORT_TEXT = 40;
const INITIAL_BYTES = 4096;
/** Room for the header of a frame, so that it is sent with what it announces. */
export const HEADROOM_BYTES = 16;
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
export class Encoder extends MsgpackWriter {
  /**
   * @param bytesMax - see {@link MsgpackWriter}
   * @param growth - see {@link MsgpackWriter}
   * @param isSharing - whether bytes stay in this process, so that they may refer to shared memory. Default false
   * @param foreign - writes values that are not plain data. Default: they cannot travel
   */
  constructor(
    bytesMax?: number,
    growth?: FrameMemory,
    private readonly isSharing = false,
    private readonly foreign?: ForeignValues,
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
        return this.writeText(value);
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
      if (!this.writeText(name) || !this.write(field, depth + 1)) return false;
    }
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
export const FOREIGN_TYPE = 0x46;

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
