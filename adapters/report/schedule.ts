import type { History } from './history.ts';
import { timeOf } from './time-spent.ts';

/** A run of a task in a schedule. Times are seconds after the beginning. */
export interface ScheduledRun {
  readonly key: string;
  readonly prefix: string;
  /** Name of the worker. */
  readonly worker: string;
  /** Row of the worker, from 1 on: runs in the same row do not overlap. */
  readonly thread: number;
  readonly startS: number;
  readonly endS: number;
  /** Seconds of the transfers that it was the first to wait for. */
  readonly transferS: number;
  /** Bytes of inputs that the worker did not hold when the task was sent to it. */
  readonly movedBytes: number;
  /** Bytes of the result. */
  readonly nbytes: number;
  readonly isError: boolean;
}

/** The schedule that was carried out: every run, in the order of their starts. O(n log n) in the runs. */
export function scheduleOf({ fromS, runs, workers, prefixes }: History): ScheduledRun[] {
  const rows = workers.map(() => new ThreadRows());
  const computed = runs.map((run) => {
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
