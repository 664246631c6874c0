import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { YardmasterError } from '../../../core/api/index.ts';
import {
  AccessFile,
  accessFolder,
  accessOfRole,
  type ACCESS_ROLES,
  formatAccess,
  KEY_NAMES,
  newAccess,
} from '../../transports/tls.ts';
import { checkOutput } from '../command-line.ts';

/** `yardmaster access new FILE`. */
export function newAccessFile(path: string): number {
  if (existsSync(path)) {
    throw new YardmasterError(
      'ERR_ACCESS',
      `${path} exists; to replace its keys, run "yardmaster access rotate ${path}"`,
      { file: path },
    );
  }
  new AccessFile(path).write(newAccess());
  process.stdout.write(`${path}\n`);
  return 0;
}

/** `yardmaster access rotate`: new keys. Listeners use them at once; open connections stay. */
export function rotateAccess(given: string | undefined): number {
  const file = existing(given);
  const access = file.read();
  const names = Object.keys(access.keys);
  if (KEY_NAMES.some((name) => !names.includes(name))) {
    throw new YardmasterError(
      'ERR_ACCESS',
      `${file.path} has the keys of ${names.join(' and ')} only, so that new ones would fit no cluster; rotate the file of the scheduler, and cut it down anew with "yardmaster access show"`,
      { file: file.path, keys: names },
    );
  }
  file.write({ ...access, keys: newAccess().keys });
  process.stdout.write(`${file.path}\n`);
  return 0;
}

/** `yardmaster access show`: what may be given to the holder of a role, on stdout or in a file that only its owner can read. */
export function showAccess(
  given: string | undefined,
  { role, output }: { readonly role: (typeof ACCESS_ROLES)[number]; readonly output?: string },
): number {
  const file = existing(given);
  const access = accessOfRole(file.read(), role);
  checkOutput(output, file.path);
  if (output !== undefined) new AccessFile(output).write(access);
  process.stdout.write(output === undefined ? formatAccess(access) : `${output}\n`);
  return 0;
}

/** The named file, that of the environment, or the newest one that a scheduler has left. */
function existing(given = process.env['YARDMASTER_ACCESS']): AccessFile {
  if (given !== undefined && given !== '') return new AccessFile(given);
  const folder = accessFolder();
  const files = existsSync(folder)
    ? readdirSync(folder).filter((name) => name.endsWith('.json'))
    : [];
  const [newest] = files
    .map((name) => join(folder, name))
    .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  if (newest !== undefined) return new AccessFile(newest);
  throw new YardmasterError(
    'ERR_ACCESS',
    `there is no access file in ${folder}; name one, or start a scheduler at tls://…`,
    { folder },
  );
}
