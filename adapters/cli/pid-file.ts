import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

import { YardmasterError } from '../../core/api/index.ts';

/**
 * Writes the id of this process into a file, which is deleted when the process ends.
 * @throws YardmasterError `ERR_CONFIG` when it cannot be written
 */
export function writePidFile(path: string): void {
  try {
    // In a folder of all users, a link of that name would have another file overwritten.
    const draft = `${path}.${randomUUID()}.tmp`;
    writeFileSync(draft, `${process.pid}\n`, { flag: 'wx' });
    renameSync(draft, path);
  } catch (cause) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `the file for the process id ${path} cannot be written: ${(cause as Error).message}`,
      { pidFile: path },
      { cause },
    );
  }
  process.once('exit', () => {
    try {
      if (Number(readFileSync(path, 'utf8')) === process.pid) rmSync(path);
    } catch {
      // It was deleted or replaced meanwhile.
    }
  });
}
