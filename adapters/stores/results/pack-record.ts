import { crc32 } from 'node:zlib';
import type { StoredResult } from '../../../core/api/index.ts';

/**
 * A result in a pack: mark, state, key, lengths of type and value, CRC-32 of type and value, CRC-32 of the header from the
 * key on, then type and value. All numbers are little-endian. Only the state changes later.
 */
const MARK = Buffer.from('YMP1');
export const HEADER_BYTES = 56;
const KEY_BYTES = 32;
const LIVE = 0x45_56_49_4c; // "LIVE"
const AT = { state: 4, key: 8, typeBytes: 40, valueBytes: 44, checksum: 48, headerChecksum: 52 };
const TYPE_BYTES_MAX = 4096;

export interface RecordHeader {
  /** In hexadecimal digits. */
  readonly key: string;
  readonly isLive: boolean;
  /** Of the whole record. */
  readonly nbytes: number;
}

export function recordOf(key: string, { type, value }: StoredResult): Buffer {
  const name = Buffer.from(type).subarray(0, TYPE_BYTES_MAX);
  const record = Buffer.allocUnsafe(HEADER_BYTES + name.byteLength + value.byteLength);
  record.set(name, HEADER_BYTES);
  record.set(value, HEADER_BYTES + name.byteLength);
  writeHeader(record, key, [name.byteLength, value.byteLength]);
  record.writeUInt32LE(LIVE, AT.state);
  return record;
}

/** The header of a forgotten record that fills so many bytes, which may be damaged. */
export function fillerOf(nbytes: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  writeHeader(header, '0'.repeat(2 * KEY_BYTES), [0, nbytes - HEADER_BYTES]);
  return header;
}

/** Written at {@link STATE_AT} of a record to forget it. */
export const FORGOTTEN_STATE = Buffer.alloc(4);
export const STATE_AT = AT.state;

/** Undefined when no record begins there, or its header is damaged or incomplete. */
export function headerAt(bytes: Buffer, at: number): RecordHeader | undefined {
  if (at + HEADER_BYTES > bytes.byteLength) return undefined;
  const header = bytes.subarray(at, at + HEADER_BYTES);
  if (!header.subarray(0, MARK.byteLength).equals(MARK)) return undefined;
  if (header.readUInt32LE(AT.headerChecksum) !== headerChecksumOf(header)) return undefined;
  return {
    key: header.toString('hex', AT.key, AT.key + KEY_BYTES),
    isLive: header.readUInt32LE(AT.state) === LIVE,
    nbytes: HEADER_BYTES + header.readUInt32LE(AT.typeBytes) + header.readUInt32LE(AT.valueBytes),
  };
}

/** Where the next record begins; -1 when there is none. */
export function nextRecord(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(MARK, from);
  while (at >= 0 && headerAt(bytes, at) === undefined) at = bytes.indexOf(MARK, at + 1);
  return at;
}

/** Whether type and value are what was written. @param record - with a header that is whole */
export function isWhole(record: Buffer): boolean {
  return record.readUInt32LE(AT.checksum) === crc32(record.subarray(HEADER_BYTES));
}

/** @param record - whole */
export function resultOf(record: Buffer): StoredResult {
  const start = HEADER_BYTES + record.readUInt32LE(AT.typeBytes);
  // All threads of a worker read it where it is.
  const value = new Uint8Array(new SharedArrayBuffer(record.byteLength - start));
  value.set(record.subarray(start));
  return { type: record.toString('utf8', HEADER_BYTES, start), value };
}

function writeHeader(record: Buffer, key: string, [typeBytes, valueBytes]: [number, number]): void {
  record.set(MARK);
  record.write(key, AT.key, 'hex');
  record.writeUInt32LE(typeBytes, AT.typeBytes);
  record.writeUInt32LE(valueBytes, AT.valueBytes);
  record.writeUInt32LE(crc32(record.subarray(HEADER_BYTES)), AT.checksum);
  record.writeUInt32LE(headerChecksumOf(record), AT.headerChecksum);
}

function headerChecksumOf(record: Buffer): number {
  return crc32(record.subarray(AT.key, AT.headerChecksum));
}
