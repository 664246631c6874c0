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

/** By kind. */
export function timeOf(timings: readonly ActionTiming[]): ActionTimes {
  let [runS, transferS, diskS, otherS] = [0, 0, 0, 0];
  for (const { action, startS, stopS } of timings) {
    const seconds = Math.max(0, stopS - startS);
    if (action === 'compute') runS += seconds;
    else if (action === 'transfer') transferS += seconds;
    else if (action.startsWith('disk')) diskS += seconds;
    else otherS += seconds;
  }
  return { runS, transferS, diskS, otherS };
}

/** The wait of a run. Transfers of one run overlap; nothing is counted below 0. */
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
