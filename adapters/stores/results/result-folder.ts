import { randomUUID } from 'node:crypto';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  utimes,
} from 'node:fs/promises';
import { join } from 'node:path';
import type { ResultStore, StoredResult } from '../../../core/api/index.ts';
import { removeFile } from '../../log/private-folder.ts';
import { checkKey } from './result-key.ts';
import { complaintAbout, headOf, readResult, REMOVED, type Unusable } from './result-file.ts';
import { isPack, ResultPacks } from './result-packs.ts';

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
    if (complaint === 'none') await this.used(path);
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
    if (found !== undefined) await this.used(path);
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

  private async used(path: string): Promise<void> {
    const now = new Date();
    await ifThere(utimes(path, now, now));
  }

  private drop(path: string, why: Unusable): void {
    process.emitWarning(`${path} ${REMOVED[why]}`, 'YardmasterResultStore');
    removeFile(path);
  }

  /** @throws YardmasterError `ERR_RESULT_STORE` for what could lead out of the folder */
  private pathOf(key: string): string {
    checkKey(key);
    return join(this.folder, partOf(key), key);
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
