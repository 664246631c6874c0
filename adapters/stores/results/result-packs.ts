import { randomUUID } from 'node:crypto';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  type Stats,
  utimesSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredResult } from '../../../core/api/index.ts';
import {
  fillerOf,
  FORGOTTEN_STATE,
  HEADER_BYTES,
  headerAt,
  isWhole,
  nextRecord,
  recordOf,
  resultOf,
  STATE_AT,
} from './pack-record.ts';

/** The longest pack, unless the limit of its folder is small. */
const PACK_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes that are read at a time to find records. */
const SLICE_BYTES = 1024 * 1024;
/** Milliseconds of reading after which other work of the thread comes first. */
const TURN_MS = 10;
/** Milliseconds in which the last record of a pack may be incomplete, because a remote machine still writes it. */
const UNFINISHED_MS = 10_000;
/** Share of the longest pack up to which another writer continues it. */
const ADOPTED_SHARE = 1 / 16;
/** Milliseconds after which another writer continues a pack; its own writer does not any more after half of it. */
const ADOPTED_MS = 60 * 60 * 1000;
const PACK = /^[0-9a-f-]{36}\.pack$/;

/** Whether a file of the folder of results is a pack. */
export function isPack(name: string): boolean {
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

/**
 * Small results of a folder, one after the other in few files. A file has one writer: a thread of a process. Records are
 * appended, and forgotten in place; each has checksums, so that what was not written to its end does not count.
 *
 * Files are opened for each use: then network file systems show one machine what another one has written, and a file
 * that is removed or continued by another writer is noticed.
 */
export class ResultPacks {
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
        const now = new Date();
        ifThere(() => utimesSync(place.pack.path, now, now));
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
    const about = ifThere(() => statSync(pack.path));
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
    this.folderNames = new Set(ifThere(() => readdirSync(this.folder)));
    let startMs = performance.now();
    for (const name of this.folderNames) {
      if (!isPack(name)) continue;
      const path = join(this.folder, name);
      let pack = this.packs.get(name);
      if (pack === undefined) this.packs.set(name, (pack = { path, scannedBytes: 0 }));
      const size = ifThere(() => statSync(path))?.size ?? 0;
      while (this.scan(pack, size)) {
        if (performance.now() - startMs < TURN_MS) continue;
        await nextTurn();
        startMs = performance.now();
      }
    }
  }

  /** Adds records of a slice to the index. Returns whether there may be more. */
  private scan(pack: Pack, size: number): boolean {
    const start = pack.scannedBytes;
    if (start + HEADER_BYTES > size) return false;
    const bytes = readAt(pack.path, start, Math.min(SLICE_BYTES, size - start));
    if (bytes === undefined) return false;
    let at = 0;
    while (at + HEADER_BYTES <= bytes.byteLength) {
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
      const about = ifThere(() => statSync(join(this.folder, name)));
      if (about === undefined || writtenMs - about.mtimeMs < ADOPTED_MS) continue;
      if (about.size > this.packBytesMax * ADOPTED_SHARE) continue;
      const isMine = ifThere(() => {
        utimesSync(join(this.folder, name), new Date(), new Date());
        renameSync(join(this.folder, name), path);
        return true;
      });
      if (isMine === true) return { path, nbytes: about.size, writtenMs };
    }
    closeSync(openSync(path, 'wx', 0o600));
    return { path, nbytes: 0, writtenMs };
  }
}

/** Whether the last record of a file may still be being written. */
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
  if (nbytes >= HEADER_BYTES) forgetDamage(path, start, nbytes);
  pack.scannedBytes = start + nbytes;
  return true;
}

function forgetDamage(path: string, at: number, nbytes: number): void {
  process.emitWarning(
    `${path} is damaged at byte ${at}; the result there was removed, and is computed again`,
    'YardmasterResultStore',
  );
  overwrite(path, fillerOf(nbytes), at);
}

/** At most so many bytes; undefined when the file is gone. */
function readAt(path: string, at: number, nbytes: number): Buffer | undefined {
  const file = ifThere(() => openSync(path, 'r'));
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
  const file = ifThere(() => openSync(path, 'r+'));
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

/** Undefined when the file or folder does not exist (any more). */
function ifThere<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}
