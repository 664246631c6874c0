import type { Clock, Timer } from '../api/clock.ts';

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
