import { readFileSync, rmSync } from 'node:fs';
import { YardmasterError } from '../../core/api/index.ts';
import { transportsOfFile } from '../app/start-scheduler.ts';
import { Client } from '../client/index.ts';
import { exitProcess } from '../executors/threads/spawn.ts';
import { replaceFile } from '../log/segment-file.ts';
import { say } from './terminal.ts';

/** The flags of all commands that ask a scheduler. */
export interface ClientFlags {
  readonly scheduler: string;
  /** Its `scheduler.transport` reaches the scheduler. */
  readonly config?: string;
  readonly json?: boolean;
}

/** Connects, works, and leaves in good order, also when the work fails. */
export async function withClient<T>(
  { scheduler, config }: Pick<ClientFlags, 'scheduler' | 'config'>,
  name: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const transports = await transportsOfFile(config);
  const client = await Client.connect(scheduler, { name, transports });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Prints an answer as JSON, or as text. */
export function print(answer: unknown, text: string, { json }: Pick<ClientFlags, 'json'>): void {
  const shown = json === true ? JSON.stringify(answer, undefined, 2) : text;
  say(shown === '' ? '' : `${shown}\n`);
}

/**
 * Writes the id of this process into a file, which is deleted when the process ends.
 * @throws YardmasterError `ERR_CONFIG` when it cannot be written
 */
export function writePidFile(path: string): void {
  try {
    replaceFile(path, `${process.pid}\n`);
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

/** Something that runs until it is closed, or ends by itself. */
interface Service {
  /** Resolves when it is over; rejects when it failed. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

const INTERRUPTED_CODE = 130;

/**
 * Waits for a service to end, or for a signal to close it. A second signal ends the process at once.
 *
 * @returns the exit code: 0, or 130 after Ctrl-C
 * @throws what the service failed with
 */
export async function untilStopped(service: Service): Promise<number> {
  let code = 0;
  let isStopping = false;
  let closing: Promise<void> = Promise.resolve();
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) exitProcess(INTERRUPTED_CODE);
    isStopping = true;
    if (signal === 'SIGINT') code = INTERRUPTED_CODE;
    closing = service.close();
    closing.catch(() => undefined); // It is awaited below.
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  try {
    await service.closed;
    await closing;
    return code;
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
  }
}

/**
 * Does work that a signal cuts off by closing what it needs, which is closed at its end as well.
 *
 * @param work - asks whether it was cut off; what it fails with then does not count
 * @returns the exit code: 0, or 130 after Ctrl-C
 * @throws what the work failed with
 */
export function untilDone(
  work: (isCutOff: () => boolean) => Promise<void>,
  close: () => Promise<void>,
): Promise<number> {
  let isCutOff = false;
  const done = async (): Promise<void> => {
    try {
      await work(() => isCutOff);
    } catch (error) {
      if (!isCutOff) throw error;
    } finally {
      await close();
    }
  };
  return untilStopped({
    closed: done(),
    close: () => {
      isCutOff = true;
      return close();
    },
  });
}
