import type { ActionTiming } from '../../core/api/index.ts';
import type { Run } from './history.ts';

/** Seconds of what workers did for a task. */
export interface ActionTimes {
  readonly runS: number;
  readonly transferS: number;
  readonly diskS: number;
  readonly otherS: number;
}

/** The time of tasks from the moment they could run until they were done. */
export interface TimeSpent extends ActionTimes {
  /** In the scheduler, until a worker had room. */
  readonly queuedS: number;
  /** On a worker, for a thread and for messages. */
  readonly waitedS: number;
}

/** By kind. Transfers that overlap count once. */
export function timeOf(timings: readonly ActionTiming[]): ActionTimes {
  let [runS, diskS, otherS] = [0, 0, 0];
  const transfers: Interval[] = [];
  for (const { action, startS, stopS } of timings) {
    const seconds = Math.max(0, stopS - startS);
    if (action === 'compute') runS += seconds;
    else if (action === 'transfer') transfers.push([startS, stopS]);
    else if (action.startsWith('disk')) diskS += seconds;
    else otherS += seconds;
  }
  return { runS, transferS: lengthOf(union(transfers)), diskS, otherS };
}

/** The wait of a run. Nothing is counted below 0. */
export function waitOf({
  readyS,
  assignedS,
  finishedS,
  timings,
}: Run): Pick<TimeSpent, 'queuedS' | 'waitedS'> {
  const { runS, transferS, diskS, otherS } = timeOf(timings);
  const queuedS = Math.max(0, assignedS - readyS);
  const there = finishedS - assignedS;
  return { queuedS, waitedS: Math.max(0, there - runS - transferS - diskS - otherS) };
}

/** The sum over all runs. */
export function totalOf(runs: readonly Run[]): TimeSpent {
  const sum = { runS: 0, transferS: 0, diskS: 0, otherS: 0, queuedS: 0, waitedS: 0 };
  for (const run of runs) {
    const spent = { ...timeOf(run.timings), ...waitOf(run) };
    for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += spent[name];
  }
  return sum;
}

/** A stretch of time, in seconds. */
export type Interval = readonly [fromS: number, toS: number];

/** The union of intervals: disjoint and ascending. O(n log n) */
export function union(intervals: readonly Interval[]): readonly Interval[] {
  const sorted = intervals.toSorted(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [fromS, toS] of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && fromS <= last[1]) last[1] = Math.max(last[1], toS);
    else merged.push([fromS, toS]);
  }
  return merged;
}

/** Seconds of the intervals, from one moment to another. */
export function lengthOf(
  intervals: readonly Interval[],
  fromS = -Infinity,
  toS = Infinity,
): number {
  let sumS = 0;
  for (const [a, b] of intervals) sumS += Math.max(0, Math.min(b, toS) - Math.max(a, fromS));
  return sumS;
}
