import { hostname } from 'node:os';
import { join } from 'node:path';
import { YardmasterError } from '../../core/api/index.ts';
import { isAlive } from '../../core/shared/is-alive.ts';
import { type FileSystem, SYSTEM_FILES } from './file-system.ts';

const NAME = /^lock\.(\d+)$/;

/** The process that has a lock. A lock that was given back has no `pid`. */
interface Owner {
  readonly pid?: number;
  /** Distinguishes processes that had the same id one after the other. */
  readonly startedAt?: string;
  readonly host?: string;
  readonly boot?: string;
}

/**
 * Makes sure that one process at a time uses a folder. Files `lock.1`, `lock.2`, … name their owners; the
 * highest number counts. A number is made once (`O_EXCL`), so of several processes that find a lock whose
 * owner has died, one gets the next number.
 */
export class FolderLock {
  private constructor(
    private readonly path: string,
    private readonly files: FileSystem,
  ) {}

  /** @throws YardmasterError `ERR_JOURNAL` when a living process has the folder; errors of the file system */
  static take(folder: string, files: FileSystem = SYSTEM_FILES): FolderLock {
    for (;;) {
      const last = highest(folder, files);
      if (last > 0) checkFree(folder, join(folder, `lock.${last}`), files);
      const path = join(folder, `lock.${last + 1}`);
      try {
        files.writeFileSync(path, JSON.stringify(thisProcess(files)), { flag: 'wx' });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
        throw error;
      }
      if (highest(folder, files) !== last + 1) {
        files.rmSync(path, { force: true }); // It was made after a look at a number that is gone by now.
        continue;
      }
      for (const number of numbers(folder, files)) {
        if (number <= last) files.rmSync(join(folder, `lock.${number}`), { force: true });
      }
      return new FolderLock(path, files);
    }
  }

  /** The next process may use the folder. Never throws. */
  release(): void {
    try {
      this.files.writeFileSync(this.path, '{}');
    } catch {
      // The next one finds that this process has ended.
    }
  }
}

function numbers(folder: string, files: FileSystem): number[] {
  return files.readdirSync(folder).flatMap((name) => {
    const number = NAME.exec(name)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
}

function highest(folder: string, files: FileSystem): number {
  return Math.max(0, ...numbers(folder, files));
}

/** @throws YardmasterError `ERR_JOURNAL` */
function checkFree(folder: string, path: string, files: FileSystem): void {
  const owner = readOwner(path, files);
  const { pid, host, boot, startedAt } = owner;
  if (pid === undefined) return;
  const here = thisProcess(files);
  if (host === here.host) {
    if (boot !== here.boot || startOf(pid, files) !== startedAt || !isAlive(pid)) return;
    throw new YardmasterError(
      'ERR_JOURNAL',
      `the journal ${folder} is in use by process ${pid}; stop that scheduler, or give this one another folder`,
      { folder, pid },
    );
  }
  throw new YardmasterError(
    'ERR_JOURNAL',
    `the journal ${folder} was locked by process ${pid} of ${String(host)}, and ${String(here.host)} cannot see whether that is still alive; when it is not, delete ${path}`,
    { folder, pid, host },
  );
}

/** A lock that is not readable was being made when its process was killed. */
function readOwner(path: string, files: FileSystem): Owner {
  try {
    const owner: unknown = JSON.parse(files.readFileSync(path, 'utf8'));
    return typeof owner === 'object' && owner !== null ? owner : {};
  } catch {
    return {};
  }
}

function thisProcess(files: FileSystem): Owner {
  const startedAt = startOf(process.pid, files);
  const boot = textOf('/proc/sys/kernel/random/boot_id', files);
  return {
    pid: process.pid,
    host: hostname(),
    ...(boot === undefined ? {} : { boot: boot.trim() }),
    ...(startedAt === undefined ? {} : { startedAt }),
  };
}

/** When the process was started, in ticks since the machine was; undefined where the system does not say it. */
function startOf(pid: number, files: FileSystem): string | undefined {
  const stat = textOf(`/proc/${pid}/stat`, files);
  // The name of the program, in brackets, may have spaces.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function textOf(path: string, files: FileSystem): string | undefined {
  try {
    return files.readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
