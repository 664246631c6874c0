import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  type Stats,
  utimesSync,
  writeSync,
} from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { type ResultStore, type StoredResult, YardmasterError } from '../../core/api/index.ts';
import { removeFile } from '../log/private-folder.ts';

/**
 * A result in a file: mark, length of the type, CRC-32 of key, type and value, length of the value, key, then type and
 * value. All numbers are little-endian. The key is there because a name of a file is not part of its contents: files
 * may be renamed, exchanged or restored to another name.
 */
const FILE_MARK = 0x32_52_4d_59; // "YMR2"

const KEY_BYTES = 32;

export const FILE_HEADER_BYTES = 20 + KEY_BYTES;

const FILE_AT = { mark: 0, typeBytes: 4, checksum: 8, valueBytes: 12, key: 20 };

const TYPE_BYTES_MAX = 4096;
/** Bytes that are read at a time when only the checksum is of interest. */
const SLICE_BYTES = 1024 * 1024;

interface Header {
  readonly typeBytes: number;
  readonly checksum: number;
  readonly valueBytes: number;
}

/** The reason why a file or object is not the result of a key. */
export type Unusable = 'damaged' | 'of another key';

/** The message about a file that is removed, after its place. */
export const REMOVED: Readonly<Record<Unusable, string>> = {
  damaged: 'is damaged and was removed; what it held is computed again',
  'of another key':
    'holds the result of another key and was removed: files were renamed or exchanged; the result is computed again',
};

/** The header before the value. @param key - in hexadecimal digits */
export function headOf(key: string, { type, value }: StoredResult): Uint8Array {
  const name = Buffer.from(type).subarray(0, TYPE_BYTES_MAX);
  const head = Buffer.alloc(FILE_HEADER_BYTES + name.byteLength);
  head.writeUInt32LE(FILE_MARK, FILE_AT.mark);
  head.writeUInt32LE(name.byteLength, FILE_AT.typeBytes);
  head.writeUInt32LE(checksumOf(key, name, value), FILE_AT.checksum);
  head.writeBigUInt64LE(BigInt(value.byteLength), FILE_AT.valueBytes);
  head.write(key, FILE_AT.key, 'hex');
  head.set(name, FILE_HEADER_BYTES);
  return head;
}

/** For others who share the folder can put a pipe under any name, at which a process would wait for ever, or a link to any file. */
const FILES_ONLY = constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** Errors of such an opening: it was a link, or a socket or pipe without a reader. */
const NO_FILE: ReadonlySet<string | undefined> = new Set(['ELOOP', 'ENXIO']);

/**
 * Opens a file to read it; undefined: something else has its name.
 * @throws the system's error, such as `ENOENT`
 */
async function openToRead(path: string): Promise<FileHandle | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | FILES_ONLY);
  } catch (error) {
    if (NO_FILE.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}

/**
 * The result in a file.
 * @throws the system's error, such as `ENOENT`
 */
async function readResult(path: string, key: string): Promise<StoredResult | Unusable> {
  const file = await openToRead(path);
  if (file === undefined) return 'damaged';
  try {
    const header = await readHeader(file, key);
    if (typeof header === 'string') return header;
    const name = await readFully(file, new Uint8Array(header.typeBytes));
    // All threads of a worker read it where it is.
    const value = new Uint8Array(new SharedArrayBuffer(header.valueBytes));
    let checksum = checksumOf(key, name);
    for (let at = 0; at < value.byteLength; at += SLICE_BYTES) {
      const part = await readFully(file, value.subarray(at, at + SLICE_BYTES));
      checksum = crc32(part, checksum); // Between two slices, other work of this thread has its turn.
    }
    if (checksum !== header.checksum) return 'damaged';
    return { type: Buffer.from(name).toString(), value };
  } finally {
    await file.close();
  }
}

/** The same for all bytes of a file. */
export function parseResult(bytes: Uint8Array, key: string): StoredResult | Unusable {
  const header = headerIn(bytes, bytes.byteLength, key);
  if (typeof header === 'string') return header;
  const start = FILE_HEADER_BYTES + header.typeBytes;
  const name = bytes.subarray(FILE_HEADER_BYTES, start);
  const value = new Uint8Array(new SharedArrayBuffer(header.valueBytes));
  value.set(bytes.subarray(start));
  if (checksumOf(key, name, value) !== header.checksum) return 'damaged';
  return { type: Buffer.from(name).toString(), value };
}

/** The fault in the beginning of a file of this size; undefined: none. The value is not looked at. */
export function complaintAboutHead(
  head: Uint8Array,
  size: number,
  key: string,
): Unusable | undefined {
  const header = headerIn(head, size, key);
  return typeof header === 'string' ? header : undefined;
}

/**
 * The fault of a file, found without holding all of it; undefined: none.
 * @throws the system's error
 */
async function complaintAbout(path: string, key: string): Promise<Unusable | undefined> {
  const file = await openToRead(path);
  if (file === undefined) return 'damaged';
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
  const head = await readFully(file, new Uint8Array(Math.min(FILE_HEADER_BYTES, size)));
  return headerIn(head, size, key);
}

/** The header of what has `size` bytes, or why that is not the result of this key. */
function headerIn(head: Uint8Array, size: number, key: string): Header | Unusable {
  const bytes = Buffer.from(
    head.buffer,
    head.byteOffset,
    Math.min(head.byteLength, FILE_HEADER_BYTES),
  );
  if (bytes.byteLength < FILE_HEADER_BYTES || bytes.readUInt32LE(FILE_AT.mark) !== FILE_MARK)
    return 'damaged';
  const header = {
    typeBytes: bytes.readUInt32LE(FILE_AT.typeBytes),
    checksum: bytes.readUInt32LE(FILE_AT.checksum),
    valueBytes: Number(bytes.readBigUInt64LE(FILE_AT.valueBytes)),
  };
  if (FILE_HEADER_BYTES + header.typeBytes + header.valueBytes !== size) return 'damaged';
  return bytes.toString('hex', FILE_AT.key) === key ? header : 'of another key';
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

/** Share of the limit that may be written before all files are counted again: others write as well. */
const COUNT_AGAIN = 1 / 16;
/** Share of the limit that is left when old results were removed. */
const KEPT = 0.9;
/** Milliseconds after which a file that was never finished is taken to be left by a killed process. */
const ABANDONED_MS = 24 * 60 * 60 * 1000;
const UNFINISHED = '.part';
/** Names of results, and of files that become results when they are complete. */
const OWN_FILE = /^[0-9a-f]{64}(-[0-9a-f-]{36}\.part)?$/;
/** Names of the folders in which they are: how a key begins. */
const PART_FOLDER = /^[0-9a-f]{2}$/;
/** Larger results have a file each. */
const PACKED_BYTES_MAX = 64 * 1024;
/** Share of the limit that a pack of results may have: packs are removed as a whole. */
const PACK_SHARE = 1 / 16;

interface KeptFile {
  readonly path: string;
  readonly nbytes: number;
  readonly usedMs: number;
}

/**
 * Results in a folder, which processes on any machine may share that sees the folder. Small results are packed; a large
 * one has a file of its own, which gets its name when it is complete. With a limit, the files that were not used for
 * longest are removed.
 */
export class ResultFolder implements ResultStore {
  /** Bytes that may be written until the folder is counted again. */
  private allowance = 0;
  private readonly packs: ResultPacks;

  /** @param maxBytes - about as many bytes are kept. Default: no limit */
  constructor(
    readonly folder: string,
    private readonly maxBytes = Infinity,
  ) {
    this.packs = new ResultPacks(folder, maxBytes * PACK_SHARE);
  }

  async has(key: string): Promise<boolean> {
    const path = this.pathOf(key);
    if (await this.packs.has(key)) return true;
    if (!this.packs.names.has(partOf(key))) return false;
    const complaint = await ifThere(complaintAbout(path, key).then((found) => found ?? 'none'));
    if (complaint === 'none') noteUse(path);
    else if (complaint !== undefined) this.drop(path, complaint);
    return complaint === 'none';
  }

  async read(key: string): Promise<StoredResult | undefined> {
    const path = this.pathOf(key);
    const packed = await this.packs.read(key);
    if (packed !== undefined || !this.packs.names.has(partOf(key))) return packed;
    const found = await ifThere(readResult(path, key));
    if (typeof found === 'string') {
      this.drop(path, found);
      return undefined;
    }
    if (found !== undefined) noteUse(path);
    return found;
  }

  async write(key: string, result: StoredResult): Promise<void> {
    checkKey(key);
    const { byteLength } = result.value;
    if (byteLength <= PACKED_BYTES_MAX) this.packs.write(key, result);
    else await this.writeFile(key, result);
    this.allowance -= byteLength;
    if (this.allowance < 0) await this.makeRoom();
  }

  async delete(key: string): Promise<void> {
    const path = this.pathOf(key);
    await this.packs.delete(key);
    removeFile(path);
  }

  private async writeFile(key: string, result: StoredResult): Promise<void> {
    const path = this.pathOf(key);
    const unfinished = `${path}-${randomUUID()}${UNFINISHED}`;
    try {
      const file = await create(unfinished);
      try {
        await file.writeFile(headOf(key, result));
        await file.writeFile(result.value);
      } finally {
        await file.close();
      }
      await rename(unfinished, path);
    } catch (error) {
      removeFile(unfinished);
      throw error;
    }
  }

  /** Removes what was not used for longest, if there is too much. */
  private async makeRoom(): Promise<void> {
    if (this.maxBytes === Infinity) {
      this.allowance = Infinity;
      return;
    }
    this.allowance = this.maxBytes * COUNT_AGAIN;
    const files = (await this.files()).sort((a, b) => a.usedMs - b.usedMs);
    let total = files.reduce((sum, { nbytes }) => sum + nbytes, 0);
    if (total <= this.maxBytes) return;
    for (const { path, nbytes } of files) {
      if (total <= this.maxBytes * KEPT) return;
      removeFile(path);
      total -= nbytes;
    }
  }

  /** Nothing but results: clients name the folder, and there may be files of others in it. */
  private async files(): Promise<KeptFile[]> {
    const found: KeptFile[] = [];
    const folder = await realpath(this.folder);
    for (const about of await readdir(folder, { withFileTypes: true })) {
      const entry = about.name;
      const isFolder = PART_FOLDER.test(entry) && about.isDirectory(); // Links lead to files of others.
      const names = isFolder ? await ifThere(readdir(join(folder, entry))) : [entry];
      for (const name of names ?? []) {
        const isOwn = isFolder ? OWN_FILE.test(name) && name.startsWith(entry) : isPack(name);
        if (!isOwn) continue;
        const path = isFolder ? join(folder, entry, name) : join(folder, name);
        const stats = await ifThere(lstat(path));
        if (stats === undefined) continue;
        const { size: nbytes, mtimeMs: usedMs } = stats;
        if (!name.endsWith(UNFINISHED)) found.push({ path, nbytes, usedMs });
        else if (Date.now() - usedMs > ABANDONED_MS) removeFile(path);
      }
    }
    return found;
  }

  private drop(path: string, why: Unusable): void {
    removeFile(path);
    process.emitWarning(`${path} ${REMOVED[why]}`, 'YardmasterResultStore');
  }

  /** @throws YardmasterError `ERR_RESULT_STORE` for what could lead out of the folder */
  private pathOf(key: string): string {
    checkKey(key);
    return join(this.folder, partOf(key), key);
  }
}

/** Puts off its removal. */
function noteUse(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // It has gone, or this user may only read it and removes nothing there.
  }
}

/** The folder of its file. */
function partOf(key: string): string {
  return key.slice(0, 2);
}

/** Its folder is there for nearly all files. */
async function create(path: string): Promise<FileHandle> {
  const file = await ifThere(open(path, 'wx', 0o600));
  if (file !== undefined) return file;
  await mkdir(join(path, '..'), { recursive: true, mode: 0o700 });
  return open(path, 'wx', 0o600);
}

/** Undefined when the file or folder does not exist (any more). */
async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** @throws YardmasterError `ERR_RESULT_STORE` for what could lead out of the store */
export function checkKey(key: string): void {
  if (/^[0-9a-f]{64}$/.test(key)) return;
  throw new YardmasterError('ERR_RESULT_STORE', `"${key}" is not the key of a result`, { key });
}

/**
 * A result in a pack: mark, state, key, lengths of type and value, CRC-32 of type and value, CRC-32 of the header from the
 * key on, then type and value. All numbers are little-endian. Only the state changes later.
 */
const RECORD_MARK = Buffer.from('YMP1');

const RECORD_HEADER_BYTES = 56;

const LIVE = 0x45_56_49_4c; // "LIVE"

const RECORD_AT = {
  state: 4,
  key: 8,
  typeBytes: 40,
  valueBytes: 44,
  checksum: 48,
  headerChecksum: 52,
};

interface RecordHeader {
  /** In hexadecimal digits. */
  readonly key: string;
  readonly isLive: boolean;
  /** Of the whole record. */
  readonly nbytes: number;
}

function recordOf(key: string, { type, value }: StoredResult): Buffer {
  const name = Buffer.from(type).subarray(0, TYPE_BYTES_MAX);
  const record = Buffer.allocUnsafe(RECORD_HEADER_BYTES + name.byteLength + value.byteLength);
  record.set(name, RECORD_HEADER_BYTES);
  record.set(value, RECORD_HEADER_BYTES + name.byteLength);
  writeHeader(record, key, [name.byteLength, value.byteLength]);
  record.writeUInt32LE(LIVE, RECORD_AT.state);
  return record;
}

/** The header of a forgotten record that fills so many bytes, which may be damaged. */
function fillerOf(nbytes: number): Buffer {
  const header = Buffer.alloc(RECORD_HEADER_BYTES);
  writeHeader(header, '0'.repeat(2 * KEY_BYTES), [0, nbytes - RECORD_HEADER_BYTES]);
  return header;
}

/** Written at {@link STATE_AT} of a record to forget it. */
const FORGOTTEN_STATE = Buffer.alloc(4);

const STATE_AT = RECORD_AT.state;

/** Undefined when no record begins there, or its header is damaged or incomplete. */
function headerAt(bytes: Buffer, at: number): RecordHeader | undefined {
  if (at + RECORD_HEADER_BYTES > bytes.byteLength) return undefined;
  const header = bytes.subarray(at, at + RECORD_HEADER_BYTES);
  if (!header.subarray(0, RECORD_MARK.byteLength).equals(RECORD_MARK)) return undefined;
  if (header.readUInt32LE(RECORD_AT.headerChecksum) !== headerChecksumOf(header)) return undefined;
  return {
    key: header.toString('hex', RECORD_AT.key, RECORD_AT.key + KEY_BYTES),
    isLive: header.readUInt32LE(RECORD_AT.state) === LIVE,
    nbytes:
      RECORD_HEADER_BYTES +
      header.readUInt32LE(RECORD_AT.typeBytes) +
      header.readUInt32LE(RECORD_AT.valueBytes),
  };
}

/** The position at which the next record begins; -1 when there is none. */
function nextRecord(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(RECORD_MARK, from);
  while (at >= 0 && headerAt(bytes, at) === undefined) at = bytes.indexOf(RECORD_MARK, at + 1);
  return at;
}

/** True when type and value are what was written. @param record - with a header that is whole */
function isWhole(record: Buffer): boolean {
  return record.readUInt32LE(RECORD_AT.checksum) === crc32(record.subarray(RECORD_HEADER_BYTES));
}

/** @param record - whole */
function resultOf(record: Buffer): StoredResult {
  const start = RECORD_HEADER_BYTES + record.readUInt32LE(RECORD_AT.typeBytes);
  // All threads of a worker read it where it is.
  const value = new Uint8Array(new SharedArrayBuffer(record.byteLength - start));
  value.set(record.subarray(start));
  return { type: record.toString('utf8', RECORD_HEADER_BYTES, start), value };
}

function writeHeader(record: Buffer, key: string, [typeBytes, valueBytes]: [number, number]): void {
  record.set(RECORD_MARK);
  record.write(key, RECORD_AT.key, 'hex');
  record.writeUInt32LE(typeBytes, RECORD_AT.typeBytes);
  record.writeUInt32LE(valueBytes, RECORD_AT.valueBytes);
  record.writeUInt32LE(crc32(record.subarray(RECORD_HEADER_BYTES)), RECORD_AT.checksum);
  record.writeUInt32LE(headerChecksumOf(record), RECORD_AT.headerChecksum);
}

function headerChecksumOf(record: Buffer): number {
  return crc32(record.subarray(RECORD_AT.key, RECORD_AT.headerChecksum));
}

/** The longest pack, unless the limit of its folder is small. */
const PACK_BYTES_MAX = 64 * 1024 * 1024;

/** Milliseconds of reading after which other work of the thread comes first. */
const TURN_MS = 10;
/** Milliseconds in which the last record of a pack may be incomplete, because a remote machine still writes it. */
const UNFINISHED_MS = 10_000;
/** Share of the longest pack up to which another writer continues it. */
const ADOPTED_SHARE = 1 / 16;
/** Milliseconds after which another writer continues a pack; its own writer does not any more after half of it. */
const ADOPTED_MS = 60 * 60 * 1000;
const PACK = /^[0-9a-f-]{36}\.pack$/;

/** True when a file of the folder of results is a pack. */
function isPack(name: string): boolean {
  return PACK.test(name);
}

interface Pack {
  readonly path: string;
  /** Records before it are in the index. */
  scannedBytes: number;
}

interface Place {
  readonly pack: Pack;
  readonly at: number;
  readonly nbytes: number;
  /** The same result, written before. */
  readonly older: Place | undefined;
}

/** The place and its older ones, without those in other packs. */
function placesIn(packs: ReadonlySet<Pack>, place: Place | undefined): Place | undefined {
  const left: Place[] = [];
  for (let at = place; at !== undefined; at = at.older) if (packs.has(at.pack)) left.push(at);
  return left.reduceRight<Place | undefined>((older, at) => ({ ...at, older }), undefined);
}

/**
 * Small results of a folder, one after the other in few files. A file has one writer: a thread of a process. Records are
 * appended, and forgotten in place; each has checksums, so that what was not written to its end does not count.
 *
 * Files are opened for each use: then network file systems show one machine what another one has written, and a file
 * that is removed or continued by another writer is noticed.
 */
class ResultPacks {
  private readonly packs = new Map<string, Pack>();
  private readonly index = new Map<string, Place>();
  private folderNames: ReadonlySet<string> = new Set();
  private own: { readonly path: string; nbytes: number; writtenMs: number } | undefined;
  /** Of this turn of the event loop. */
  private refreshing: Promise<void> | undefined;
  private readonly packBytesMax: number;

  /** @param packBytesMax - a larger pack is not continued */
  constructor(
    private readonly folder: string,
    packBytesMax: number,
  ) {
    this.packBytesMax = Math.min(packBytesMax, PACK_BYTES_MAX);
  }

  async has(key: string): Promise<boolean> {
    return (await this.find(key)) !== undefined;
  }

  async read(key: string): Promise<StoredResult | undefined> {
    const record = await this.find(key);
    return record === undefined ? undefined : resultOf(record);
  }

  /** @throws the system's error */
  write(key: string, result: StoredResult): void {
    const record = recordOf(key, result);
    if (this.append(record)) return;
    this.own = this.start();
    if (!this.append(record)) throw new Error(`${this.own.path} was removed while it was written`);
  }

  async delete(key: string): Promise<void> {
    await this.refresh();
    for (let place = this.index.get(key); place !== undefined; place = place.older) {
      overwrite(place.pack.path, FORGOTTEN_STATE, place.at + STATE_AT);
    }
    this.index.delete(key);
  }

  /** Names of all that is in the folder, as of the last time that a result was not found. */
  get names(): ReadonlySet<string> {
    return this.folderNames;
  }

  /** The record of a result, whole. */
  private async find(key: string): Promise<Buffer | undefined> {
    const known = this.look(key);
    if (known !== undefined) return known;
    await this.refresh();
    return this.look(key);
  }

  private look(key: string): Buffer | undefined {
    for (let place = this.index.get(key); place !== undefined; place = place.older) {
      const record = this.recordAt(place, key);
      if (record !== undefined) {
        noteUse(place.pack.path);
        return record;
      }
      if (place.older === undefined) this.index.delete(key);
      else this.index.set(key, place.older);
    }
    return undefined;
  }

  /** Undefined when it is gone, forgotten or damaged, or another record has come to its place. */
  private recordAt({ pack, at, nbytes }: Place, key: string): Buffer | undefined {
    const record = readAt(pack.path, at, nbytes);
    if (record === undefined) return undefined;
    const header = headerAt(record, 0);
    if (header?.nbytes === nbytes && record.byteLength === nbytes) {
      if (!header.isLive || header.key !== key) return undefined;
      if (isWhole(record)) return record;
    }
    const about = packAt(pack.path);
    if (about === undefined) return undefined;
    if (mayBeUnfinished(about, at + nbytes)) {
      pack.scannedBytes = Math.min(pack.scannedBytes, at);
      return undefined;
    }
    forgetDamage(pack.path, at, nbytes);
    return undefined;
  }

  /** Once for all results that are looked up together. */
  private refresh(): Promise<void> {
    if (this.refreshing === undefined) {
      this.refreshing = this.scanAll();
      queueMicrotask(() => {
        this.refreshing = undefined;
      });
    }
    return this.refreshing;
  }

  /** Reads what was written since the last time. */
  private async scanAll(): Promise<void> {
    this.folderNames = new Set(ifThereNow(() => readdirSync(this.folder)));
    this.dropRemoved();
    let startMs = performance.now();
    for (const name of this.folderNames) {
      if (!isPack(name)) continue;
      const path = join(this.folder, name);
      let pack = this.packs.get(name);
      if (pack === undefined) this.packs.set(name, (pack = { path, scannedBytes: 0 }));
      const size = packAt(path)?.size ?? 0;
      while (this.scan(pack, size)) {
        if (performance.now() - startMs < TURN_MS) continue;
        await nextTurn();
        startMs = performance.now();
      }
    }
  }

  /** Forgets packs that another process has removed, and what was in them. */
  private dropRemoved(): void {
    const before = this.packs.size;
    for (const name of this.packs.keys()) if (!this.folderNames.has(name)) this.packs.delete(name);
    if (this.packs.size === before) return;
    const kept = new Set(this.packs.values());
    for (const [key, place] of this.index) {
      const left = placesIn(kept, place);
      if (left === undefined) this.index.delete(key);
      else this.index.set(key, left);
    }
  }

  /** Adds records of a slice to the index. Returns whether there may be more. */
  private scan(pack: Pack, size: number): boolean {
    const start = pack.scannedBytes;
    if (start + RECORD_HEADER_BYTES > size) return false;
    const bytes = readAt(pack.path, start, Math.min(SLICE_BYTES, size - start));
    if (bytes === undefined) return false;
    let at = 0;
    while (at + RECORD_HEADER_BYTES <= bytes.byteLength) {
      const header = headerAt(bytes, at);
      if (header === undefined) {
        pack.scannedBytes = start + at;
        return skipDamage(pack, size);
      }
      if (start + at + header.nbytes > size) break; // It is being written, or never was to its end.
      if (header.isLive) {
        const older = this.index.get(header.key);
        this.index.set(header.key, { pack, at: start + at, nbytes: header.nbytes, older });
      }
      at += header.nbytes;
    }
    pack.scannedBytes = start + at;
    return at > 0;
  }

  /** Returns false when another pack has to be started. */
  private append(record: Buffer): boolean {
    const { own } = this;
    if (own === undefined) return false;
    const isLong = own.nbytes > 0 && own.nbytes + record.byteLength > this.packBytesMax;
    if (isLong || Date.now() - own.writtenMs > ADOPTED_MS / 2) return false;
    // After an error, the end of the file may be incomplete.
    this.own = undefined;
    if (!overwrite(own.path, record, own.nbytes)) return false;
    own.nbytes += record.byteLength;
    own.writtenMs = Date.now();
    this.own = own;
    return true;
  }

  /** A pack that ended writers have left, or a new one. */
  private start(): { path: string; nbytes: number; writtenMs: number } {
    const path = join(this.folder, `${randomUUID()}.pack`);
    const writtenMs = Date.now();
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.folder)) {
      if (!isPack(name)) continue;
      const about = packAt(join(this.folder, name));
      if (about === undefined || writtenMs - about.mtimeMs < ADOPTED_MS) continue;
      if (about.size > this.packBytesMax * ADOPTED_SHARE) continue;
      const isMine = ifThereNow(() => {
        utimesSync(join(this.folder, name), new Date(), new Date());
        renameSync(join(this.folder, name), path);
        return true;
      });
      const nbytes = isMine === true ? cutIncomplete(path) : undefined;
      if (nbytes !== undefined) return { path, nbytes, writtenMs };
    }
    closeSync(openSync(path, 'wx', 0o600));
    return { path, nbytes: 0, writtenMs };
  }
}

/**
 * Cuts off a record at the end of a pack whose writer was killed, or had no space left: what is appended behind it would be taken
 * for its rest.
 * @returns the length of the pack; undefined when it is gone
 */
function cutIncomplete(path: string): number | undefined {
  const file = openPack(path, constants.O_RDWR);
  if (file === undefined) return undefined;
  try {
    const bytes = readFileSync(file);
    let end = 0;
    while (end < bytes.byteLength) {
      const header = headerAt(bytes, end);
      const next = header === undefined ? nextRecord(bytes, end + 1) : end + header.nbytes;
      if (next < 0 || next > bytes.byteLength) break;
      end = next;
    }
    ftruncateSync(file, end);
    return end;
  } finally {
    closeSync(file);
  }
}

/** True when the last record of a file may still be being written. */
function mayBeUnfinished({ size, mtimeMs }: Stats, end: number): boolean {
  return end >= size && Date.now() - mtimeMs < UNFINISHED_MS;
}

/** Goes to the next record. Returns whether there is one; otherwise the file ends with a record that is incomplete. */
function skipDamage(pack: Pack, size: number): boolean {
  const { path, scannedBytes: start } = pack;
  const rest = readAt(path, start, size - start);
  const nbytes = rest === undefined ? -1 : nextRecord(rest, 1);
  if (nbytes < 0) return false;
  // What is shorter than a header was never a result: its writer was killed.
  if (nbytes >= RECORD_HEADER_BYTES) forgetDamage(path, start, nbytes);
  pack.scannedBytes = start + nbytes;
  return true;
}

function forgetDamage(path: string, at: number, nbytes: number): void {
  let fate = 'was removed';
  try {
    overwrite(path, fillerOf(nbytes), at);
  } catch {
    // This user may only read it: what stands behind it is whole all the same.
    fate = 'cannot be removed';
  }
  process.emitWarning(
    `${path} is damaged at byte ${at}; the result there ${fate}, and is computed again`,
    'YardmasterResultStore',
  );
}

/** Undefined when there is no file of this name. */
function openPack(path: string, access: number): number | undefined {
  const file = ifThereNow(() => openSync(path, access | FILES_ONLY));
  if (file === undefined || fstatSync(file).isFile()) return file;
  closeSync(file);
  return undefined;
}

/** The status of the named file; undefined when it is not a file. */
function packAt(path: string): Stats | undefined {
  const about = ifThereNow(() => lstatSync(path));
  return about?.isFile() === true ? about : undefined;
}

/** At most so many bytes; undefined when the file is gone. */
function readAt(path: string, at: number, nbytes: number): Buffer | undefined {
  const file = openPack(path, constants.O_RDONLY);
  if (file === undefined) return undefined;
  try {
    const bytes = Buffer.allocUnsafe(nbytes);
    let read = 0;
    while (read < nbytes) {
      const more = readSync(file, bytes, read, nbytes - read, at + read);
      if (more === 0) break;
      read += more;
    }
    return bytes.subarray(0, read);
  } finally {
    closeSync(file);
  }
}

/** Returns false when the file is gone. */
function overwrite(path: string, bytes: Buffer, at: number): boolean {
  const file = openPack(path, constants.O_RDWR);
  if (file === undefined) return false;
  try {
    for (let written = 0; written < bytes.byteLength;) {
      written += writeSync(file, bytes, written, bytes.byteLength - written, at + written);
    }
    return true;
  } finally {
    closeSync(file);
  }
}

/** Undefined when the file or folder does not exist (any more), or is neither. */
function ifThereNow<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || NO_FILE.has(code)) return undefined;
    throw error;
  }
}
