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
import { type PeerRole, type Role, YardmasterError } from '../../core/api/index.ts';
import { isAlive } from '../../core/shared/timers.ts';
import { isOwn } from '../log/private-folder.ts';
import { makeSocketFolder, removeSocketFolder } from './local-sockets.ts';

/** The form of an access file. */
const FORM = 'access/1';

/** 256 bits cannot be guessed, whatever an attacker has recorded. */
const KEY_BYTES = 32;

/** Whose keys there are. `data` opens the data ports of workers, and nothing of the scheduler. */
export const KEY_NAMES = ['worker', 'client', 'admin', 'viewer', 'data'] as const;

/** The secrets of a cluster by role, as far as their holder knows them. */
export interface Access {
  /** Of the scheduler; a hint for people, and for commands without an address. */
  readonly address?: string;
  readonly keys: Readonly<Partial<Record<PeerRole, string>>>;
  /** The process with which the file ends. */
  readonly owner?: Owner;
}

/** A process, on a machine. */
interface Owner {
  readonly pid: number;
  readonly host: string;
}

/** The keys that each role knows. Each knows the keys of its own listeners only, so that no role can act as another. */
const KEYS_OF_ROLE: Readonly<Record<Exclude<PeerRole, 'data'>, readonly PeerRole[]>> = {
  worker: ['worker', 'data'],
  client: ['client', 'data'],
  admin: ['admin', 'data'],
  viewer: ['viewer'],
};

/** Roles that an access file can be cut down to. */
export const ACCESS_ROLES = Object.keys(KEYS_OF_ROLE) as readonly Exclude<PeerRole, 'data'>[];

/** New keys for every role. */
export function newAccess(address?: string): Access {
  const keys = Object.fromEntries(
    KEY_NAMES.map((name) => [name, randomBytes(KEY_BYTES).toString('base64url')]),
  );
  return { address, keys };
}

/** The access that may be given to the holder of a role. */
export function accessOfRole(access: Access, role: Exclude<PeerRole, 'data'>): Access {
  const names = KEYS_OF_ROLE[role];
  const keys = Object.entries(access.keys).filter(([name]) => names.includes(name as PeerRole));
  const { address } = access;
  return { address, keys: Object.fromEntries(keys) };
}

/** As an access file has it. */
export function formatAccess({ address, keys, owner }: Access): string {
  return `${JSON.stringify({ yardmaster: FORM, address, owner, keys }, undefined, 2)}\n`;
}

/**
 * Reads the text of an access file.
 * @param file - for errors
 * @throws YardmasterError `ERR_ACCESS`
 */
function parseAccess(text: string, file: string): Access {
  const { yardmaster, address, keys, owner } = fieldsOf(text);
  if (yardmaster !== FORM) throw notAccess(file, `it has no field "yardmaster" with "${FORM}"`);
  if (address !== undefined && typeof address !== 'string') {
    throw notAccess(file, 'its address is not a text');
  }
  const found: [string, string][] = [];
  for (const [name, key] of Object.entries(keys ?? {})) {
    if (!(KEY_NAMES as readonly string[]).includes(name))
      throw notAccess(file, `it has a key for "${name.slice(0, 60)}", which is no role`);
    if (typeof key !== 'string' || Buffer.from(key, 'base64url').length !== KEY_BYTES) {
      throw notAccess(file, `its key for "${name}" is not ${KEY_BYTES} bytes in base64url`);
    }
    found.push([name, key]);
  }
  if (found.length === 0) throw notAccess(file, 'it has no keys');
  return {
    address,
    ...(isOwner(owner) ? { owner } : {}),
    keys: Object.fromEntries(found),
  };
}

function isOwner(value: unknown): value is Owner {
  const { pid, host } = (value ?? {}) as Partial<Record<string, unknown>>;
  return Number.isSafeInteger(pid) && (pid as number) > 0 && typeof host === 'string';
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function notAccess(file: string, why: string): YardmasterError {
  return new YardmasterError(
    'ERR_ACCESS',
    `${file} is not an access file: ${why}; make one with "yardmaster access new"`,
    { file },
  );
}

/** Only the owner reads and writes it. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
/** Permissions of users other than owner and group. */
const OTHERS = 0o007;

/** The folder in which schedulers of this user leave their access files: one for each port. */
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

  /**
   * Its keys; a file that does not exist is made with new ones, and one that was temporary stays from now on.
   * @throws YardmasterError `ERR_ACCESS`
   */
  ensure(): Access {
    if (!this.exists) this.write(newAccess());
    const { owner, ...access } = this.read();
    if (owner !== undefined) this.write(access);
    return access;
  }

  /** A process of this machine that is no more had it for as long as it lived. */
  get isAbandoned(): boolean {
    const owner = ownerOf(this);
    return owner?.host === hostname() && !isAlive(owner.pid);
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
    if (name.endsWith('.json') && file.isAbandoned) file.remove();
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

/** Variables of the environment that name the files of certificates. */
export const CERTIFICATE_VARIABLES = {
  ca: 'YARDMASTER_TLS_CA_FILE',
  cert: 'YARDMASTER_TLS_CERT',
  key: 'YARDMASTER_TLS_KEY',
} as const;

/** The kind of a listener: a scheduler, or the data port of a worker. */
export type Serves = 'scheduler' | 'data';

/** Keys that open each kind of listener. */
export const OPENED_BY: Readonly<Record<Serves, readonly PeerRole[]>> = {
  scheduler: ['worker', 'client', 'admin', 'viewer'],
  data: ['data'],
};

/** Keys that a connecting side uses, the most powerful one that it has first. */
export const KEYS_OF: Readonly<Record<Role, readonly PeerRole[]>> = {
  worker: ['worker'],
  client: ['admin', 'client', 'viewer'],
  peer: ['data'],
};

/** Time for a peer to prove who it is. */
export const HANDSHAKE_TIMEOUT_MS = 5000;
