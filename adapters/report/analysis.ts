import { countOf } from '../../core/util/values.ts';
import { bytes, count, seconds } from '../dashboard/page/format.ts';
import type { History, Run } from './history.ts';
import {
  type Interval,
  lengthOf,
  timeOf,
  type TimeSpent,
  totalOf,
  union,
  waitOf,
} from './time-spent.ts';

/** A report about a piece of work. */
export interface Report {
  readonly history: History;
  readonly analysis: Analysis;
  /** In sentences. */
  readonly summary: readonly string[];
  /** The heaviest first. */
  readonly findings: readonly Finding[];
}

/** O(n log n) in the runs of the history. */
export function reportOf(history: History): Report {
  const analysis = analyse(history);
  const summary = summaryOf(history, analysis);
  return { history, analysis, summary, findings: findingsOf(history, analysis) };
}

/** One worker while there was work. */
interface WorkerFigures {
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
interface PrefixFigures {
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

/** The analysis of a history. */
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
function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
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

/** The time that a run waited, in all. */
function waitS(run: Run): number {
  const { queuedS, waitedS } = waitOf(run);
  return queuedS + waitedS;
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

/** Something that a reader can do something about. */
export interface Finding {
  /** Name of its rule. */
  readonly rule: string;
  /** The cost, as a share of the whole; the heaviest comes first. */
  readonly weight: number;
  readonly title: string;
  /** The figures. */
  readonly text: string;
  readonly remedy: string;
}

const FINDINGS_MAX = 5;

/** The five heaviest, or fewer. */
export function findingsOf(history: History, analysis: Analysis): readonly Finding[] {
  const found = RULES.flatMap(([rule, find]): readonly Finding[] => {
    const finding = find(history, analysis);
    return finding === undefined ? [] : [{ rule, ...finding }];
  });
  return found.toSorted((a, b) => b.weight - a.weight).slice(0, FINDINGS_MAX);
}

/** Names shown in one sentence. */
const NAMES_MAX = 8;

/** The analysis in a few sentences. */
function summaryOf(history: History, analysis: Analysis): readonly string[] {
  const { makespanS, activeS, runCount, taskCount, threads, path, idleShare, time } = analysis;
  if (runCount === 0) return ['No task was computed in this time.'];
  const pauseS = makespanS - activeS;
  const again = runCount - taskCount;
  return [
    `${tasks(taskCount)} took ${seconds(makespanS)} on ${countOf(threads, 'thread')} of ${countOf(history.workers.length, 'worker')}` +
      (pauseS > 0.1 * makespanS
        ? `; in ${seconds(pauseS)} of that there was no work, which is left out below`
        : '') +
      (again > 0 ? `; ${countOf(again, 'more run')} repeated some of them` : '') +
      '.',
    `The critical path has ${tasks(path.runs.length)} and took ${seconds(path.lengthS)}: ${partsOf(path.time)}. With any number of workers the work would take ${seconds(path.leastS)} at least.`,
    `Threads were idle for ${percent(idleShare)} of the time in which there was work${idleText(analysis)}.`,
    `From the moment a task could run until it was done: ${partsOf(time)}.`,
    ...spillText(history),
  ];
}

function idleText({ workers }: Analysis): string {
  const present = workers.filter(({ capacityS }) => capacityS > 0);
  if (present.length < 2) return '';
  const extreme = present.toSorted((a, b) => b.idleShare - a.idleShare);
  const shown = present.length <= NAMES_MAX ? present : extreme.slice(0, NAMES_MAX);
  const names = shown.map(({ name, idleShare }) => `${name} ${percent(idleShare)}`).join(', ');
  return present.length <= NAMES_MAX ? `: ${names}` : `; most idle: ${names}`;
}

function partsOf(time: Analysis['time']): string {
  const { runS, transferS, diskS, otherS, queuedS, waitedS } = time;
  const parts = [
    ['running', runS],
    ['fetching inputs', transferS],
    ['on disk', diskS],
    ['other work', otherS],
    ['queued at the scheduler', queuedS],
    ['waiting on workers', waitedS],
  ] as const;
  const total = parts.reduce((sum, [, amount]) => sum + amount, 0);
  const shown = parts.filter(([, amount]) => amount >= 0.005 * total && amount > 0);
  return shown.map(([name, amount]) => `${percent(amount / total)} ${name}`).join(', ');
}

function spillText({ workers }: History): readonly string[] {
  const spilled = workers.reduce((sum, worker) => sum + worker.peakSpilledBytes, 0);
  return spilled === 0 ? [] : [`Up to ${bytes(spilled)} of results were spilled to disk.`];
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

// What is looked for in a piece of work. A rule says nothing unless its figures are worth a change.

/** A finding of a rule. The weight is about the share of the whole that could be gained. */
interface Found {
  readonly weight: number;
  readonly title: string;
  readonly text: string;
  readonly remedy: string;
}

type Rule = (history: History, analysis: Analysis) => Found | undefined;

/** Shorter tasks cost the scheduler and the network about as much as they compute. */
const SMALL_S = 0.01;
/** Fewer tasks than this say nothing about a prefix or a worker. */
const RUNS_MIN = 8;

/** By their names. */
const RULES: readonly (readonly [rule: string, find: Rule])[] = [
  ['failures', failures],
  ['lost-workers', lostWorkers],
  ['critical-path', boundByPath],
  ['more-threads', moreThreads],
  ['small-tasks', smallTasks],
  ['idle-worker', idleWorker],
  ['transfers', transfers],
  ['spills', spills],
  ['straggler', straggler],
  ['slow-worker', slowWorker],
  ['dominant-prefix', dominantPrefix],
  ['repetitions', repetitions],
  ['late-start', lateStart],
];

function failures({
  failures: [first],
  failureCount,
  blamelessCount,
  fromS,
}: History): Found | undefined {
  if (first === undefined) return undefined;
  const them = failureCount === 1 ? 'it' : 'them';
  const others = blamelessCount === 0 ? '' : ` ${tasks(blamelessCount)} failed with ${them}.`;
  const reason = first.text.replace(/\.?$/, '.');
  return {
    weight: 2,
    title: `${tasks(failureCount)} failed`,
    text: `The first was ${first.key}, after ${seconds(first.atS - fromS)}: ${reason}${others}`,
    remedy: 'Mend this one first. For errors that pass, submit with the option retries.',
  };
}

function lostWorkers(
  { workers, fromS }: History,
  { runCount, taskCount }: Analysis,
): Found | undefined {
  const lost = workers.filter((worker) => worker.lost !== undefined);
  const [first] = lost;
  if (first === undefined) return undefined;
  const recomputed = sumOf(lost, (worker) => worker.lost?.recomputed ?? 0);
  const restarted = sumOf(lost, (worker) => worker.lost?.restarted ?? 0);
  const again = runCount - taskCount;
  const inputs =
    again > recomputed ? `; with inputs that were gone, ${countOf(again, 'run')} in all` : '';
  const { name, toS = fromS, peakBytes, memoryLimitBytes } = first;
  const memory =
    peakBytes === 0
      ? ''
      : `; its memory had reached ${bytes(peakBytes)}${memoryLimitBytes > 0 ? ` of ${bytes(memoryLimitBytes)}` : ''}`;
  return {
    weight: 1.5,
    title: `${countOf(lost.length, 'worker')} ${lost.length === 1 ? 'was' : 'were'} lost`,
    text: `${name} was the first, after ${seconds(toS - fromS)}${memory}. ${tasks(restarted)} had to be started again, and ${countOf(recomputed, 'result')} computed again${inputs}.`,
    remedy:
      'Read the last lines of its log. When the system killed it for its memory, give workers a memory limit, or fewer threads each.',
  };
}

function boundByPath({ runs, prefixes }: History, analysis: Analysis): Found | undefined {
  const { path, activeS, idleShare, threads } = analysis;
  const share = path.leastS / activeS;
  if (threads < 2 || share < 0.6 || idleShare < 0.25) return undefined;
  const sums = new Map<number, number>();
  for (const number of path.runs) {
    const { prefix = -1, timings = [] } = runs[number] ?? {};
    sums.set(prefix, (sums.get(prefix) ?? 0) + workS(timings));
  }
  const [[prefix, ownS] = [-1, 0]] = [...sums].toSorted(([, a], [, b]) => b - a);
  return {
    weight: share * idleShare,
    title: 'More workers would not help: the critical path decides',
    text: `${tasks(path.runs.length)} that need each other take ${percent(share)} of the time, while threads are idle for ${percent(idleShare)}. ${prefixes[prefix] ?? ''} makes up ${percent(ownS / path.leastS)} of that path.`,
    remedy: `Make ${prefixes[prefix] ?? ''} faster, or split it into tasks that can run side by side.`,
  };
}

function moreThreads(
  _: History,
  { path, activeS, idleShare, threads, time }: Analysis,
): Found | undefined {
  const waitedS = time.queuedS + time.waitedS;
  const share = path.leastS / activeS;
  if (idleShare > 0.2 || share > 0.5 || waitedS < time.runS) return undefined;
  const useful = Math.floor(time.runS / Math.max(path.leastS, 1e-9));
  if (useful <= threads) return undefined;
  return {
    weight: (1 - share) / 2,
    title: 'More threads would make it faster',
    text: `${countOf(threads, 'thread')} ${threads === 1 ? 'was' : 'were'} busy for ${percent(1 - idleShare)} of the time, and tasks waited ${seconds(waitedS)} in all for one. The critical path is ${percent(share)} of the time.`,
    remedy: `Start more workers: up to ${countOf(useful, 'thread')} would have something to do.`,
  };
}

function smallTasks(
  _: History,
  { medianS, runCount, idleShare, prefixes }: Analysis,
): Found | undefined {
  if (runCount < 100 || medianS >= SMALL_S || idleShare < 0.4) return undefined;
  const [worst] = prefixes
    .filter((one) => one.medianS < SMALL_S)
    .toSorted((a, b) => b.runs - a.runs);
  if (worst === undefined) return undefined;
  const factor = Math.ceil((10 * SMALL_S) / Math.max(worst.medianS, 1e-5));
  return {
    weight: idleShare,
    title: 'Tasks are too small',
    text: `Half of ${tasks(runCount)} ran for less than ${seconds(medianS)}, and threads were busy for only ${percent(1 - idleShare)} of the time: handing tasks out costs more than computing them. Most are of ${worst.name}: ${count(worst.runs)}.`,
    remedy: `Let one task of ${worst.name} do what ${count(factor)} do now: a tenth of a second each is a good size.`,
  };
}

function idleWorker(_: History, { workers, idleShare, activeS }: Analysis): Found | undefined {
  const capacityS = sumOf(workers, (worker) => worker.capacityS);
  const candidates = workers.filter(
    (worker) =>
      worker.capacityS > 0.3 * worker.threads * activeS &&
      worker.idleShare > 0.5 &&
      worker.idleShare > idleShare + 0.25,
  );
  const [worst] = candidates.toSorted((a, b) => b.idleShare - a.idleShare);
  if (worst === undefined || workers.length < 2) return undefined;
  const others = workers.filter((worker) => !candidates.includes(worker));
  const busyShare =
    sumOf(others, (worker) => worker.busyS) /
    Math.max(
      1e-9,
      sumOf(others, (one) => one.capacityS),
    );
  const lostS = sumOf(candidates, (worker) => worker.capacityS * worker.idleShare);
  const names = candidates.slice(0, 3).map(({ name }) => name);
  const more = candidates.length - names.length;
  return {
    weight: (busyShare * lostS) / capacityS,
    title: `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''} had little to do`,
    text: `${worst.name} was idle for ${percent(worst.idleShare)} of the time and ran ${tasks(worst.runs)}; the others were busy for ${percent(busyShare)}.`,
    remedy:
      'See whether restrictions, resources or the place of the data keep tasks away from it: yardmaster why tells it for a task, with candidates and scores.',
  };
}

function transfers(_: History, { time, prefixes }: Analysis): Found | undefined {
  const share = time.transferS / Math.max(1e-9, time.runS + time.transferS);
  if (share < 0.2) return undefined;
  const [worst] = prefixes.toSorted((a, b) => b.transferS - a.transferS);
  if (worst === undefined) return undefined;
  const moved = sumOf(prefixes, ({ movedBytes }) => movedBytes);
  return {
    weight: share / 2,
    title: 'Fetching inputs costs much of the time',
    text: `Workers fetched inputs for ${seconds(time.transferS)}, and computed for ${seconds(time.runS)}. ${bytes(moved)} were needed where they were not; most of the time went to ${worst.name}: ${seconds(worst.transferS)}.`,
    remedy:
      'Use fewer workers with more threads each, hand smaller results on, or try the worker selection locality-first.',
  };
}

function spills({ workers }: History, { time }: Analysis): Found | undefined {
  const spilling = workers.filter(({ peakSpilledBytes }) => peakSpilledBytes > 0);
  const [worst] = spilling.toSorted((a, b) => b.peakSpilledBytes - a.peakSpilledBytes);
  if (worst === undefined) return undefined;
  const share = time.diskS / Math.max(1e-9, time.runS + time.diskS);
  const limit =
    worst.memoryLimitBytes > 0 ? `, with a limit of ${bytes(worst.memoryLimitBytes)}` : '';
  return {
    weight: Math.max(0.15, share),
    title: 'Results did not fit into memory',
    text: `${count(spilling.length)} of ${countOf(workers.length, 'worker')} spilled to disk; ${worst.name} most: ${bytes(worst.peakSpilledBytes)}${limit}.`,
    remedy:
      'Give workers more memory, release results that are not needed, or hand on smaller ones.',
  };
}

function straggler({ runs, workers }: History, { prefixes, activeS }: Analysis): Found | undefined {
  const excess = ({ maxS, medianS }: PrefixFigures): number => maxS - medianS;
  const [worst] = prefixes
    .filter((one) => one.runs >= RUNS_MIN && one.maxS > 4 * one.medianS)
    .toSorted((a, b) => excess(b) - excess(a));
  if (worst === undefined || excess(worst) < 0.05 * activeS) return undefined;
  const run = runs[worst.longest];
  const where = workers[run?.worker ?? -1]?.name ?? 'its worker';
  return {
    weight: Math.min(1, excess(worst) / activeS) / 2,
    title: `A task of ${worst.name} took much longer than the others`,
    text: `${run?.key ?? ''} ran for ${seconds(worst.maxS)} on ${where}; half of the ${tasks(worst.runs)} of ${worst.name} took ${seconds(worst.medianS)} or less.`,
    remedy: 'Split its input more evenly, or submit it first, with a higher priority.',
  };
}

function slowWorker(_: History, { workers, idleShare }: Analysis): Found | undefined {
  const measured = workers.filter(({ runs }) => runs >= RUNS_MIN);
  const [worst, next] = measured.toSorted((a, b) => b.slowness - a.slowness);
  if (worst === undefined || next === undefined) return undefined;
  if (worst.slowness < 1.5 || worst.slowness < 1.4 * next.slowness) return undefined;
  const capacityS = sumOf(workers, ({ capacityS: one }) => one);
  const lostS = worst.busyS * (1 - 1 / worst.slowness);
  return {
    weight: Math.min(1, lostS / Math.max(1e-9, capacityS * (1 - idleShare))),
    title: `${worst.name} is slow`,
    text: `It takes ${worst.slowness.toFixed(1)} times as long for its tasks as is usual; the next one takes ${next.slowness.toFixed(1)} times as long.`,
    remedy: 'See what else runs on its machine, and whether it has as many processors as threads.',
  };
}

function dominantPrefix(_: History, { prefixes, time }: Analysis): Found | undefined {
  const [first, ...others] = prefixes;
  if (first === undefined || others.length === 0) return undefined;
  const share = first.runS / Math.max(1e-9, time.runS);
  const otherRuns = sumOf(others, ({ runs }) => runs);
  const otherMeanS = sumOf(others, ({ runS }) => runS) / otherRuns;
  const meanS = first.runS / first.runs;
  if (share < 0.6 || meanS < 2 * otherMeanS) return undefined;
  return {
    weight: share / 4,
    title: `${first.name} takes most of the time`,
    text: `${tasks(first.runs)} of ${first.name} took ${percent(share)} of all computing, ${seconds(meanS)} each; a task of another prefix takes ${seconds(otherMeanS)}.`,
    remedy: `Measure ${first.name} first: what makes it faster makes everything faster.`,
  };
}

function repetitions({ runs, workers }: History, { taskCount, time }: Analysis): Found | undefined {
  const isLost = workers.some(({ lost }) => lost !== undefined);
  const again = runs.length - taskCount;
  if (isLost || again < Math.max(2, 0.02 * taskCount)) return undefined;
  const seen = new Set<string>();
  let againS = 0;
  for (const { key, timings } of runs) {
    if (seen.has(key)) againS += sumOf(timings, ({ startS, stopS }) => stopS - startS);
    seen.add(key);
  }
  return {
    weight: againS / Math.max(1e-9, time.runS),
    title: 'Results were computed more than once',
    text: `${count(again)} of ${countOf(runs.length, 'run')} repeated a task that had run before; they took ${seconds(againS)}.`,
    remedy: 'Hold the futures of results that are needed again: what has no future is released.',
  };
}

function lateStart({ runs }: History, { activeS }: Analysis): Found | undefined {
  const [first] = runs.toSorted((a, b) => a.readyS - b.readyS);
  if (first === undefined) return undefined;
  const startS = runs.reduce((least, { assignedS }) => Math.min(least, assignedS), Infinity);
  const lateS = startS - first.readyS;
  if (lateS < 0.15 * activeS || waitS(first) === 0) return undefined;
  return {
    weight: lateS / activeS,
    title: 'The work waited for its first worker',
    text: `No worker took a task for the first ${seconds(lateS)}, ${percent(lateS / activeS)} of the time.`,
    remedy: 'Start workers before the work, or keep a few: adapt with a minimum.',
  };
}

/** 0.256 → 26 % */
function percent(share: number): string {
  const value = 100 * share;
  return `${value > 0 && value < 1 ? '<1' : Math.round(value)} %`;
}

/** 3 → 3 tasks */
function tasks(amount: number): string {
  return countOf(amount, 'task');
}
