/** What is looked for in a piece of work. A rule says nothing unless its figures are worth a change. */
import { bytes, count, seconds } from '../../dashboard/page/format.ts';
import type { History } from '../history.ts';
import { type Analysis, type PrefixFigures, sumOf, waitS } from './analyse.ts';
import { countOf, percent, tasks } from './words.ts';

/** What a rule found. The weight is the share of the whole that could be gained, about. */
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
export const RULES: readonly (readonly [rule: string, find: Rule])[] = [
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
    const ownS = sumOf(timings, ({ startS, stopS }) => stopS - startS);
    sums.set(prefix, (sums.get(prefix) ?? 0) + ownS);
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
    remedy: `Start more workers: up to ${count(useful)} threads would have something to do.`,
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
    text: `${count(spilling.length)} of ${count(workers.length)} workers spilled to disk; ${worst.name} most: ${bytes(worst.peakSpilledBytes)}${limit}.`,
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
    text: `${count(again)} of ${count(runs.length)} runs repeated a task that had run before; they took ${seconds(againS)}.`,
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
