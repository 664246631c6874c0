import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Clock, YardmasterError } from '../../core/api/index.ts';
import { isAlive } from '../../core/shared/timers.ts';
import { type FileSystem, readSmallText, SYSTEM_FILES } from './segment-file.ts';

const NAME = /^lock\.(\d+)$/;

/** An owner shows this often that it lives. */
export const BEAT_MS = 1000;
/** An owner whose process cannot be seen, and that has not shown for so long that it lives, has lost its lock. */
export const LEASE_MS = 5000;

/** The process that has a lock. A lock that was given back has no `pid`. */
interface Owner {
  readonly pid?: number;
  /** Distinguishes processes that had the same id one after the other. */
  readonly startedAt?: string;
  readonly host?: string;
  readonly boot?: string;
  /** Containers of one host name may have processes of the same ids. */
  readonly pidNamespace?: string;
}

/**
 * Makes sure that one process at a time uses a folder. Files `lock.1`, `lock.2`, … name their owners; the
 * highest number counts. A number is made once (`O_EXCL`), so of several processes that find a lock whose
 * owner has died, one gets the next number.
 *
 * Whether an owner of the same host and process namespace lives, the kernel knows. Of others only the heartbeat tells:
 * who wants the folder watches that for {@link LEASE_MS}, by its own clock.
 */
export class FolderLock {
  private beats = 0;

  private constructor(
    private readonly folder: string,
    private readonly number: number,
    private readonly files: FileSystem,
  ) {}

  /**
   * Watches the owner of a folder, if it has one whose process cannot be seen from here.
   * @returns what {@link take} has to know: the heartbeat that has stopped
   * @throws YardmasterError `ERR_JOURNAL` when the heart beats; errors of the file system
   */
  static async watch(
    folder: string,
    clock: Clock,
    files: FileSystem = SYSTEM_FILES,
  ): Promise<string | undefined> {
    const first = foreignBeat(folder, files);
    if (first === undefined) return undefined;
    const endMs = clock.nowMs() + LEASE_MS;
    while (clock.nowMs() < endMs) {
      await new Promise<void>((resolve) => void clock.setTimer(BEAT_MS / 2, resolve));
      const beat = foreignBeat(folder, files);
      if (beat === undefined) return undefined;
      if (beat !== first) checkFree(folder, highest(folder, files), files, undefined);
    }
    return first;
  }

  /**
   * @param stopped - of {@link watch}
   * @throws YardmasterError `ERR_JOURNAL` when a living process has the folder; errors of the file system
   */
  static take(folder: string, files: FileSystem = SYSTEM_FILES, stopped?: string): FolderLock {
    for (;;) {
      const last = highest(folder, files);
      if (last > 0) checkFree(folder, last, files, stopped);
      const lock = new FolderLock(folder, last + 1, files);
      try {
        files.writeFileSync(lock.path, JSON.stringify(thisProcess(files)), { flag: 'wx' });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue;
        throw error;
      }
      if (highest(folder, files) !== last + 1) {
        files.rmSync(lock.path, { force: true }); // It was made after a look at a number that is gone by now.
        continue;
      }
      for (const number of numbers(folder, files)) {
        if (number > last) continue;
        files.rmSync(pathOf(folder, number), { force: true });
        files.rmSync(beatOf(folder, number), { force: true });
      }
      lock.beat();
      return lock;
    }
  }

  /**
   * Shows that the owner lives, to those that cannot see its process. Never throws.
   * @returns false when another process has taken the folder, because this one had stood still for too long
   */
  beat(): boolean {
    const { folder, number, files } = this;
    try {
      if (highest(folder, files) > number) return false;
      files.writeFileSync(beatOf(folder, number), String(++this.beats));
    } catch {
      // A disk that is full or out of reach says nothing of the lock.
    }
    return true;
  }

  /** The next process may use the folder. Never throws. */
  release(): void {
    const { folder, number, files } = this;
    try {
      files.writeFileSync(this.path, '{}');
      files.rmSync(beatOf(folder, number), { force: true });
    } catch {
      // The next one finds that this process has ended.
    }
  }

  private get path(): string {
    return pathOf(this.folder, this.number);
  }
}

function pathOf(folder: string, number: number): string {
  return join(folder, `lock.${number}`);
}

function beatOf(folder: string, number: number): string {
  return join(folder, `lock.${number}.beat`);
}

/** The heartbeat of the owner of a folder, if its process cannot be seen from here. */
function foreignBeat(folder: string, files: FileSystem): string | undefined {
  const number = highest(folder, files);
  const owner = number === 0 ? {} : readOwner(pathOf(folder, number), files);
  if (owner.pid === undefined || isVisible(owner, files)) return undefined;
  return beatText(folder, number, files);
}

function beatText(folder: string, number: number, files: FileSystem): string {
  try {
    return `${number} ${readSmallText(beatOf(folder, number), files)}`;
  } catch {
    return `${number} `;
  }
}

function isVisible({ host, pidNamespace }: Owner, files: FileSystem): boolean {
  const here = thisProcess(files);
  return host === here.host && pidNamespace === here.pidNamespace;
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

/**
 * @param stopped - heartbeat that has not gone on for a while
 * @throws YardmasterError `ERR_JOURNAL`
 */
function checkFree(
  folder: string,
  number: number,
  files: FileSystem,
  stopped: string | undefined,
): void {
  const path = pathOf(folder, number);
  const owner = readOwner(path, files);
  const { pid, host, boot, startedAt } = owner;
  if (pid === undefined) return;
  const here = thisProcess(files);
  if (isVisible(owner, files)) {
    if (boot !== here.boot || startOf(pid, files) !== startedAt || !isAlive(pid)) return;
    throw new YardmasterError(
      'ERR_JOURNAL',
      `the journal ${folder} is in use by process ${pid}; stop that scheduler, or give this one another folder`,
      { folder, pid },
    );
  }
  if (beatText(folder, number, files) === stopped) return;
  throw new YardmasterError(
    'ERR_JOURNAL',
    `the journal ${folder} is in use by process ${pid} of ${String(host)}, whose heartbeat goes on; stop that scheduler, or give this one another folder`,
    { folder, pid, host },
  );
}

/** A lock that is not readable was being made when its process was killed. */
function readOwner(path: string, files: FileSystem): Owner {
  try {
    const owner: unknown = JSON.parse(readSmallText(path, files));
    return typeof owner === 'object' && owner !== null ? owner : {};
  } catch {
    return {};
  }
}

function thisProcess(files: FileSystem): Owner {
  const startedAt = startOf(process.pid, files);
  const boot = textOf('/proc/sys/kernel/random/boot_id', files);
  const pidNamespace = ownNamespace();
  return {
    pid: process.pid,
    host: hostname(),
    pidNamespace,
    ...(boot === undefined ? {} : { boot: boot.trim() }),
    ...(startedAt === undefined ? {} : { startedAt }),
  };
}

/**
 * The start of the process, in ticks since the machine's. Undefined where the system does not say it, and for one
 * that has ended and was not waited for by the process that started it, as happens in containers.
 */
function startOf(pid: number, files: FileSystem): string | undefined {
  const stat = textOf(`/proc/${pid}/stat`, files);
  // The name of the program, in brackets, may have spaces.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? undefined : fields?.[19];
}

/** Processes see each other by their ids in one namespace; undefined where the system has none. */
function ownNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return undefined;
  }
}

function textOf(path: string, files: FileSystem): string | undefined {
  try {
    return files.readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
