import * as fs from 'node:fs';
import { removePrivateFolder } from './private-folder.ts';

/** Node's number for an open file. */
type Descriptor = number;

/**
 * The operations on files that journals and spilled results consist of, as `node:fs` has them, and
 * the deletion of a folder that no other user can misdirect. Tests give a
 * file system in memory that fails as disks do.
 */
export interface FileSystem {
  mkdirSync(
    path: string,
    options: { readonly recursive: true; readonly mode?: number },
  ): string | undefined;
  mkdtempSync(prefix: string): string;
  readdirSync(path: string): string[];
  rmSync(path: string, options: { readonly force: true }): void;
  removePrivateFolder(path: string, mayRemove?: (opened: string) => boolean): boolean;
  readFileSync(file: string | Descriptor, encoding: 'utf8'): string;
  writeFileSync(
    path: string,
    content: string | Uint8Array,
    options?: { readonly flag?: 'wx'; readonly mode?: number },
  ): void;
  openSync(path: string, flags: string | number, mode?: number): Descriptor;
  fstatSync(file: Descriptor): { readonly size: number; isFile(): boolean };
  readSync(
    file: Descriptor,
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): number;
  writeSync(file: Descriptor, bytes: Uint8Array, offset: number): number;
  fsyncSync(file: Descriptor): void;
  fdatasyncSync(file: Descriptor): void;
  fdatasync(file: Descriptor, done: (error: Error | null) => void): void;
  closeSync(file: Descriptor): void;
}

/** The files of this machine. */
export const SYSTEM_FILES: FileSystem = { ...fs, removePrivateFolder };

/** Puts the names in a folder on the disk. @throws Error of the file system */
export function syncFolder(path: string, files: FileSystem): void {
  const folder = files.openSync(path, 'r');
  try {
    files.fsyncSync(folder);
  } finally {
    files.closeSync(folder);
  }
}
