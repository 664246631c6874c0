import { countOf } from '../../core/util/values.ts';
import { bytes, seconds } from '../dashboard/page/format.ts';
import { analyse, type Analysis } from './analysis.ts';
import { type Finding, findingsOf, percent, tasks } from './findings.ts';
import type { History, Run } from './history.ts';
import { timeOf } from './time-spent.ts';

/** A report about a piece of work. */
export interface Report {
  readonly history: History;
  readonly analysis: Analysis;
  /** In sentences. */
  readonly summary: readonly string[];
  /** Those that explain most of the time first. */
  readonly findings: readonly Finding[];
}

/** O(n log n) in the runs of the history. */
export function reportOf(history: History): Report {
  const analysis = analyse(history);
  const summary = summaryOf(history, analysis);
  return { history, analysis, summary, findings: findingsOf(history, analysis) };
}

/** Names shown in one sentence. */
const NAMES_MAX = 8;

/** The analysis in a few sentences. */
function summaryOf(history: History, analysis: Analysis): readonly string[] {
  const { makespanS, activeS, runCount, taskCount, openCount, threads, path, idleShare, time } =
    analysis;
  if (runCount + openCount === 0) return ['No task was computed in this time.'];
  const pauseS = makespanS - activeS;
  const again = runCount - taskCount;
  return [
    `${tasks(taskCount)} ${openCount > 0 ? 'ended in' : 'took'} ${seconds(makespanS)} on ${countOf(threads, 'thread')} of ${countOf(history.workers.length, 'worker')}` +
      (pauseS > 0.1 * makespanS
        ? `; in ${seconds(pauseS)} of that there was no work, which is left out below`
        : '') +
      (again > 0 ? `; ${countOf(again, 'more run')} repeated some of them` : '') +
      (openCount > 0 ? `; ${tasks(openCount)} had not ended` : '') +
      '.',
    ...(runCount === 0 || openCount > 0
      ? []
      : [
          `The critical path has ${tasks(path.runs.length)} and took ${seconds(path.lengthS)}: ${partsOf(path.time)}. With any number of workers the work would take ${seconds(path.leastS)} at least.`,
        ]),
    `Threads were idle for ${percent(idleShare)} of the time in which there was work${idleText(analysis)}.`,
    `From the moment a task could run until it was done: ${partsOf(time)}.`,
    ...spillText(history, time.diskS),
    ...failureText(history),
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
    ['waiting at the scheduler', queuedS],
    ['waiting on workers', waitedS],
  ] as const;
  const total = parts.reduce((sum, [, amount]) => sum + amount, 0);
  const shown = parts.filter(([, amount]) => amount >= 0.005 * total && amount > 0);
  return shown.map(([name, amount]) => `${percent(amount / total)} ${name}`).join(', ');
}

function spillText({ workers }: History, diskS: number): readonly string[] {
  const spilled = workers.reduce((sum, worker) => sum + worker.peakSpilledBytes, 0);
  const wait = diskS === 0 ? 'no task waited for them' : `tasks waited ${seconds(diskS)} for disks`;
  return spilled === 0 ? [] : [`Up to ${bytes(spilled)} of results were on disk, and ${wait}.`];
}

function failureText({ failures, failureCount, blamelessCount, fromS }: History): string[] {
  const [first] = failures;
  if (first === undefined) return [];
  const others = blamelessCount === 0 ? '' : `, and ${tasks(blamelessCount)} because of that`;
  const reason = first.text.replace(/\.?$/, '.');
  return [
    `${tasks(failureCount)} failed${others}. The first was ${first.key}, after ${seconds(first.atS - fromS)}: ${reason}`,
  ];
}

/** A run of a task in a schedule. Times are seconds after the beginning. */
export interface ScheduledRun extends Pick<Run, 'key' | 'movedBytes' | 'nbytes' | 'isError'> {
  readonly prefix: string;
  /** Name of the worker. */
  readonly worker: string;
  /** Row of the worker, from 1 on: runs in the same row do not overlap. */
  readonly thread: number;
  readonly startS: number;
  readonly endS: number;
  /** Seconds of the transfers that it was the first to wait for. */
  readonly transferS: number;
}

/** The schedule that was carried out: every run, in the order of their starts. O(n log n) in the runs. */
export function scheduleOf({ fromS, runs, workers, prefixes }: History): ScheduledRun[] {
  const rows = workers.map(() => new ThreadRows());
  const ended = runs.filter(({ isOpen }) => isOpen !== true);
  const computed = ended.map((run) => {
    const own = run.timings.filter(({ action }) => action === 'compute');
    const timings = own.length === 0 ? run.timings : own;
    const startS = Math.min(...timings.map((timing) => timing.startS));
    return { run, startS, endS: Math.max(...timings.map(({ stopS }) => stopS)) };
  });
  computed.sort((one, other) => one.startS - other.startS);
  return computed.map(({ run, startS, endS }) => ({
    key: run.key,
    prefix: prefixes[run.prefix] ?? '',
    worker: workers[run.worker]?.name ?? '',
    thread: rows[run.worker]?.rowFor(startS, endS) ?? 0,
    startS: startS - fromS,
    endS: endS - fromS,
    transferS: timeOf(run.timings).transferS,
    movedBytes: run.movedBytes,
    nbytes: run.nbytes,
    isError: run.isError,
  }));
}

/** Rows of one worker: what overlaps in time lies in different ones. */
export class ThreadRows {
  /** The time at which the last span of each row ends, in seconds. */
  private readonly endsS: number[] = [];

  /** The first row that is free by then, from 1 on. O(threads). */
  rowFor(startS: number, stopS: number): number {
    const free = this.endsS.findIndex((endS) => endS <= startS);
    const row = free < 0 ? this.endsS.length : free;
    this.endsS[row] = stopS;
    return row + 1;
  }
}
