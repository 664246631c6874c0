import type { Clock, Timer } from '../api/clock.ts';
import { asError } from '../api/errors.ts';
import { printable } from '../util/values.ts';

/** Rounds in which the delay passes; milliseconds of one round at least and at most. */
const ROUNDS = 20;
const ROUND_MS_MIN = 250;
const ROUND_MS_MAX = 5000;

/**
 * Calls back once, after `delayMs` in which this process was awake. Time in which the process
 * stands still (paused, swapped out, or blocked) does not count, because the process receives
 * nothing from its peers meanwhile. After a stall at the very end there is one more round, because
 * messages that the sockets have received meanwhile have not been read yet. One short timer at a
 * time.
 *
 * @param delayMs - 0 or less: in the next turn; Infinity: never
 * @param onStalled - called with the length of a stall, when the process continues
 */
export function setAwakeTimer(
  clock: Clock,
  delayMs: number,
  callback: () => void,
  onStalled?: (stalledMs: number) => void,
): Timer {
  if (delayMs === Infinity) return clock.setTimer(delayMs, callback);
  const roundMs = Math.min(Math.max(Math.ceil(delayMs / ROUNDS), ROUND_MS_MIN), ROUND_MS_MAX);
  let leftMs = delayMs;
  let isExtended = false;
  let timer: Timer;
  const arm = (): void => {
    const waitMs = Math.min(roundMs, leftMs);
    const dueMs = clock.nowMs() + waitMs;
    timer = clock.setTimer(waitMs, () => {
      const stalledMs = clock.nowMs() - dueMs;
      const isLate = stalledMs > roundMs / 2;
      leftMs -= waitMs;
      if (isLate && leftMs <= 0 && !isExtended) {
        isExtended = true;
        leftMs = roundMs;
      }
      // It may cancel this timer.
      if (leftMs > 0) arm();
      if (isLate) onStalled?.(stalledMs);
      if (leftMs <= 0) callback();
    });
  };
  arm();
  return { cancel: () => timer.cancel() };
}

/**
 * Waits, but not longer than until the signal is aborted.
 * @returns whether it is
 */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      resolve(signal.aborted);
    };
    const timer = clock.setTimer(delayMs, end);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

/**
 * Waits until something settles, but not longer than until the signal is aborted.
 * @returns whether it is
 */
export function untilAborted(waiting: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener('abort', end);
      resolve(signal.aborted);
    };
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    else waiting.then(end, end);
  });
}

/**
 * Settles as the promise does, or rejects after a time.
 * @param onTimeout - makes the error
 */
export async function withTimeout<T>(
  clock: Clock,
  promise: Promise<T>,
  timeoutMs: number,
  onTimeout: () => Error,
): Promise<T> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimer(timeoutMs, () => reject(onTimeout()));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer?.cancel();
  }
}

// Work that no caller waits for.

/**
 * Lets work continue without a caller that awaits it, and handles its failure. A promise without
 * such a handler ends the process when it rejects, so a lint rule demands this call, `await` or
 * `.catch`.
 *
 * @param failed - receives what the work rejects with; a text is shown as a warning of the process,
 *   for work that has no logger and is not expected to fail. What the handler throws becomes such a
 *   warning, too.
 */
export function inBackground(
  work: PromiseLike<unknown>,
  failed: string | ((error: Error) => void),
): void {
  work.then(undefined, (thrown: unknown) => {
    const error = asError(thrown);
    if (typeof failed === 'string') warn(failed, error);
    else {
      try {
        failed(error);
      } catch (second) {
        warn('a failure of work in the background could not be handled', second as Error);
      }
    }
  });
}

function warn(text: string, error: Error): void {
  process.emitWarning(printable(`${text}: ${error.message}`), { detail: error.stack ?? '' });
}

/** True when a process of this machine is there, even one of another user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
