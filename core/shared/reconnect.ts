import type { Clock } from '../api/clock.ts';
import { messageOf, YardmasterError } from '../api/errors.ts';
import { pause } from './timers.ts';

/** The reaction of a worker or a client when the connection to its scheduler is gone. */
export type OnSchedulerLost =
  /** It says so and closes. */
  | 'close'
  /** It tries to come back, for as long as it is given. */
  | 'reconnect';

/** The rules of reconnection: how long to try, and how often. */
export interface ReconnectRules {
  /** Milliseconds after which it gives up; Infinity: never. */
  readonly timeoutMs: number;
  /** Milliseconds before the first attempt; twice as many before each further one. */
  readonly firstDelayMs?: number;
  /** Milliseconds; it never waits longer between two attempts. */
  readonly longestDelayMs?: number;
}

/** Of a worker or client that was given no time. */
export const RECONNECT_TIMEOUT_MS = 60_000;
const FIRST_DELAY_MS = 100;
/** A scheduler that is back waits no longer than this for its peers. A refused attempt costs both sides microseconds. */
const LONGEST_DELAY_MS = 500;

/** The outcome of reconnecting. */
export interface CameBack<T> {
  readonly value: T;
  /** At least 1. */
  readonly attempts: number;
  /** Milliseconds that it took. */
  readonly afterMs: number;
}

/**
 * Tries until it succeeds, less and less often. A peer of another version ends it at once: that does
 * not change by itself. The time begins again when the peer was there and was lost once more.
 *
 * @param attempt - given a function to call when the peer has answered, before what may still fail
 * @throws YardmasterError `ERR_TIMEOUT` when the time is over, `ERR_CLOSED` when the signal is
 *   aborted; both with what the last attempt threw as their cause. What it threw, when that is
 *   `ERR_PROTOCOL`
 */
export async function comeBack<T>(
  clock: Clock,
  rules: ReconnectRules,
  signal: AbortSignal,
  attempt: (onAnswer: () => void) => Promise<T>,
): Promise<CameBack<T>> {
  const { timeoutMs, firstDelayMs = FIRST_DELAY_MS, longestDelayMs = LONGEST_DELAY_MS } = rules;
  const startMs = clock.nowMs();
  let absentMs = startMs;
  let delayMs = firstDelayMs;
  let thrown: unknown;
  for (let attempts = 1; ; attempts++) {
    const leftMs = absentMs + timeoutMs - clock.nowMs();
    if (leftMs <= 0) throw tooLate(timeoutMs, attempts - 1, thrown);
    await pause(clock, Math.min(delayMs, leftMs), signal);
    if (signal.aborted) break;
    delayMs = Math.min(longestDelayMs, 2 * delayMs);
    const peer = { hasAnswered: false };
    try {
      const value = await attempt(() => (peer.hasAnswered = true));
      return { value, attempts, afterMs: clock.nowMs() - startMs };
    } catch (error) {
      if (YardmasterError.is(error, 'ERR_PROTOCOL')) throw error;
      // It was there. A peer that refuses is another matter: that does not change by itself.
      if (peer.hasAnswered && YardmasterError.is(error, 'ERR_CLOSED')) absentMs = clock.nowMs();
      thrown = error;
    }
  }
  throw new YardmasterError('ERR_CLOSED', 'it was closed meanwhile', {}, { cause: thrown });
}

/** It did not come back. */
export function notBack(gone: YardmasterError, cause: unknown): YardmasterError {
  const message = `${gone.message}, and ${messageOf(cause)}`;
  return new YardmasterError('ERR_CLOSED', message, gone.data, { cause });
}

function tooLate(timeoutMs: number, attempts: number, cause: unknown): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `it was not back within ${timeoutMs / 1000} s (${attempts} attempts; the last: ${messageOf(cause)})`,
    { timeoutMs, attempts },
    { cause },
  );
}
