import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

import { YardmasterError } from '../../../core/api/index.ts';
import type { Fields } from '../context.ts';
import { toPlain } from '../codec/plain.ts';

/**
 * The file by which Dask's clients and workers find the scheduler (`--scheduler-file`). It appears whole,
 * as they poll for it, and is deleted when the scheduler ends, unless another scheduler has replaced it.
 */
export class SchedulerFile {
  private constructor(
    private readonly path: string,
    private readonly id: string,
  ) {}

  /** @throws YardmasterError `ERR_CONFIG` when it cannot be written */
  static write(path: string, id: string, identity: Fields): SchedulerFile {
    const temporary = `${path}.${randomUUID()}.tmp`;
    try {
      writeFileSync(temporary, `${JSON.stringify(toPlain(identity), undefined, 2)}\n`, {
        flag: 'wx', // In a folder of all users, a link of that name would have another file overwritten.
      });
      renameSync(temporary, path);
    } catch (cause) {
      throw new YardmasterError(
        'ERR_CONFIG',
        `the scheduler file ${path} cannot be written: ${(cause as Error).message}`,
        { schedulerFile: path },
        { cause },
      );
    }
    return new SchedulerFile(path, id);
  }

  delete(): void {
    try {
      const { id } = JSON.parse(readFileSync(this.path, 'utf8')) as { readonly id?: unknown };
      if (id === this.id) rmSync(this.path, { force: true });
    } catch {
      // It is gone already, or no longer ours.
    }
  }
}
