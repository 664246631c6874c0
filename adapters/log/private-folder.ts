/**
 * Deletes folders so that no other user of the machine can direct the deletion elsewhere. A folder that belongs to this
 * user and that nobody else can enter has only entries of this user; what remains is to reach that folder and no
 * other. Linux has a path for an open folder, which no renaming changes. Elsewhere the folders above it must be such that
 * others cannot rename what is in them.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

/** Permissions of the group and of all other users. */
const NOT_THE_OWNER = 0o077;
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
/** Entries of such a folder are renamed and deleted by their owners alone, as in `/tmp`. */
const STICKY = 0o1000;

/** True for a folder, not a link to one, that this user owns, nobody else can enter, and nobody else can replace. */
export function isPrivateFolder(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && isOfThisUserAlone(stats) && isFixed(path);
}

/** True when the file, link or folder belongs to the user of this process; on Windows always. */
export function isOwn({ uid }: { readonly uid: number }): boolean {
  const user = process.geteuid?.();
  return user === undefined || uid === user;
}

/**
 * Deletes a folder with all that is in it, unless it is a link, belongs to another user, or can be entered by others.
 * @param mayRemove - is called with a path of the open folder, which stays that of this folder during the call; false
 *   keeps the folder
 * @returns false when the folder was not touched
 * @throws Error of the file system, when part of the folder could not be deleted
 */
export function removePrivateFolder(
  path: string,
  mayRemove: (opened: string) => boolean = () => true,
): boolean {
  const isRemoved = withFolder(path, (opened, stats) => {
    if (!isOfThisUserAlone(stats) || !mayRemove(opened)) return false;
    for (const name of readdirSync(opened)) {
      rmSync(join(opened, name), { recursive: true, force: true });
    }
    return true;
  });
  if (isRemoved !== true) return false;
  rmdirSync(path); // A link or another folder that took its place is not deleted by this, unless it is empty.
  return true;
}

/** Deletes a file. The folder in which it is may not be a link; what is a link there is deleted itself. */
export function removeFile(path: string): void {
  withFolder(dirname(path), (opened) => {
    try {
      unlinkSync(join(opened, basename(path)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  });
}

/** Undefined when the folder does not exist, is none, or another user could replace it during the call. */
function withFolder<T>(path: string, use: (opened: string, stats: Stats) => T): T | undefined {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  let folder: number;
  try {
    // The last two are undefined on Windows, and then count as 0.
    folder = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return undefined;
    throw error;
  }
  try {
    const stats = fstatSync(folder);
    if (!stats.isDirectory()) return undefined;
    const opened = `/proc/self/fd/${folder}`;
    if (existsSync(opened)) return use(opened, stats);
    return isFixed(path) ? use(path, stats) : undefined;
  } finally {
    closeSync(folder);
  }
}

function isOfThisUserAlone(stats: Stats): boolean {
  if (!stats.isDirectory()) return false;
  return process.platform === 'win32' || (isOwn(stats) && (stats.mode & NOT_THE_OWNER) === 0);
}

/** False when another user could rename or replace a folder on the way to the entry. */
function isFixed(path: string): boolean {
  if (process.platform === 'win32') return true;
  const parent = dirname(resolve(path));
  return [parent, realpathSync(parent)].every((folder) => {
    for (let above = folder; ; above = dirname(above)) {
      if (mayBeChangedByOthers(statSync(above))) return false;
      if (above === dirname(above)) return true;
    }
  });
}

function mayBeChangedByOthers({ uid, gid, mode }: Stats): boolean {
  if (uid !== 0 && !isOwn({ uid })) return true;
  if ((mode & STICKY) !== 0) return false;
  // Many systems give each user a group of his own, whose permissions are his.
  return (
    (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && gid !== process.getegid?.())
  );
}
