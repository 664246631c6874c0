/**
 * Unix sockets beside encrypted data ports. Data that stays on the machine need not be encrypted where the system itself
 * lets nothing connect that could not read the keys: the sockets lie beside the access file, in a folder with the
 * same permissions.
 */
import { mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { isLoopback } from '../../core/util/hosts.ts';
import { isPrivateFolder, removePrivateFolder } from '../log/private-folder.ts';
import type { HostAndPort } from './tcp/index.ts';
import type { Access } from './access.ts';

/** A path of a socket has at most so many bytes everywhere. */
const PATH_BYTES_MAX = 103;

/** The access file of the cluster. */
interface KeyFile {
  readonly path: string;
  read(): Access;
}

/** Makes the folder for the sockets of a cluster, which is empty then. What another user has put there stays unused. */
export function makeSocketFolder(accessPath: string): void {
  if (process.platform === 'win32') return;
  const folder = folderOf(accessPath);
  removePrivateFolder(folder);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

export function removeSocketFolder(accessPath: string): void {
  removePrivateFolder(folderOf(accessPath));
}

/**
 * The path of the socket of a data port. Undefined: the cluster has no folder for them, the port is not one of this
 * machine alone, or other users could enter the folder.
 */
export function socketPath(file: KeyFile, { host, port }: HostAndPort): string | undefined {
  if (!isLoopback(host) || !isPrivateFolder(folderOf(file.path))) return undefined;
  // A home folder may be that of several machines.
  if (file.read().owner?.host !== hostname()) return undefined;
  const path = join(folderOf(file.path), String(port));
  return Buffer.byteLength(path) > PATH_BYTES_MAX ? undefined : path;
}

function folderOf(accessPath: string): string {
  return `${accessPath.replace(/\.json$/, '')}.sockets`;
}
