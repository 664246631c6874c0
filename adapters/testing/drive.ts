import { YardmasterError } from '../../core/api/index.ts';
import { show } from '../../core/shared/words.ts';
import { isPromise } from '../../core/util/is-promise.ts';
import type { VirtualClock } from '../clocks/virtual-clock.ts';
import { isRealWorkPending, watchRealWork } from './real-work.ts';

/** How far {@link drive} goes. */
export interface DriveOptions {
  /** Virtual milliseconds that may pass. Default 1 000 000. */
  readonly maxMs?: number;
  /**
   * Real milliseconds for which nothing may happen when no timer is left, and for which virtual time stands
   * still while tasks wait in real time. Default 5000.
   */
  readonly idleMs?: number;
}

const MAX_MS = 1_000_000;
const IDLE_MS = 5000;

/**
 * Lets virtual time pass, timer by timer, until a promise is settled, and returns what it resolves to. Real
 * time passes as well where something takes it: modules that are imported, files, sockets. While a task waits
 * for a timer, file or connection of its own, virtual time stands still, for `idleMs` at most.
 *
 * @throws what the promise rejects with; YardmasterError `ERR_CONFIG` when it is none, `ERR_TIMEOUT` when the time is over, or when no
 *   timer is left and nothing happens any more
 */
export async function drive<T>(
  clock: VirtualClock,
  promise: PromiseLike<T>,
  options: DriveOptions = {},
): Promise<T> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  checkPromise(promise);
  promise.then(settle, settle);
  await driveUntil(clock, () => isSettled, options);
  return promise;
}

/**
 * As {@link drive}, until a predicate holds.
 * @throws YardmasterError `ERR_TIMEOUT`
 */
export async function driveUntil(
  clock: VirtualClock,
  holds: () => boolean,
  options: DriveOptions = {},
): Promise<void> {
  const stopWatching = watchRealWork();
  try {
    await passUntil(clock, holds, options);
  } finally {
    stopWatching();
  }
}

async function passUntil(
  clock: VirtualClock,
  holds: () => boolean,
  { maxMs = MAX_MS, idleMs = IDLE_MS }: DriveOptions,
): Promise<void> {
  const limitMs = clock.nowMs() + maxMs;
  let idleSinceMs: number | undefined;
  let standingSinceMs: number | undefined;
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    if (holds()) return;
    if (isRealWorkPending()) {
      standingSinceMs ??= performance.now();
      if (performance.now() - standingSinceMs <= idleMs) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        continue;
      }
    } else standingSinceMs = undefined;
    const { nextTimerMs } = clock;
    if (nextTimerMs === undefined) {
      idleSinceMs ??= performance.now();
      if (performance.now() - idleSinceMs > idleMs) throw stuck('no timer is left', clock, idleMs);
      continue;
    }
    idleSinceMs = undefined;
    if (nextTimerMs > limitMs) throw stuck(`${maxMs} ms of virtual time are over`, clock, idleMs);
    await clock.advanceToAsync(nextTimerMs);
  }
}

function checkPromise(promise: unknown): void {
  if (isPromise(promise)) return;
  throw new YardmasterError(
    'ERR_CONFIG',
    `drive wants the promise that virtual time shall settle, such as future.result(), got ${show(promise)}`,
  );
}

function stuck(why: string, clock: VirtualClock, idleMs: number): YardmasterError {
  const advice = isRealWorkPending()
    ? `; a task waits for a timer, file or connection for more than ${idleMs} ms of real time: give a larger idleMs`
    : '';
  return new YardmasterError(
    'ERR_TIMEOUT',
    `what drive waits for did not happen: ${why}; the virtual clock stands at ${clock.nowMs()} ms${advice}`,
    { nowMs: clock.nowMs() },
  );
}
