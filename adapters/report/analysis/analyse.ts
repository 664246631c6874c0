import type { History, Run } from '../history.ts';
import { type CriticalPath, criticalPath } from './critical-path.ts';
import { type Interval, lengthOf, union } from './intervals.ts';
import { type Load, loadOf } from './load.ts';
import { type TimeSpent, timeOf, totalOf, waitOf } from './time-spent.ts';

/** One worker while there was work. */
export interface WorkerFigures {
  /** Its number in `History.workers`. */
  readonly worker: number;
  readonly name: string;
  readonly threads: number;
  readonly runs: number;
  readonly busyS: number;
  /** Seconds of its threads while there was work and it was there. */
  readonly capacityS: number;
  /** Of the capacity; 0 without any. */
  readonly idleShare: number;
  readonly transferS: number;
  /** Its seconds for what others need one second for. */
  readonly slowness: number;
}

/** All runs of a prefix. */
export interface PrefixFigures {
  /** Its number in `History.prefixes`. */
  readonly prefix: number;
  readonly name: string;
  readonly runs: number;
  readonly failed: number;
  readonly runS: number;
  readonly medianS: number;
  readonly maxS: number;
  /** The run that took longest, by its number. */
  readonly longest: number;
  readonly transferS: number;
  readonly movedBytes: number;
  readonly resultBytes: number;
}

/** What a history comes to. */
export interface Analysis {
  /** From the first task that could run to the end of the last one. */
  readonly makespanS: number;
  /** The part of it in which there was work. */
  readonly activeS: number;
  readonly runCount: number;
  /** Tasks; one that ran twice counts once. */
  readonly taskCount: number;
  readonly threads: number;
  readonly idleShare: number;
  readonly medianS: number;
  readonly time: TimeSpent;
  readonly workers: readonly WorkerFigures[];
  readonly prefixes: readonly PrefixFigures[];
  readonly path: CriticalPath;
  readonly load: Load;
}

/** O(n log n) in the runs. */
export function analyse(history: History): Analysis {
  const { runs } = history;
  const active = union(runs.map(({ readyS, finishedS }): Interval => [readyS, finishedS]));
  const prefixes = prefixFigures(history);
  const workers = workerFigures(history, active, prefixes);
  const capacityS = sumOf(workers, ({ capacityS: one }) => one);
  const busyS = sumOf(workers, (one) => one.busyS);
  const [fromS, toS] = [active[0]?.[0] ?? 0, active.at(-1)?.[1] ?? 0];
  return {
    makespanS: toS - fromS,
    activeS: lengthOf(active),
    runCount: runs.length,
    taskCount: new Set(runs.map(({ key }) => key)).size,
    threads: peakThreads(history),
    idleShare: capacityS === 0 ? 0 : Math.max(0, 1 - busyS / capacityS),
    medianS: medianOf(runs.map(({ timings }) => timeOf(timings).runS)),
    time: totalOf(runs),
    workers,
    prefixes,
    path: criticalPath(runs),
    load: loadOf(runs, fromS, toS),
  };
}

/** The middle one; 0 of none. */
function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

/** The sum over all items. */
export function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  let sum = 0;
  for (const item of items) sum += value(item);
  return sum;
}

/** The largest number of threads at one time. */
function peakThreads({ workers }: History): number {
  const changes = workers.flatMap(({ threads, fromS, toS }) => [
    [fromS, threads] as const,
    ...(toS === undefined ? [] : [[toS, -threads] as const]),
  ]);
  let [now, peak] = [0, 0];
  for (const [, change] of changes.toSorted(([a, m], [b, n]) => a - b || m - n)) {
    now += change;
    peak = Math.max(peak, now);
  }
  return peak;
}

function prefixFigures({ runs, prefixes }: History): readonly PrefixFigures[] {
  const byPrefix = prefixes.map(() => [] as number[]);
  runs.forEach(({ prefix }, number) => byPrefix[prefix]?.push(number));
  const figures = byPrefix.map((numbers, prefix): PrefixFigures => {
    const own = numbers.flatMap((number) => runs[number] ?? []);
    const times = own.map(({ timings }) => timeOf(timings));
    let longest = numbers[0] ?? -1;
    let maxS = 0;
    times.forEach(({ runS }, index) => {
      if (runS <= maxS) return;
      maxS = runS;
      longest = numbers[index] ?? -1;
    });
    return {
      ...{ prefix, name: prefixes[prefix] ?? '', runs: own.length, maxS, longest },
      failed: own.filter(({ isError }) => isError).length,
      runS: sumOf(times, ({ runS }) => runS),
      medianS: medianOf(times.map(({ runS }) => runS)),
      transferS: sumOf(times, ({ transferS }) => transferS),
      movedBytes: sumOf(own, ({ movedBytes }) => movedBytes),
      resultBytes: sumOf(own, ({ nbytes }) => nbytes),
    };
  });
  return figures
    .filter(({ runs: count }) => count > 0)
    .toSorted((a, b) => b.runS - a.runS || a.prefix - b.prefix);
}

function workerFigures(
  { workers, runs, toS: endS }: History,
  active: readonly Interval[],
  prefixes: readonly PrefixFigures[],
): readonly WorkerFigures[] {
  const medians = new Map(prefixes.map(({ prefix, medianS }) => [prefix, medianS]));
  const sums = workers.map(() => ({ runs: 0, busyS: 0, usualS: 0, transferS: 0 }));
  for (const { worker, timings, prefix } of runs) {
    const sum = sums[worker];
    if (sum === undefined) continue;
    const { runS, transferS } = timeOf(timings);
    sum.runs++;
    sum.busyS += runS;
    sum.usualS += medians.get(prefix) ?? 0;
    sum.transferS += transferS;
  }
  return workers.map(({ name, threads, fromS, toS = endS }, worker) => {
    const { usualS, ...sum } = sums[worker] ?? { runs: 0, busyS: 0, usualS: 0, transferS: 0 };
    const capacityS = threads * lengthOf(active, fromS, toS);
    const idleShare = capacityS === 0 ? 0 : Math.max(0, 1 - sum.busyS / capacityS);
    const slowness = usualS === 0 ? 1 : sum.busyS / usualS;
    return { worker, name, threads, ...sum, capacityS, idleShare, slowness };
  });
}

/** How long a run waited, in all. */
export function waitS(run: Run): number {
  const { queuedS, waitedS } = waitOf(run);
  return queuedS + waitedS;
}
