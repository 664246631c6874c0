import { type Clock, prefixOfKey } from '../../core/api/index.ts';
import { CLOCK, DURATION } from '../../core/shared/schema.ts';
import { numberText, printable } from '../../core/util/values.ts';
import { SystemClock } from '../clocks/index.ts';
import { type Future, holdingOfFuture } from './future.ts';
import { checkOptions } from './options.ts';
import type { ProgressBars, ProgressRow } from './progress-bars.ts';

/** The number of futures by their end. */
export interface ProgressCounts {
  readonly total: number;
  readonly finished: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly pending: number;
}

/** The progress of futures, in all and by prefix. */
export interface Progress extends ProgressCounts {
  readonly prefixes: ReadonlyMap<string, ProgressCounts>;
}

/** The options of following futures. */
export interface ProgressOptions {
  /** Milliseconds between two reports, at least. Default 100. */
  readonly intervalMs?: number;
  readonly clock?: Clock;
}

const INTERVAL_MS = 100;

type MutableCounts = { -readonly [Name in keyof ProgressCounts]: number };

/**
 * Reports the progress of futures: at once, after changes, and when all have come to an end, which ends the iteration. Fetches
 * nothing and never rejects. O(futures) for each report.
 * @example
 * for await (const { finished, failed, total } of progress(futures)) console.log(finished, failed, total);
 */
export async function* progress(
  futures: Iterable<Future<unknown>>,
  options: ProgressOptions = {},
): AsyncGenerator<Progress, void, undefined> {
  checkOptions('progress', options, { intervalMs: DURATION, clock: CLOCK });
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

/** The options of showing the progress. */
export interface ShowProgressOptions extends ProgressOptions {
  /** Default: the error stream, because results go to the other one. */
  readonly stream?: NodeJS.WriteStream;
}

/** More prefixes than these have one bar for all. */
const BARS_MAX = 12;

/**
 * Shows how far futures are until all have come to an end: on a terminal a bar for each of a few prefixes and one for all, and a
 * line for each tenth elsewhere.
 * @returns the last counts
 */
export async function showProgress(
  futures: Iterable<Future<unknown>>,
  options: ShowProgressOptions = {},
): Promise<Progress> {
  const { stream = process.stderr, ...rest } = options;
  const { ProgressBars: Shown } = await import('./progress-bars.ts');
  const rows = new Map<string | undefined, ProgressRow>();
  let shown: ProgressBars | undefined;
  let last: Progress | undefined;
  try {
    for await (const counts of progress(futures, rest)) {
      last = counts;
      const { prefixes } = counts;
      const all = rowOf(rows, undefined, counts);
      const parts = [...(prefixes.size > BARS_MAX ? [] : prefixes)].map(([prefix, each]) =>
        rowOf(rows, prefix, each),
      );
      shown ??= new Shown(all, parts.length === 1 ? parts : [...parts, all], stream);
      shown.changed();
    }
  } finally {
    shown?.stop();
  }
  // There is at least one report.
  return last as Progress;
}

/** The row of a prefix, or of all, with its counts of now. */
function rowOf(
  rows: Map<string | undefined, ProgressRow>,
  prefix: string | undefined,
  counts: ProgressCounts,
): ProgressRow {
  const { total, pending } = counts;
  const row = rows.get(prefix) ?? { name: printable(prefix ?? 'all'), done: 0, total };
  rows.set(prefix, row);
  return Object.assign(row, { done: total - pending, note: endsOf(counts) });
}

/** Says apart what did not end well. */
function endsOf({ failed, cancelled }: ProgressCounts): string {
  const ends = Object.entries({ failed, cancelled }).filter(([, count]) => count > 0);
  return ends.map(([end, count]) => `${numberText(count)} ${end}`).join(', ');
}
