import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { StoredResult } from '../../../core/api/index.ts';

/**
 * A result in a file: mark, length of the type, CRC-32 of key, type and value, length of the value, key, then type and
 * value. All numbers are little-endian. The key is there because a name of a file is not part of its contents: files
 * may be renamed, exchanged or restored to another name.
 */
const MARK = 0x32_52_4d_59; // "YMR2"
/** Of files without a key, which nothing writes any more. */
const EARLIER_MARK = 0x31_52_4d_59; // "YMR1"
const KEY_BYTES = 32;
export const HEADER_BYTES = 20 + KEY_BYTES;
const AT = { mark: 0, typeBytes: 4, checksum: 8, valueBytes: 12, key: 20 };
const TYPE_BYTES_MAX = 4096;
/** Bytes that are read at a time when only the checksum is of interest. */
const SLICE_BYTES = 1024 * 1024;

interface Header {
  readonly typeBytes: number;
  readonly checksum: number;
  readonly valueBytes: number;
}

/** Why a file or object is not the result of a key. */
export type Unusable = 'damaged' | 'of another key' | 'of an earlier version';

/** What is said about it when it is removed, after its place. */
export const REMOVED: Readonly<Record<Unusable, string>> = {
  damaged: 'is damaged and was removed; what it held is computed again',
  'of another key':
    'holds the result of another key and was removed: files were renamed or exchanged; the result is computed again',
  'of an earlier version':
    'was written by an earlier version, without the key of its result, and was removed; what it held is computed again',
};

/** What stands before the value. @param key - in hexadecimal digits */
export function headOf(key: string, { type, value }: StoredResult): Uint8Array {
  const name = Buffer.from(type).subarray(0, TYPE_BYTES_MAX);
  const head = Buffer.alloc(HEADER_BYTES + name.byteLength);
  head.writeUInt32LE(MARK, AT.mark);
  head.writeUInt32LE(name.byteLength, AT.typeBytes);
  head.writeUInt32LE(checksumOf(key, name, value), AT.checksum);
  head.writeBigUInt64LE(BigInt(value.byteLength), AT.valueBytes);
  head.write(key, AT.key, 'hex');
  head.set(name, HEADER_BYTES);
  return head;
}

/**
 * The result in a file.
 * @throws the system's error, such as `ENOENT`
 */
export async function readResult(path: string, key: string): Promise<StoredResult | Unusable> {
  const file = await open(path, 'r');
  try {
    const header = await readHeader(file, key);
    if (typeof header === 'string') return header;
    const name = await readFully(file, new Uint8Array(header.typeBytes));
    // All threads of a worker read it where it is.
    const value = new Uint8Array(new SharedArrayBuffer(header.valueBytes));
    await readFully(file, value);
    if (checksumOf(key, name, value) !== header.checksum) return 'damaged';
    return { type: Buffer.from(name).toString(), value };
  } finally {
    await file.close();
  }
}

/** The same for all bytes of a file. */
export function parseResult(bytes: Uint8Array, key: string): StoredResult | Unusable {
  const header = headerIn(bytes, bytes.byteLength, key);
  if (typeof header === 'string') return header;
  const start = HEADER_BYTES + header.typeBytes;
  const name = bytes.subarray(HEADER_BYTES, start);
  const value = new Uint8Array(new SharedArrayBuffer(header.valueBytes));
  value.set(bytes.subarray(start));
  if (checksumOf(key, name, value) !== header.checksum) return 'damaged';
  return { type: Buffer.from(name).toString(), value };
}

/** What is wrong with the beginning of a file of this size; undefined: nothing. The value is not looked at. */
export function complaintAboutHead(
  head: Uint8Array,
  size: number,
  key: string,
): Unusable | undefined {
  const header = headerIn(head, size, key);
  return typeof header === 'string' ? header : undefined;
}

/**
 * What is wrong with a file, without holding all of it; undefined: nothing.
 * @throws the system's error
 */
export async function complaintAbout(path: string, key: string): Promise<Unusable | undefined> {
  const file = await open(path, 'r');
  try {
    const header = await readHeader(file, key);
    if (typeof header === 'string') return header;
    let checksum = checksumOf(key, await readFully(file, new Uint8Array(header.typeBytes)));
    const slice = new Uint8Array(Math.min(SLICE_BYTES, header.valueBytes));
    for (let rest = header.valueBytes; rest > 0; rest -= slice.byteLength) {
      const part = slice.subarray(0, Math.min(rest, slice.byteLength));
      checksum = crc32(await readFully(file, part), checksum);
    }
    return checksum === header.checksum ? undefined : 'damaged';
  } finally {
    await file.close();
  }
}

function checksumOf(key: string, ...parts: readonly Uint8Array[]): number {
  let checksum = crc32(Buffer.from(key, 'hex'));
  // Of nothing, zlib forgets what came before.
  for (const part of parts) if (part.byteLength > 0) checksum = crc32(part, checksum);
  return checksum;
}

/** As {@link headerIn}. */
async function readHeader(file: FileHandle, key: string): Promise<Header | Unusable> {
  const { size } = await file.stat();
  const head = await readFully(file, new Uint8Array(Math.min(HEADER_BYTES, size)));
  return headerIn(head, size, key);
}

/** The header of what has `size` bytes, or why that is not the result of this key. */
function headerIn(head: Uint8Array, size: number, key: string): Header | Unusable {
  const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, HEADER_BYTES));
  if (bytes.byteLength >= 4 && bytes.readUInt32LE(AT.mark) === EARLIER_MARK) {
    return 'of an earlier version';
  }
  if (bytes.byteLength < HEADER_BYTES || bytes.readUInt32LE(AT.mark) !== MARK) return 'damaged';
  const header = {
    typeBytes: bytes.readUInt32LE(AT.typeBytes),
    checksum: bytes.readUInt32LE(AT.checksum),
    valueBytes: Number(bytes.readBigUInt64LE(AT.valueBytes)),
  };
  if (HEADER_BYTES + header.typeBytes + header.valueBytes !== size) return 'damaged';
  return bytes.toString('hex', AT.key) === key ? header : 'of another key';
}

/** Fills `bytes` with what follows in the file. */
async function readFully(file: FileHandle, bytes: Uint8Array): Promise<Uint8Array> {
  for (let at = 0; at < bytes.byteLength;) {
    const { bytesRead } = await file.read(bytes, at, bytes.byteLength - at);
    if (bytesRead === 0) break; // It was cut meanwhile: the checksum will not fit.
    at += bytesRead;
  }
  return bytes;
}
