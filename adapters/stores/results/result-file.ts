import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import type { StoredResult } from '../../../core/api/index.ts';

/**
 * A result in a file: mark, length of the type, CRC-32 of type and value, length of the value, then type and value.
 * All numbers are little-endian.
 */
const MARK = 0x31_52_4d_59; // "YMR1"
export const HEADER_BYTES = 20;
const TYPE_BYTES_MAX = 4096;
/** Bytes that are read at a time when only the checksum is of interest. */
const SLICE_BYTES = 1024 * 1024;

interface Header {
  readonly typeBytes: number;
  readonly checksum: number;
  readonly valueBytes: number;
}

/** What stands before the value. */
export function headOf({ type, value }: StoredResult): Uint8Array {
  const name = Buffer.from(type).subarray(0, TYPE_BYTES_MAX);
  const head = Buffer.alloc(HEADER_BYTES + name.byteLength);
  head.writeUInt32LE(MARK, 0);
  head.writeUInt32LE(name.byteLength, 4);
  head.writeUInt32LE(checksumOf(name, value), 8);
  head.writeBigUInt64LE(BigInt(value.byteLength), 12);
  head.set(name, HEADER_BYTES);
  return head;
}

/**
 * The result in a file. `damaged` when it is not what was written.
 * @throws the system's error, such as `ENOENT`
 */
export async function readResult(path: string): Promise<StoredResult | 'damaged'> {
  const file = await open(path, 'r');
  try {
    const header = await readHeader(file);
    if (header === undefined) return 'damaged';
    const name = await readFully(file, new Uint8Array(header.typeBytes));
    // All threads of a worker read it where it is.
    const value = new Uint8Array(new SharedArrayBuffer(header.valueBytes));
    await readFully(file, value);
    if (checksumOf(name, value) !== header.checksum) return 'damaged';
    return { type: Buffer.from(name).toString(), value };
  } finally {
    await file.close();
  }
}

/** The same for all bytes of a file. */
export function parseResult(bytes: Uint8Array): StoredResult | 'damaged' {
  const header = headerIn(bytes, bytes.byteLength);
  if (header === undefined) return 'damaged';
  const start = HEADER_BYTES + header.typeBytes;
  const name = bytes.subarray(HEADER_BYTES, start);
  const value = new Uint8Array(new SharedArrayBuffer(header.valueBytes));
  value.set(bytes.subarray(start));
  if (checksumOf(name, value) !== header.checksum) return 'damaged';
  return { type: Buffer.from(name).toString(), value };
}

/** Whether these bytes begin a file of this size that is a result. Its value is not looked at. */
export function isHeadOf(head: Uint8Array, size: number): boolean {
  return headerIn(head, size) !== undefined;
}

/** Whether a file is what was written, without holding all of it. @throws the system's error */
export async function isWhole(path: string): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const header = await readHeader(file);
    if (header === undefined) return false;
    let checksum = crc32(await readFully(file, new Uint8Array(header.typeBytes)));
    const slice = new Uint8Array(Math.min(SLICE_BYTES, header.valueBytes));
    for (let rest = header.valueBytes; rest > 0; rest -= slice.byteLength) {
      const part = slice.subarray(0, Math.min(rest, slice.byteLength));
      checksum = crc32(await readFully(file, part), checksum);
    }
    return checksum === header.checksum;
  } finally {
    await file.close();
  }
}

function checksumOf(name: Uint8Array, value: Uint8Array): number {
  // Of nothing, zlib forgets what came before.
  return value.byteLength === 0 ? crc32(name) : crc32(value, crc32(name));
}

/** Undefined unless it fits the length of the file. */
async function readHeader(file: FileHandle): Promise<Header | undefined> {
  const { size } = await file.stat();
  if (size < HEADER_BYTES) return undefined;
  return headerIn(await readFully(file, new Uint8Array(HEADER_BYTES)), size);
}

/** Undefined unless it fits what has `size` bytes. */
function headerIn(head: Uint8Array, size: number): Header | undefined {
  if (head.byteLength < HEADER_BYTES) return undefined;
  const bytes = Buffer.from(head.buffer, head.byteOffset, HEADER_BYTES);
  const header = {
    typeBytes: bytes.readUInt32LE(4),
    checksum: bytes.readUInt32LE(8),
    valueBytes: Number(bytes.readBigUInt64LE(12)),
  };
  const fits = HEADER_BYTES + header.typeBytes + header.valueBytes === size;
  return bytes.readUInt32LE(0) === MARK && fits ? header : undefined;
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
