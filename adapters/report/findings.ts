/** Rules that say why a piece of work took as long as it did. A rule says nothing unless its figures are worth a change. */
import { countOf } from '../../core/util/values.ts';
import { bytes, count, seconds } from '../dashboard/page/format.ts';
import { type Analysis, type PrefixFigures, RUNS_MIN, slowestOf, sumOf } from './analysis.ts';
import { type History, type HistoryWorker, type HostLoad, KEPT } from './history.ts';
import { STRAGGLES } from './idle.ts';

/** A cause of lost time that a reader can do something about. */
export interface Finding extends Found {
  readonly rule: string;
  /** The explained time in words: `2.25 s, 60 % of the time`; empty when it explains none. */
  readonly cost: string;
}

interface Found {
  /** Seconds of the time in which there was work that it explains: about what would be saved without the cause. */
  readonly explainedS: number;
  readonly title: string;
  /** The figures. */
  readonly text: string;
  readonly remedy: string;
}

type Rule = (history: History, analysis: Analysis) => Found | undefined;

const FINDINGS_MAX = 5;
/** Causes that explain a smaller share of the time are left out. */
const SHARE_MIN = 0.05;

/** The five that explain most of the time, or fewer. */
export function findingsOf(history: History, analysis: Analysis): readonly Finding[] {
  const findingsBy = (rules: readonly NamedRule[]): Finding[] =>
    rules.flatMap(([rule, find]) => {
      const finding = find(history, analysis);
      if (finding === undefined) return [];
      // A run that had begun before the time that is looked at is longer than that.
      const explainedS = Math.min(finding.explainedS, analysis.activeS);
      const share = explainedS / Math.max(1e-9, analysis.activeS);
      const cost = explainedS === 0 ? '' : `${seconds(explainedS)}, ${percent(share)} of the time`;
      return [{ rule, cost, ...finding, explainedS }];
    });
  const leastS = Math.max(SHARE_MIN * analysis.activeS, Number.MIN_VALUE);
  const isLarge = ({ explainedS }: Finding): boolean => explainedS >= leastS;
  const causes = findingsBy(CAUSES).filter(isLarge);
  const bound = causes.length > 0 ? [] : findingsBy([['more-threads', moreThreads]]);
  const found = [...causes, ...bound.filter(isLarge), ...findingsBy(EVENTS)];
  return found.toSorted((a, b) => b.explainedS - a.explainedS).slice(0, FINDINGS_MAX);
}

type NamedRule = readonly [rule: string, find: Rule];

/** By their names; of equal ones the first comes first. */
const CAUSES: readonly NamedRule[] = [
  ['contention', contention],
  ['memory', memoryPressure],
  ['restrictions', restrictions],
  ['saturation', saturation],
  ['placement', placement],
  ['transfers', transfers],
  ['small-tasks', smallTasks],
  ['hand-out', handOut],
  ['straggler', straggler],
  ['slow-worker', slowWorker],
  ['tail', tail],
  ['serial', serial],
  ['late-start', lateStart],
  ['repetitions', repetitions],
];

/** Rules whose findings are worth a line whatever they cost. */
const EVENTS: readonly NamedRule[] = [
  ['unfinished', unfinished],
  ['lost-workers', lostWorkers],
  ['failures', failures],
];

/** The share of the time in which a machine with workers had no processor left; 0 when none tells. */
function fullShare(hosts: readonly HostLoad[]): number {
  const measuredS = sumOf(hosts, (host) => host.measuredS);
  return measuredS === 0 ? 0 : sumOf(hosts, ({ fullS }) => fullS) / measuredS;
}

/** Seconds in which threads had tasks and did not begin them. */
function handOutS({ idle }: Analysis): number {
  const { handOut: onTheWay, queued } = idle.explainedS;
  return onTheWay + (idle.assignedMax < 1 ? 0 : queued);
}

/** The share of a machine's processors from which on other programs, or workers, are worth a word. */
const OTHERS = 0.25;

const LOOPBACK = /^(?:local|localhost|127\.|::1|\[::1\])/;

function contention({ hosts }: History, analysis: Analysis): Found | undefined {
  const { threads, activeS } = analysis;
  const [worst] = hosts.toSorted((a, b) => b.lostS - a.lostS);
  if (worst === undefined || worst.fullS === 0) return undefined;
  const lostS = sumOf(hosts, (host) => host.lostS) / Math.max(1, threads);
  const { cores, threads: ownThreads } = worst;
  const [used, own] = [worst.busyCoreS / worst.fullS, worst.ownCoreS / worst.fullS];
  const others = Math.max(0, used - own);
  const areOthers = others >= Math.min(own, OTHERS * cores);
  const areMany = ownThreads > cores && (own >= OTHERS * cores || !areOthers);
  const machine = LOOPBACK.test(worst.host) ? 'the machine' : worst.host;
  const causes: { readonly title: string; readonly remedy: string }[] = [];
  if (areOthers) {
    causes.push({
      title: `other programs kept ${machine} busy`,
      remedy:
        'Stop the other programs, or give the workers a machine of their own; measure again before you change anything else.',
    });
  }
  if (areMany) {
    causes.push({
      title: `${machine} has fewer processors than its workers have threads`,
      remedy:
        'Start as many threads as there are processors, or use more machines: more threads on this one gain nothing.',
    });
  }
  if (causes.length === 0) {
    causes.push({
      title: `the processors of ${machine} were busy`,
      remedy:
        'Tasks used more processors than they have threads, or other programs took the rest: look at what runs on that machine, or use more machines.',
    });
  }
  return {
    explainedS: Math.min(
      activeS,
      lostS + fullShare(hosts) * (isTiny(handOutFigures(analysis)) ? 0 : handOutS(analysis)),
    ),
    title: causes
      .map(({ title }) => title)
      .join(', and ')
      .replace(/^(?=(?:the|other) )./, (letter) => letter.toUpperCase()),
    text: `For ${percent(worst.fullS / worst.measuredS)} of the time its ${countOf(cores, 'processor')} were busy: ${own.toFixed(1)} of them with workers, ${others.toFixed(1)} with other programs, clients and the scheduler among them. Threads had tasks for ${seconds(worst.lostS)} without a processor to compute them.`,
    remedy: causes.map(({ remedy }) => remedy).join(' '),
  };
}

function memoryPressure({ workers, fromS, toS }: History, analysis: Analysis): Found | undefined {
  const pausedS = ({ pausedS: pauses = [], toS: endS = toS }: HistoryWorker): number =>
    sumOf(pauses, ([from, to = endS]) => to - Math.max(from, fromS));
  const pressed = workers.filter((one) => one.peakSpilledBytes > 0 || pausedS(one) > 0);
  const [worst] = pressed.toSorted(
    (a, b) => pausedS(b) - pausedS(a) || b.peakSpilledBytes - a.peakSpilledBytes,
  );
  if (worst === undefined) return undefined;
  const areResults = worst.peakResultBytes >= worst.peakBytes / 2;
  return {
    explainedS: analysis.idle.explainedS.memory,
    title: areResults ? 'Memory was short' : 'Tasks took the memory, and results did not',
    text: `Of ${countOf(workers.length, 'worker')}, ${pressed.length} spilled results or paused. ${worst.name} used up to ${bytes(worst.peakBytes)}${limitText(worst)}, ${bytes(worst.peakResultBytes)} of them for results, had ${bytes(worst.peakSpilledBytes)} on disk, and was paused for ${seconds(pausedS(worst))}; tasks waited for disks for ${seconds(analysis.time.diskS)}.`,
    remedy: areResults
      ? 'Give workers more memory, release results that are not needed, pass on smaller ones, or run fewer threads on each worker.'
      : 'See what tasks keep in their modules and do not release, and what they take while they run; run fewer threads on each worker, or give workers more memory.',
  };
}

function limitText({ memoryLimitBytes }: HistoryWorker): string {
  return memoryLimitBytes > 0 ? ` of its limit of ${bytes(memoryLimitBytes)}` : '';
}

function restrictions({ runs, prefixes }: History, { idle }: Analysis): Found | undefined {
  const { restrictions: explainedS } = idle.explainedS;
  const sums = new Map<string, number>();
  for (const { heldBy, prefix, readyS, finishedS, timings } of runs) {
    if (heldBy === undefined) continue;
    const startS = timings.find(({ action }) => action === 'compute')?.startS ?? finishedS;
    const name = `${prefixes[prefix] ?? ''} by ${heldBy}`;
    sums.set(name, (sums.get(name) ?? 0) + Math.max(0, startS - readyS));
  }
  const [worst] = [...sums].toSorted(([, a], [, b]) => b - a);
  if (worst === undefined) return undefined;
  return {
    explainedS,
    title: 'Tasks were kept from idle threads',
    text: `Threads were idle for ${seconds(explainedS)} while tasks waited that may not run there: ${worst[0]} for ${seconds(worst[1])} in all.`,
    remedy: `${remedyFor(worst[0])}: the page of such a task, or yardmaster why KEY, says what it waits for.`,
  };
}

function remedyFor(held: string): string {
  if (held.includes(' by the limit ')) return 'Raise the limit, if what it protects can take more';
  if (held.includes(' by the resource ')) return 'Offer the resource on more workers';
  return 'Allow more workers';
}

function saturation(_: History, { idle, threads }: Analysis): Found | undefined {
  const { assignedMax, queuedMax, explainedS } = idle;
  if (assignedMax >= 1 || threads === 0) return undefined;
  return {
    explainedS: explainedS.queued,
    title: 'The scheduler held tasks back from idle threads',
    text: `Up to ${tasks(queuedMax)} waited at the scheduler while threads were idle, and no worker was given more than ${assignedMax.toFixed(1)} tasks per thread.`,
    remedy:
      'Raise the option workerSaturation of the queuing policy, the tasks that a worker is given per thread: 1.1 is the default, and below 1 threads stay idle.',
  };
}

function placement(_: History, { workers, idle }: Analysis): Found | undefined {
  const { placement: explainedS } = idle.explainedS;
  const there = workers.filter(({ capacityS }) => capacityS > 0);
  const sorted = there.toSorted((a, b) => b.idleShare - a.idleShare);
  const [worst, busiest] = [sorted[0], sorted.at(-1)];
  if (worst === undefined || busiest === undefined || worst === busiest) return undefined;
  return {
    explainedS,
    title: `Tasks waited on busy workers while ${worst.name} had little to do`,
    text: `${worst.name} was idle for ${percent(worst.idleShare)} of the time and ran ${tasks(worst.runs)}; ${busiest.name} was idle for ${percent(busiest.idleShare)} and ran ${count(busiest.runs)}.`,
    remedy:
      'See that work stealing is on (scheduler.workStealing.start). When large inputs tie tasks to the worker that holds them, copy those inputs (replicate) or split them.',
  };
}

function transfers(_: History, { time, prefixes, path, idle }: Analysis): Found | undefined {
  const [worst] = prefixes.toSorted((a, b) => b.transferS - a.transferS);
  if (worst === undefined || worst.transferS === 0) return undefined;
  const moved = sumOf(prefixes, ({ movedBytes }) => movedBytes);
  return {
    explainedS: idle.explainedS.transfers,
    title: 'Threads waited for inputs from other workers',
    text: `Workers fetched inputs for ${seconds(time.transferS)} and computed for ${seconds(time.runS)}; ${percent(path.time.transferS / Math.max(1e-9, path.lengthS))} of the critical path is fetching. ${bytes(moved)} were needed where they were not, most of the time by ${worst.name}: ${seconds(worst.transferS)}.`,
    remedy:
      'Use fewer workers with more threads each, pass on smaller results, or try the worker selection locality-first.',
  };
}

/** Tasks that take this multiple of what lies between two of them are large enough. */
const LARGE = 5;
/** A chunk should take this multiple of it. */
const CHUNK = 20;

/** Tasks below this take less than what hands them out. */
const TINY_S = 0.001;

interface HandOutFigures {
  /** Thread seconds that passed between two tasks, on average. */
  readonly perTaskS: number;
  readonly worst: PrefixFigures | undefined;
}

function handOutFigures(analysis: Analysis): HandOutFigures {
  const { threads, runCount, prefixes } = analysis;
  const perTaskS = (handOutS(analysis) * threads) / Math.max(1, runCount);
  const [worst] = prefixes
    .filter(({ name, medianS }) => medianS < LARGE * perTaskS && !name.endsWith(KEPT))
    .toSorted((a, b) => b.runs - a.runs);
  return { perTaskS, worst };
}

/** True when tasks are so short that handing them out is what keeps the machine busy. */
function isTiny({ worst }: HandOutFigures): boolean {
  return worst !== undefined && worst.runs >= RUNS_MIN && worst.medianS < TINY_S;
}

function smallTasks({ hosts }: History, analysis: Analysis): Found | undefined {
  const figures = handOutFigures(analysis);
  const { perTaskS, worst } = figures;
  if (worst === undefined || worst.runs < RUNS_MIN) return undefined;
  const wanted = Math.ceil((CHUNK * perTaskS) / Math.max(worst.medianS, 1e-5));
  const factor = Math.min(wanted, Math.ceil(worst.runs / Math.max(1, analysis.threads)));
  return {
    explainedS: (isTiny(figures) ? 1 : 1 - fullShare(hosts)) * handOutS(analysis),
    title: `Tasks of ${worst.name} are too small`,
    text: `Between two tasks a thread was idle for ${seconds(perTaskS)} on average, on the way to the scheduler and back; half of the ${tasks(worst.runs)} of ${worst.name} took ${seconds(worst.medianS)} or less.`,
    remedy: `Let one task do what about ${count(factor)} do now: client.map(${worst.name}, inputs, { chunk: 'auto' }) finds the size.`,
  };
}

function handOut({ hosts }: History, analysis: Analysis): Found | undefined {
  const { perTaskS, worst } = handOutFigures(analysis);
  if (worst !== undefined && worst.runs >= RUNS_MIN) return undefined;
  return {
    explainedS: (1 - fullShare(hosts)) * handOutS(analysis),
    title: 'Threads waited for their next task',
    text: `Between two tasks a thread was idle for ${seconds(perTaskS)} on average although tasks could run; the median of their durations is ${seconds(analysis.medianS)}.`,
    remedy:
      'See whether the scheduler is busy or far away (yardmaster_event_loop_delay_seconds in its metrics), and raise the option workerSaturation of the queuing policy, so that workers have the next task already.',
  };
}

function straggler(
  { runs, workers }: History,
  { prefixes, idle, threads }: Analysis,
): Found | undefined {
  const excess = ({ maxS, usualS = maxS }: PrefixFigures): number => maxS - usualS;
  const [worst] = prefixes
    .filter(({ maxS, usualS = maxS }) => maxS > STRAGGLES * usualS)
    .toSorted((a, b) => excess(b) - excess(a));
  if (worst === undefined) return undefined;
  const run = runs[worst.longest];
  const isOpen = run?.isOpen === true;
  const { name: where = 'its worker', cpuPercent = 100 } = workers[run?.worker ?? -1] ?? {};
  const waits =
    isOpen && cpuPercent < LITTLE_CPU
      ? ` Its worker uses ${Math.round(cpuPercent)} % of a processor: it waits for something, and hardly computes.`
      : '';
  return {
    explainedS: excess(worst) / Math.max(1, threads) + idle.explainedS.straggler,
    title: `A task of ${worst.name} took much longer than the others`,
    text: `${run?.key ?? ''} ${isOpen ? 'has run' : 'ran'} for ${seconds(worst.maxS)} on ${where}; usual for ${worst.name} is ${seconds(worst.usualS ?? 0)}.${waits}`,
    remedy: isOpen
      ? 'See its call stack and what it was given. When it hangs, cancel it; otherwise split its input more evenly, or submit it first, with a higher priority.'
      : 'Split its input more evenly, or submit it first, with a higher priority.',
  };
}

function slowWorker(_: History, { workers, threads, idle }: Analysis): Found | undefined {
  const worst = slowestOf(workers);
  if (worst === undefined) return undefined;
  const lostS = worst.busyS * (1 - 1 / worst.slowness);
  return {
    explainedS: lostS / Math.max(1, threads) + idle.explainedS.slowWorker,
    title: `${worst.name} is slow`,
    text: `Its ${tasks(worst.runs)} took ${worst.slowness.toFixed(1)} times as long as is usual for their prefixes, ${seconds(worst.busyS)} in all.`,
    remedy: 'See what else runs on its machine, and whether it has as many processors as threads.',
  };
}

function tail({ runs }: History, { idle, threads, medianS }: Analysis): Found | undefined {
  const lastReadyS = runs.reduce((last, { assignedS }) => Math.max(last, assignedS), 0);
  const endS = runs.reduce((last, { finishedS }) => Math.max(last, finishedS), 0);
  return {
    explainedS: idle.explainedS.tail,
    title: 'The last tasks left threads idle',
    text: `The last task began ${seconds(endS - lastReadyS)} before the end, with nothing left for the other of ${countOf(threads, 'thread')}; the median of durations is ${seconds(medianS)}.`,
    remedy:
      'Make tasks smaller, so that the rest divides evenly, or submit the longest ones first, with a higher priority.',
  };
}

function serial(
  { prefixes, runs, fromS }: History,
  { idle, path, threads }: Analysis,
): Found | undefined {
  const { stretch, serialPrefixes, explainedS } = idle;
  const [[prefix, ofPrefixS] = [-1, 0]] = serialPrefixes;
  const name = prefixes[prefix];
  if (threads < 2 || name === undefined) return undefined;
  const own = runs.filter((run) => run.prefix === prefix);
  const links = own.filter(({ lastInput }) => runs[lastInput]?.prefix === prefix);
  const chain = 2 * links.length > own.length ? `, each of which needs the one before it` : '';
  const beganS = stretch[0] - fromS;
  const since = beganS < 0.001 ? '' : `, from ${seconds(beganS)} on`;
  return {
    explainedS: explainedS.serial,
    title: 'More workers would not help: too few tasks could run at a time',
    text: `The longest such stretch lasted ${seconds(stretch[1] - stretch[0])}${since}; ${percent(ofPrefixS / Math.max(1e-9, explainedS.serial))} of the idle time was beside tasks of ${name}${chain}. The longest chain of tasks that need each other computed for ${seconds(path.leastS)}.`,
    remedy: `Make ${name} faster, or split it into tasks that can run side by side.`,
  };
}

/** Percent of a processor below which a thread hardly computes. */
const LITTLE_CPU = 20;

/** More threads are worth it when those that are there are idle for less. */
const BUSY_IDLE_MAX = 0.2;

function moreThreads({ hosts, runs, workers }: History, analysis: Analysis): Found | undefined {
  const { path, activeS, idleShare, threads, time, idle, prefixes } = analysis;
  if (idleShare > BUSY_IDLE_MAX || path.leastS > activeS / 2) return undefined;
  const open = runs.filter(({ isOpen }) => isOpen === true).length;
  const useful = Math.max(open, Math.floor(time.runS / Math.max(path.leastS, 1e-9)));
  if (useful <= threads) return undefined;
  const isFull = fullShare(hosts) > 0.5;
  const [first] = prefixes;
  const doWait = workers.every(({ cpuPercent = Infinity, threads: own }) => {
    return cpuPercent < LITTLE_CPU * own;
  });
  const start = doWait
    ? 'Give workers more threads, as tasks hardly compute while they run'
    : `Start more workers${isFull ? ' on other machines, as the processors of this one are busy' : ''}`;
  return {
    explainedS: idle.fullS / 2,
    title: 'All threads were busy: more of them would make it faster',
    text: `${countOf(threads, 'thread')} ${threads === 1 ? 'was' : 'were'} busy for ${percent(1 - idleShare)} of the time, and a task waited ${seconds((time.queuedS + time.waitedS) / Math.max(1, runs.length))} for one on average. ${first?.name ?? ''} took ${percent((first?.runS ?? 0) / Math.max(1e-9, time.runS))} of all computing.`,
    remedy: `${start}: up to ${countOf(useful, 'thread')} would have something to do, and twice as many would save this. Or make ${first?.name ?? 'the tasks'} faster.`,
  };
}

function lateStart({ runs, workers }: History): Found | undefined {
  const firstS = runs.reduce((least, { readyS }) => Math.min(least, readyS), Infinity);
  const startS = workers.reduce((least, { fromS }) => Math.min(least, fromS), Infinity);
  if (runs.length === 0 || workers.length === 0 || startS <= firstS) return undefined;
  return {
    explainedS: startS - firstS,
    title: 'The work waited for its first worker',
    text: `No worker was there for the first ${seconds(startS - firstS)}.`,
    remedy: 'Start workers before the work, or keep a few: adapt with a minimum.',
  };
}

/** Thread seconds of runs of tasks that had run before. */
function againS({ runs }: History): number {
  const seen = new Set<string>();
  return sumOf(runs, ({ key, timings }) => {
    const isAgain = seen.has(key);
    seen.add(key);
    return isAgain ? sumOf(timings, ({ startS, stopS }) => stopS - startS) : 0;
  });
}

function repetitions(history: History, analysis: Analysis): Found | undefined {
  const { workers } = history;
  const { runCount, taskCount, threads } = analysis;
  const again = runCount - taskCount;
  if (again < 2 || workers.some(({ lost }) => lost !== undefined)) return undefined;
  const repeatedS = againS(history);
  return {
    explainedS: repeatedS / Math.max(1, threads),
    title: 'Results were computed more than once',
    text: `${count(again)} of ${countOf(runCount, 'run')} repeated a task that had run before; they took ${seconds(repeatedS)}.`,
    remedy: 'Hold the futures of results that are needed again: what has no future is released.',
  };
}

/** A worker that had more of its memory limit in use probably died of it. */
const FULL = 0.9;

function lostWorkers(history: History, analysis: Analysis): Found | undefined {
  const { workers, fromS, toS: endS } = history;
  const { runCount, taskCount, threads } = analysis;
  const lost = workers.filter((worker) => worker.lost !== undefined);
  const [first] = lost;
  if (first === undefined) return undefined;
  const nameOf = ({ name, ownName = name }: HistoryWorker): string => ownName;
  const names = new Set(lost.map(nameOf));
  const gone = [...names].filter((name) => {
    return !workers.some((worker) => nameOf(worker) === name && worker.toS === undefined);
  });
  // The time until a worker of the same name came, or the end.
  const awayS = sumOf(lost, (worker) => {
    const { toS = endS } = worker;
    const back = workers.find((one) => one.fromS >= toS && nameOf(one) === nameOf(worker));
    return worker.threads * ((back?.fromS ?? endS) - toS);
  });
  const recomputed = sumOf(lost, (worker) => worker.lost?.recomputed ?? 0);
  const restarted = sumOf(lost, (worker) => worker.lost?.restarted ?? 0);
  const again = runCount - taskCount;
  const inputs =
    again > recomputed ? `; with inputs that were gone, ${countOf(again, 'run')} in all` : '';
  const { toS = fromS, peakBytes } = first;
  const memory =
    peakBytes === 0 ? '' : `; its memory had reached ${bytes(peakBytes)}${limitText(first)}`;
  const away = gone.length === 0 ? '' : ` Not back: ${gone.join(', ')}.`;
  const isFull = lost.some((one) => one.peakBytes >= FULL * (one.memoryLimitBytes || Infinity));
  return {
    explainedS: (againS(history) + awayS) / Math.max(1, threads),
    title:
      lost.length > names.size
        ? `${countOf(names.size, 'worker')} died ${countOf(lost.length, 'time')}`
        : `${countOf(lost.length, 'worker')} ${lost.length === 1 ? 'was' : 'were'} lost`,
    text: `${first.name} was the first, after ${seconds(toS - fromS)}${memory}. ${tasks(restarted)} had to be started again, and ${countOf(recomputed, 'result')} computed again${inputs}.${away}`,
    remedy: isFull
      ? 'Its memory was full: see what tasks keep in their modules or take while they run, run fewer threads on each worker, or give workers more memory.'
      : 'Read the last lines of its log. When the system killed it for its memory, give workers a memory limit, or fewer threads each.',
  };
}

function unfinished({ waiting }: History): Found | undefined {
  if (waiting.length === 0) return undefined;
  return {
    explainedS: 0,
    title: 'Work was not done when this ended',
    text: waiting.join(' '),
    remedy:
      'The other figures are those of the tasks that had ended. Ask yardmaster why about a task that is named here.',
  };
}

function failures(
  { runs, failures: [first], failureCount }: History,
  { threads }: Analysis,
): Found | undefined {
  if (first === undefined) return undefined;
  const failedS = sumOf(runs, ({ isError, timings }) =>
    isError ? sumOf(timings, ({ startS, stopS }) => stopS - startS) : 0,
  );
  return {
    explainedS: failedS / Math.max(1, threads),
    title: `${tasks(failureCount)} failed`,
    text: `${first.key} was the first${failedS === 0 ? '' : `; they ran for ${seconds(failedS)} in all before they failed`}.`,
    remedy: 'Fix this one first. For errors that pass, submit with the option retries.',
  };
}

/** 0.256 → 26 % */
export function percent(share: number): string {
  const value = 100 * share;
  return `${value > 0 && value < 1 ? '<1' : Math.round(value)} %`;
}

/** 3 → 3 tasks */
export function tasks(amount: number): string {
  return countOf(amount, 'task');
}
