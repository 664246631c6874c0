import type { Channel } from '../api/channel.ts';
import type { Clock, Timer } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import { setAwakeTimer } from './awake-timer.ts';

/** Milliseconds from one answer to the next question. */
const INTERVAL_MS = 10_000;

/** Time without an answer after which a scheduler counts as gone, if nothing else is configured. */
export const SCHEDULER_TTL_MS = 300_000;

/** How long a peer may be silent, and who learns of it. */
export interface AnswerRules {
  /** Milliseconds; Infinity: for ever. */
  readonly ttlMs: number;
  /** Called once for each silence, when it has lasted for this many milliseconds. */
  readonly onSilent?: (silentMs: number) => void;
}

/**
 * Asks the peer regularly whether it answers, and aborts the channel when it has not for `ttlMs`. So a
 * peer is noticed that stands still, whose machine hangs, or that a network does not reach any more:
 * its connection looks as if it were in order. Time in which this process stands still does not count.
 */
export function watchAnswers(channel: Channel, clock: Clock, rules: AnswerRules): Timer {
  const { ttlMs, onSilent } = rules;
  const intervalMs = Math.min(INTERVAL_MS, Math.ceil(ttlMs / 3));
  let timers: readonly Timer[] = [];
  const cancel = (): void => {
    for (const timer of timers) timer.cancel();
    timers = [];
  };
  const ask = (): void => {
    timers = [
      setAwakeTimer(clock, intervalMs, () => onSilent?.(intervalMs)),
      setAwakeTimer(clock, ttlMs, () => channel.abort(silentError(channel, ttlMs))),
    ];
    const asked = timers;
    const onAnswer = (): void => {
      if (timers !== asked) return; // It was cancelled.
      cancel();
      if (!channel.isClosed) timers = [clock.setTimer(intervalMs, ask)];
    };
    channel.request('ping').then(onAnswer, onAnswer);
  };
  // A peer in the same process stands still with this one.
  const isHere = channel.peerAddress.startsWith('inmemory:');
  if (ttlMs !== Infinity && !isHere) timers = [clock.setTimer(intervalMs, ask)];
  return { cancel };
}

function silentError({ peerAddress }: Channel, ttlMs: number): YardmasterError {
  return new YardmasterError(
    'ERR_TIMEOUT',
    `${peerAddress} has not answered for ${ttlMs / 1000} s; its process stands still, or the network does not reach it`,
    { peer: peerAddress, timeoutMs: ttlMs },
  );
}
