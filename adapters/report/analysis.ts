import { type IdleTime, idleTimeOf, type Outliers } from './idle.ts';
import type { History, Run } from './history.ts';
import { type Interval, lengthOf, timeOf, type TimeSpent, totalOf, union } from './time-spent.ts';

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
  /** The median of its runs, each as a multiple of the median of its prefix. */
  readonly slowness: number;
}

export interface PrefixFigures {
  /** Its number in `History.prefixes`. */
  readonly prefix: number;
  readonly name: string;
  readonly runs: number;
  readonly failed: number;
  readonly runS: number;
  readonly medianS: number;
  /** The seconds that one usually takes, by enough others; undefined: there are not enough. */
  readonly usualS: number | undefined;
  readonly maxS: number;
  /** The run that took longest, by its number. */
  readonly longest: number;
  readonly transferS: number;
  readonly movedBytes: number;
  readonly resultBytes: number;
}

export interface Analysis {
  /** From the first task that could run to the end of the last one. */
  readonly makespanS: number;
  /** The part of it in which there was work. */
  readonly activeS: number;
  /** Runs that have ended. */
  readonly runCount: number;
  /** Their tasks; one that ran twice counts once. */
  readonly taskCount: number;
  /** Runs that had not ended at the end, and tasks that could have run. */
  readonly openCount: number;
  readonly threads: number;
  readonly idleShare: number;
  readonly medianS: number;
  readonly time: TimeSpent;
  readonly workers: readonly WorkerFigures[];
  readonly prefixes: readonly PrefixFigures[];
  readonly path: CriticalPath;
  readonly load: Load;
  readonly idle: IdleTime;
}

/** O(n log n) in the runs. */
export function analyse(history: History): Analysis {
  const { runs } = history;
  const ended = runs.filter(({ isOpen }) => isOpen !== true);
  const active = union(runs.map(({ readyS, finishedS }): Interval => [readyS, finishedS]));
  const prefixes = prefixFigures(history);
  const workers = workerFigures(history, active, prefixes);
  const capacityS = sumOf(workers, ({ capacityS: one }) => one);
  const busyS = sumOf(workers, (one) => one.busyS);
  const [fromS, toS] = [active[0]?.[0] ?? 0, active.at(-1)?.[1] ?? 0];
  return {
    makespanS: toS - fromS,
    activeS: lengthOf(active),
    runCount: ended.length,
    taskCount: new Set(ended.map(({ key }) => key)).size,
    openCount: runs.length - ended.length,
    threads: peakThreads(history),
    idleShare: capacityS === 0 ? 0 : Math.max(0, 1 - busyS / capacityS),
    medianS: medianOf(ended.map(({ timings }) => timeOf(timings).runS)),
    time: totalOf(runs),
    workers,
    prefixes,
    path: criticalPath(runs),
    load: loadOf(runs, fromS, toS),
    idle: idleTimeOf(history, outliersOf(prefixes, workers)),
  };
}

/** Fewer runs than this say nothing about a prefix or a worker. */
export const RUNS_MIN = 8;
const SLOW = 1.5;
const SLOWER_THAN_NEXT = 1.4;

/** Workers that are slower than all others, and what is usual for a prefix. */
function outliersOf(
  prefixes: readonly PrefixFigures[],
  workers: readonly WorkerFigures[],
): Outliers {
  const usual = new Map(prefixes.map((one) => [one.prefix, one]));
  const slowest = slowestOf(workers);
  return {
    isSlow: (worker) => worker === slowest?.worker,
    slownessOf: (worker) => workers[worker]?.slowness ?? 1,
    usualS: (prefix) => {
      return usual.get(prefix)?.usualS;
    },
    runsOf: (prefix) => usual.get(prefix)?.runs ?? 0,
  };
}

/** The one that takes longer for its tasks than is usual, and than any other. */
export function slowestOf(workers: readonly WorkerFigures[]): WorkerFigures | undefined {
  const measured = workers.filter(({ runs }) => runs >= RUNS_MIN);
  const [worst, next] = measured.toSorted((a, b) => b.slowness - a.slowness);
  if (worst === undefined || next === undefined) return undefined;
  const isSlow = worst.slowness >= SLOW && worst.slowness >= SLOWER_THAN_NEXT * next.slowness;
  return isSlow ? worst : undefined;
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

function prefixFigures({ runs, prefixes, knownS = [] }: History): readonly PrefixFigures[] {
  const byPrefix = prefixes.map(() => [] as number[]);
  runs.forEach(({ prefix }, number) => byPrefix[prefix]?.push(number));
  const figures = byPrefix.map((numbers, prefix): PrefixFigures => {
    const own = numbers.flatMap((number) => runs[number] ?? []);
    const times = own.map(({ timings }) => timeOf(timings));
    const endedS = times.flatMap(({ runS }, index) => (own[index]?.isOpen === true ? [] : [runS]));
    let longest = numbers[0] ?? -1;
    let maxS = 0;
    times.forEach(({ runS }, index) => {
      if (runS <= maxS) return;
      maxS = runS;
      longest = numbers[index] ?? -1;
    });
    return {
      ...{ prefix, name: prefixes[prefix] ?? '', runs: endedS.length, maxS, longest },
      usualS: usualOf(endedS, knownS[prefix]),
      failed: own.filter(({ isError }) => isError).length,
      runS: sumOf(times, ({ runS }) => runS),
      medianS: medianOf(endedS),
      transferS: sumOf(times, ({ transferS }) => transferS),
      movedBytes: sumOf(own, ({ movedBytes }) => movedBytes),
      resultBytes: sumOf(own, ({ nbytes }) => nbytes),
    };
  });
  return figures
    .filter(({ longest }) => longest >= 0)
    .toSorted((a, b) => b.runS - a.runS || a.prefix - b.prefix);
}

/** The median of these, or of too few the mean that the scheduler knows. */
function usualOf(endedS: readonly number[], knownS = -1): number | undefined {
  if (endedS.length >= RUNS_MIN) return medianOf(endedS);
  return knownS >= 0 ? knownS : undefined;
}

function workerFigures(
  { workers, runs, fromS: beganS, toS: endS }: History,
  active: readonly Interval[],
  prefixes: readonly PrefixFigures[],
): readonly WorkerFigures[] {
  const medians = new Map(prefixes.map(({ prefix, medianS }) => [prefix, medianS]));
  const sums = workers.map(() => ({ runs: 0, busyS: 0, ratios: [] as number[], transferS: 0 }));
  for (const { worker, timings, prefix, isOpen } of runs) {
    const sum = sums[worker];
    if (sum === undefined) continue;
    const { runS, transferS } = timeOf(timings);
    // A run that had begun before counts from the beginning on.
    for (const { action, startS, stopS } of timings)
      if (action === 'compute') sum.busyS += Math.max(0, stopS - Math.max(startS, beganS));
    sum.transferS += transferS;
    if (isOpen === true) continue;
    sum.runs++;
    const usualS = medians.get(prefix) ?? 0;
    if (usualS > 0) sum.ratios.push(runS / usualS);
  }
  return workers.map(({ name, threads, fromS, toS = endS }, worker) => {
    const { ratios, ...sum } = sums[worker]!;
    const capacityS = threads * lengthOf(active, fromS, toS);
    const idleShare = capacityS === 0 ? 0 : Math.max(0, 1 - sum.busyS / capacityS);
    const slowness = ratios.length === 0 ? 1 : medianOf(ratios);
    return { worker, name, threads, ...sum, capacityS, idleShare, slowness };
  });
}

/** The chain of runs that the end of the work waited for: each needs the result of the one before it. */
export interface CriticalPath {
  /** Numbers of the runs, first to last. */
  readonly runs: readonly number[];
  /** From the moment the first of them could run to the end of the last one. */
  readonly lengthS: number;
  readonly time: TimeSpent;
  /** The duration of the longest chain without any waiting: no number of workers makes it shorter. */
  readonly leastS: number;
}

/**
 * From the run that ended last back over the inputs that came last. A result that was there before the work began ends
 * the chain. O(runs)
 */
function criticalPath(runs: readonly Run[]): CriticalPath {
  let last = -1;
  runs.forEach(({ finishedS }, number) => {
    if (last < 0 || finishedS > (runs[last]?.finishedS ?? 0)) last = number;
  });
  const chain: number[] = [];
  for (let number = last; number >= 0; number = runs[number]?.lastInput ?? -1) chain.push(number);
  chain.reverse();
  const members = chain.flatMap((number) => runs[number] ?? []);
  const time = totalOf(members);
  const lengthS = (members.at(-1)?.finishedS ?? 0) - (members[0]?.readyS ?? 0);
  return { runs: chain, lengthS, time, leastS: longestChainS(runs) };
}

/** Seconds in which a worker did something for a run. */
function workS(timings: Run['timings']): number {
  const { runS, transferS, diskS, otherS } = timeOf(timings);
  return runS + transferS + diskS + otherS;
}

/** An input is an earlier run than what needs it. */
function longestChainS(runs: readonly Run[]): number {
  const lengths = new Float64Array(runs.length);
  let longest = 0;
  runs.forEach(({ timings, lastInput }, number) => {
    const lengthS = workS(timings) + (lastInput < number ? (lengths[lastInput] ?? 0) : 0);
    lengths[number] = lengthS;
    longest = Math.max(longest, lengthS);
  });
  return longest;
}

/** The load over time, on average in each stretch of it. */
interface Load {
  readonly fromS: number;
  /** Length of a stretch. */
  readonly stepS: number;
  /** Threads that computed. */
  readonly running: readonly number[];
  /** Tasks that could have run and did not. */
  readonly waiting: readonly number[];
}

/** Stretches of time: a chart has no room for more. */
const STEPS = 300;

/** O(runs + stretches) */
function loadOf(runs: readonly Run[], fromS: number, toS: number): Load {
  const stepS = Math.max(1e-6, (toS - fromS) / STEPS);
  const [running, waiting] = [new Spread(fromS, stepS), new Spread(fromS, stepS)];
  for (const { readyS, finishedS, timings } of runs) {
    waiting.add(readyS, finishedS, 1);
    for (const { action, startS, stopS } of timings) {
      if (action !== 'compute') continue;
      running.add(startS, stopS, 1);
      waiting.add(startS, stopS, -1);
    }
  }
  return { fromS, stepS, running: running.averages(), waiting: waiting.averages() };
}

/** Adds intervals up in bins, with the difference of neighbours, so that a long one costs no more than a short one. */
class Spread {
  private readonly partial = new Float64Array(STEPS + 1);
  private readonly steps = new Float64Array(STEPS + 2);

  constructor(
    private readonly fromS: number,
    private readonly stepS: number,
  ) {}

  add(startS: number, stopS: number, weight: number): void {
    const from = this.placeOf(startS);
    const to = this.placeOf(stopS);
    const [first, last] = [Math.floor(from), Math.floor(to)];
    if (first === last) {
      this.put(first, weight * (to - from));
      return;
    }
    this.put(first, weight * (first + 1 - from));
    this.put(last, weight * (to - last));
    this.steps[first + 1] = (this.steps[first + 1] ?? 0) + weight;
    this.steps[last] = (this.steps[last] ?? 0) - weight;
  }

  averages(): readonly number[] {
    let whole = 0;
    return Array.from({ length: STEPS }, (_, index) => {
      whole += this.steps[index] ?? 0;
      return Math.max(0, Math.round(100 * (whole + (this.partial[index] ?? 0))) / 100);
    });
  }

  private placeOf(atS: number): number {
    return Math.max(0, Math.min(STEPS, (atS - this.fromS) / this.stepS));
  }

  private put(index: number, amount: number): void {
    this.partial[index] = (this.partial[index] ?? 0) + amount;
  }
}
