/**
 * The history of a piece of work for a report: which runs there were, when, and where. Plain data, so that it can be
 * sent. Times are seconds of the scheduler's clock.
 */
import type { ActionTiming } from '../../core/api/index.ts';
import type { BandwidthsAnswer, ProfileAnswer } from '../dashboard/page-messages.ts';

/** The end of the name of a prefix whose results were read from a store instead of being computed. */
export const KEPT = ', kept';

export interface Run {
  readonly key: string;
  /** Its number in `History.prefixes`. */
  readonly prefix: number;
  /** Its number in `History.workers`. */
  readonly worker: number;
  /** The time at which it was wanted and its inputs were there. */
  readonly readyS: number;
  /** The time at which it was sent to the worker. */
  readonly assignedS: number;
  /** The time at which the scheduler learnt of its end. */
  readonly finishedS: number;
  /** Computing, and what else the worker did for it: `transfer`, `disk-read`, … */
  readonly timings: readonly ActionTiming[];
  /** Bytes of inputs that the worker did not hold when the task was sent to it. */
  readonly movedBytes: number;
  /** Bytes of the result. */
  readonly nbytes: number;
  readonly isError: boolean;
  /** It had not ended at the end of the history, which is its `finishedS`. One that waits has no timings; at the scheduler its worker is -1. */
  readonly isOpen?: true;
  /** The reason that kept it from most workers, in words: `restrictions`, or a limit by its name. */
  readonly heldBy?: string;
  /** Number of the run whose result was the last of its inputs; -1: it needed none that ran in this time. */
  readonly lastInput: number;
}

/** A worker, from its registration to its end. */
export interface HistoryWorker {
  readonly address: string;
  readonly name: string;
  /** The name that the worker itself has, when `name` tells it from earlier ones of that name. */
  readonly ownName?: string;
  readonly threads: number;
  /** 0: unlimited. */
  readonly memoryLimitBytes: number;
  readonly fromS: number;
  /** Undefined: it is still there. */
  readonly toS?: number;
  /** It left unexpectedly, and these results had to be computed again. */
  readonly lost?: { readonly recomputed: number; readonly restarted: number };
  readonly peakBytes: number;
  /** Of these: bytes of results, when it used the most. */
  readonly peakResultBytes: number;
  readonly peakSpilledBytes: number;
  /** CPU of its process on average, 100 a processor; undefined: it never told. */
  readonly cpuPercent?: number;
  /** The times in which it was paused for lack of memory, or because it was told to; the last one may not have ended. */
  readonly pausedS?: readonly (readonly [fromS: number, toS?: number])[];
}

/** The processors of a machine while workers of it computed. */
export interface HostLoad {
  readonly host: string;
  readonly cores: number;
  /** The most threads that its workers had at one time. */
  readonly threads: number;
  readonly measuredS: number;
  /** Seconds in which nearly all processors were busy. */
  readonly fullS: number;
  /** Of these: seconds of processors that all programs used, and those that the processes of its workers used. */
  readonly busyCoreS: number;
  readonly ownCoreS: number;
  /** Of these: seconds for which threads of its workers waited for a processor. */
  readonly lostS: number;
}

/** Memory of all workers at a moment. */
export interface MemorySample {
  readonly atS: number;
  readonly managedBytes: number;
  readonly unmanagedBytes: number;
  readonly spilledBytes: number;
  /** Bytes of the process of each worker, by its number; only for as many workers as can be drawn. */
  readonly processes: readonly (readonly [worker: number, bytes: number])[];
}

/** A task that failed of its own. */
export interface HistoryFailure {
  readonly key: string;
  readonly text: string;
  readonly atS: number;
}

/** A piece of work. */
export interface History {
  readonly fromS: number;
  readonly toS: number;
  readonly prefixes: readonly string[];
  /** Of each prefix the mean seconds of the tasks that the scheduler knows; -1: of none, or fewer than say something. */
  readonly knownS?: readonly number[];
  readonly workers: readonly HistoryWorker[];
  readonly runs: readonly Run[];
  /** Runs beyond the bound, of which nothing else is known. */
  readonly omittedRuns: number;
  readonly memory: readonly MemorySample[];
  readonly bandwidths: BandwidthsAnswer;
  /** Of machines that tell. */
  readonly hosts: readonly HostLoad[];
  /** The first ones. */
  readonly failures: readonly HistoryFailure[];
  /** Tasks that failed of their own. */
  readonly failureCount: number;
  /** Tasks that failed because an input did. */
  readonly blamelessCount: number;
  /** The tasks that had not ended at the end, and why: the sentences of the dashboard's first page. */
  readonly waiting: readonly string[];
  /** Samples of the calls of tasks. Undefined: nobody sampled, as in a recording and a simulation. */
  readonly profile?: ProfileAnswer;
}

type Column<T> = readonly T[];

/** The runs in columns: a tenth of the size, and quicker to encode. */
export interface RunColumns {
  readonly keys: Column<string>;
  readonly prefixes: Column<number>;
  readonly workers: Column<number>;
  /** Milliseconds after `fromS`. */
  readonly readyMs: Column<number>;
  /** Milliseconds after it was ready. */
  readonly assignedMs: Column<number>;
  readonly finishedMs: Column<number>;
  readonly movedBytes: Column<number>;
  readonly nbytes: Column<number>;
  readonly errors: Column<number>;
  readonly open: Column<number>;
  readonly held: Column<readonly [run: number, by: string]>;
  readonly lastInputs: Column<number>;
  /** Of each run: number of the action, start after `fromS` and duration in milliseconds, again and again. */
  readonly timings: Column<readonly number[]>;
  readonly actions: Column<string>;
}

/** A history with its runs in columns. */
export type PackedHistory = Omit<History, 'runs'> & { readonly runs: RunColumns };

/** Hundredths of a millisecond are more than clocks agree on. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** To be sent. */
export function packHistory(history: History): PackedHistory {
  const { runs, fromS } = history;
  const actions: string[] = [];
  const numberOf = (action: string): number => {
    const known = actions.indexOf(action);
    return known < 0 ? actions.push(action) - 1 : known;
  };
  const timings = runs.map((run) =>
    run.timings.flatMap(({ action, startS, stopS }) => [
      numberOf(action),
      rounded(1000 * (startS - fromS)),
      rounded(1000 * (stopS - startS)),
    ]),
  );
  const columns: RunColumns = {
    keys: runs.map(({ key }) => key),
    prefixes: runs.map(({ prefix }) => prefix),
    workers: runs.map(({ worker }) => worker),
    readyMs: runs.map(({ readyS }) => rounded(1000 * (readyS - fromS))),
    assignedMs: runs.map(({ readyS, assignedS }) => rounded(1000 * (assignedS - readyS))),
    finishedMs: runs.map(({ readyS, finishedS }) => rounded(1000 * (finishedS - readyS))),
    movedBytes: runs.map(({ movedBytes }) => movedBytes),
    nbytes: runs.map(({ nbytes }) => nbytes),
    errors: runs.flatMap(({ isError }, number) => (isError ? [number] : [])),
    open: runs.flatMap(({ isOpen }, number) => (isOpen === true ? [number] : [])),
    held: runs.flatMap(({ heldBy }, number) => (heldBy === undefined ? [] : [[number, heldBy]])),
    lastInputs: runs.map(({ lastInput }) => lastInput),
    timings,
    actions,
  };
  return { ...history, runs: columns };
}

/** The reverse of {@link packHistory}. */
export function unpackHistory(packed: PackedHistory): History {
  const { runs: columns, fromS } = packed;
  const errors = new Set(columns.errors);
  const open = new Set(columns.open);
  const held = new Map(columns.held);
  const at = (column: Column<number>, number: number): number => column[number] ?? 0;
  const runs = columns.keys.map((key, number): Run => {
    const readyS = fromS + at(columns.readyMs, number) / 1000;
    return {
      ...{ key, prefix: at(columns.prefixes, number), worker: at(columns.workers, number), readyS },
      assignedS: readyS + at(columns.assignedMs, number) / 1000,
      finishedS: readyS + at(columns.finishedMs, number) / 1000,
      movedBytes: at(columns.movedBytes, number),
      nbytes: at(columns.nbytes, number),
      isError: errors.has(number),
      ...(open.has(number) ? { isOpen: true } : {}),
      ...(held.has(number) ? { heldBy: held.get(number) } : {}),
      lastInput: columns.lastInputs[number] ?? -1,
      timings: timingsOf(columns.timings[number] ?? [], columns.actions, fromS),
    };
  });
  return { ...packed, runs };
}

function timingsOf(
  flat: readonly number[],
  actions: readonly string[],
  fromS: number,
): readonly ActionTiming[] {
  const timings: ActionTiming[] = [];
  for (let index = 0; index < flat.length; index += 3) {
    const [action = 0, startMs = 0, lengthMs = 0] = flat.slice(index, index + 3);
    const startS = fromS + startMs / 1000;
    timings.push({ action: actions[action] ?? 'other', startS, stopS: startS + lengthMs / 1000 });
  }
  return timings;
}
