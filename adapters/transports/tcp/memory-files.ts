import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import type { MemoryFileName, MemoryFiles } from '../../../core/api/index.ts';
import { isOwn } from '../../log/private-folder.ts';

/** The file system in memory that every Linux has, and that containers have with 64 MiB. */
const FOLDER = '/dev/shm';

/** Linux: a file without a name, of which nothing is left when its process ends, however it ends. */
const WITHOUT_NAME = 0o20200000;

const PROOF_BYTES = 32;

/** The most of a file that is written: a peer cannot ask for more memory than its parts need. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** The path under which another process of the same user opens a file without a name. */
const OPEN_FILE = /^\/proc\/\d+\/fd\/\d+$/;

/**
 * Memory files in `/dev/shm`. Only processes of this user can open them, and only an open file without a name, with the
 * bytes that its owner says, is taken for that of a peer: where the paths of two containers mean different processes, or
 * the peer is on another machine, there is none.
 */
export class SystemMemoryFiles implements MemoryFiles {
  private own: { readonly file: number; readonly name: MemoryFileName } | undefined;
  private peers: number | undefined;
  private isClosed = false;

  offer(): MemoryFileName | undefined {
    if (this.own === undefined && !this.isClosed) this.own = makeFile();
    return this.own?.name;
  }

  accept({ path, proof }: MemoryFileName): boolean {
    this.peers ??= this.isClosed ? undefined : openFile(path, proof);
    return this.peers !== undefined;
  }

  write(at: number, bytes: Uint8Array): boolean {
    const { peers } = this;
    const isPlace = Number.isSafeInteger(at) && at >= PROOF_BYTES;
    if (peers === undefined || !isPlace || at + bytes.byteLength > FILE_BYTES_MAX) return false;
    try {
      return writeSync(peers, bytes, 0, bytes.byteLength, at) === bytes.byteLength;
    } catch {
      return false; // No memory is left, or no more than a container may have.
    }
  }

  read(at: number, into: Uint8Array): void {
    const nbytes = this.own === undefined ? 0 : readSync(this.own.file, into, { position: at });
    if (nbytes === into.byteLength) return;
    throw new RangeError(`${nbytes} of ${into.byteLength} bytes are in the memory file`);
  }

  clear(): void {
    if (this.own !== undefined) ftruncateSync(this.own.file, PROOF_BYTES);
  }

  close(): void {
    this.isClosed = true;
    if (this.own !== undefined) closeSync(this.own.file);
    if (this.peers !== undefined) closeSync(this.peers);
    this.own = undefined;
    this.peers = undefined;
  }
}

/** Undefined where the system has no such files, or no more. */
function makeFile(): { readonly file: number; readonly name: MemoryFileName } | undefined {
  if (process.platform !== 'linux') return undefined;
  let file: number | undefined;
  try {
    file = openSync(FOLDER, WITHOUT_NAME | constants.O_RDWR | constants.O_EXCL, 0o600);
    const proof = randomBytes(PROOF_BYTES);
    writeSync(file, proof);
    return { file, name: { path: `/proc/${process.pid}/fd/${file}`, proof } };
  } catch {
    if (file !== undefined) closeSync(file);
    return undefined;
  }
}

function openFile(path: string, proof: Uint8Array): number | undefined {
  if (process.platform !== 'linux' || !OPEN_FILE.test(path)) return undefined;
  if (proof.byteLength !== PROOF_BYTES) return undefined;
  let file: number | undefined;
  try {
    // Not opened first: to open a device or a pipe may do something.
    if (!isMemoryFile(statSync(path))) return undefined;
    file = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    const found = Buffer.alloc(PROOF_BYTES);
    readSync(file, found, { position: 0 });
    if (isMemoryFile(fstatSync(file)) && found.equals(proof)) return file;
  } catch {
    // It is not there, or not for this user.
  }
  if (file !== undefined) closeSync(file);
  return undefined;
}

function isMemoryFile(stats: Stats): boolean {
  return stats.isFile() && stats.nlink === 0 && isOwn(stats) && stats.dev === statSync(FOLDER).dev;
}
