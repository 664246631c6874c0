import { type Clock, prefixOfKey } from '../../core/api/index.ts';
import { SystemClock } from '../clocks/index.ts';
import { type Future, holdingOfFuture } from './future.ts';
import { checkNames } from './submission/options.ts';

/** How many futures have come to which end. */
export interface ProgressCounts {
  readonly total: number;
  readonly finished: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly pending: number;
}

/** How far futures are, in all and by prefix. */
export interface Progress extends ProgressCounts {
  readonly prefixes: ReadonlyMap<string, ProgressCounts>;
}

/** How to follow futures. */
export interface ProgressOptions {
  /** Milliseconds between two reports, at least. Default 100. */
  readonly intervalMs?: number;
  readonly clock?: Clock;
}

const INTERVAL_MS = 100;

type MutableCounts = { -readonly [Name in keyof ProgressCounts]: number };

/**
 * How far futures are: at once, after changes, and when all have come to an end, which ends the iteration. Fetches
 * nothing and never rejects. O(futures) for each report.
 * @example
 * for await (const { finished, failed, total } of progress(futures)) console.log(finished, failed, total);
 */
export async function* progress(
  futures: Iterable<Future<unknown>>,
  options: ProgressOptions = {},
): AsyncGenerator<Progress, void, undefined> {
  checkNames(options, ['intervalMs', 'clock']);
  const { intervalMs = INTERVAL_MS, clock = new SystemClock() } = options;
  const followed = [...futures];
  let left = followed.length;
  let wake = (): void => undefined;
  const onSettled = (): void => {
    left--;
    wake();
  };
  for (const future of followed) holdingOfFuture(future).entry.onSettled(onSettled);
  try {
    for (;;) {
      const before = left;
      yield countsOf(followed);
      if (before === 0) return;
      if (left === before) await new Promise<void>((resolve) => (wake = resolve));
      // What ends soon after is part of the same report.
      if (left > 0)
        await pause(
          clock,
          intervalMs,
          (resume) => (wake = resume),
          () => left === 0,
        );
    }
  } finally {
    for (const future of followed) holdingOfFuture(future).entry.withdraw(onSettled);
  }
}

function countsOf(futures: readonly Future<unknown>[]): Progress {
  const all = noCounts();
  const prefixes = new Map<string, MutableCounts>();
  for (const { key, status } of futures) {
    const prefix = prefixOfKey(key);
    let counts = prefixes.get(prefix);
    if (counts === undefined) prefixes.set(prefix, (counts = noCounts()));
    for (const sum of [all, counts]) {
      sum.total++;
      if (status === 'finished') sum.finished++;
      else if (status === 'error') sum.failed++;
      else if (status === 'cancelled') sum.cancelled++;
      else sum.pending++;
    }
  }
  return { ...all, prefixes };
}

function noCounts(): MutableCounts {
  return { total: 0, finished: 0, failed: 0, cancelled: 0, pending: 0 };
}

/** Waits for the time, or until `isOver` holds at a call of what `onWake` received. */
function pause(
  clock: Clock,
  ms: number,
  onWake: (resume: () => void) => void,
  isOver: () => boolean,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(ms, resolve);
    onWake(() => {
      if (!isOver()) return;
      timer.cancel();
      resolve();
    });
  });
}
