import { exitProcess } from '../executors/threads/spawn.ts';

/** Something that runs until it is closed, or ends by itself. */
export interface Service {
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
