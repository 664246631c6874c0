import { randomBytes } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, hostname } from 'node:os';
import { dirname, join } from 'node:path';

import { YardmasterError } from '../../../core/api/index.ts';
import { isAlive } from '../../../core/shared/is-alive.ts';
import { isOwn } from '../../log/private-folder.ts';
import { type Access, formatAccess, newAccess, parseAccess } from './access.ts';
import { makeSocketFolder, removeSocketFolder } from './local-sockets.ts';

/** Only the owner reads and writes it. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
/** Permissions of users other than owner and group. */
const OTHERS = 0o007;

/** Where schedulers of this user leave their access files: one for each port. */
export function accessFolder(): string {
  return join(process.env['YARDMASTER_HOME'] ?? join(homedir(), '.yardmaster'), 'access');
}

/**
 * The access file for an address: the given one, else that of the environment (`YARDMASTER_ACCESS`), else the
 * one that a scheduler of this user has left for the port.
 * @param asksEnvironment - false: what the environment names does not count
 */
export function accessFileFor(address: string, given?: string, asksEnvironment = true): AccessFile {
  const file = given ?? (asksEnvironment ? process.env['YARDMASTER_ACCESS'] : undefined);
  if (file !== undefined && file !== '') return new AccessFile(file);
  const port = /:(\d+)\/?$/.exec(address)?.[1] ?? '0';
  return new AccessFile(join(accessFolder(), `${port}.json`));
}

/** Files that end with this process. */
const temporary = new Set<AccessFile>();

function removeTemporary(): void {
  for (const file of temporary) file.remove();
}

/** A file with the keys of a cluster. It is read again when it has changed, so that keys can be rotated. */
export class AccessFile {
  private known: { readonly access: Access; readonly stamp: string } | undefined;

  constructor(readonly path: string) {}

  get exists(): boolean {
    return existsSync(this.path);
  }

  /** @throws YardmasterError `ERR_ACCESS` */
  read(): Access {
    const stats = this.stats();
    const stamp = `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
    if (this.known?.stamp === stamp) return this.known.access;
    if (process.platform !== 'win32' && (stats.mode & OTHERS) !== 0) {
      throw new YardmasterError(
        'ERR_ACCESS',
        `every user of this machine can read ${this.path}, so that its keys are no secrets; run "chmod 600 ${this.path}" if no other user could have read it, else replace the keys where the scheduler runs ("yardmaster access rotate") and copy the file anew`,
        { file: this.path },
      );
    }
    const access = parseAccess(readFileSync(this.path, 'utf8'), this.path);
    this.known = { access, stamp };
    return access;
  }

  /** Replaces the file in one step. @throws YardmasterError `ERR_ACCESS` */
  write(access: Access): void {
    try {
      mkdirSync(dirname(this.path), { recursive: true, mode: FOLDER_MODE });
      // In a folder of all users another one could have made a file of that name, which it reads.
      const draft = `${this.path}.${randomBytes(8).toString('hex')}.tmp`;
      writeFileSync(draft, formatAccess(access), { mode: FILE_MODE, flag: 'wx' });
      renameSync(draft, this.path);
    } catch (cause) {
      throw new YardmasterError(
        'ERR_ACCESS',
        `the keys of the cluster cannot be written to ${this.path}: ${(cause as Error).message}; name another file (--access FILE) or folder (YARDMASTER_HOME), or listen without keys (--insecure)`,
        { file: this.path },
        { cause },
      );
    }
  }

  /** Deletes it. */
  remove(): void {
    if (temporary.delete(this) && temporary.size === 0) process.off('exit', removeTemporary);
    rmSync(this.path, { force: true });
    removeSocketFolder(this.path);
  }

  /** Makes it for as long as this process lives, and deletes those of processes that were killed. */
  makeTemporary(): void {
    this.write({ ...newAccess(), owner: { pid: process.pid, host: hostname() } });
    makeSocketFolder(this.path);
    removeAbandoned(dirname(this.path));
    if (temporary.size === 0) process.once('exit', removeTemporary);
    temporary.add(this);
  }

  /** Its keys; a file that does not exist is made with new ones. @throws YardmasterError `ERR_ACCESS` */
  ensure(): Access {
    if (!this.exists) this.write(newAccess());
    return this.read();
  }

  /** Notes where the scheduler listens. Returns what the file said before, if that was another address. */
  announce(address: string): string | undefined {
    const access = this.read();
    if (access.address === address) return undefined;
    this.write({ ...access, address });
    return access.address;
  }

  private stats(): Stats {
    try {
      return statSync(this.path);
    } catch (cause) {
      throw new YardmasterError(
        'ERR_ACCESS',
        `there are no keys for the cluster: ${this.path} cannot be read; start the scheduler on this machine, or name its access file (--access FILE, YARDMASTER_ACCESS)`,
        { file: this.path },
        { cause },
      );
    }
  }
}

/** Deletes the files of processes of this machine that are no more. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = new AccessFile(join(folder, name));
    const owner = name.endsWith('.json') ? ownerOf(file) : undefined;
    if (owner?.host === hostname() && !isAlive(owner.pid)) file.remove();
  }
}

function ownerOf(file: AccessFile): Access['owner'] {
  try {
    // Another user who can write here may have planted it, to have something of that name deleted.
    return isOwn(lstatSync(file.path)) ? file.read().owner : undefined;
  } catch {
    return undefined; // Not one that this user can use; it stays.
  }
}
