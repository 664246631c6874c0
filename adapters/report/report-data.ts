import type { Analysis, CriticalPath } from './analysis.ts';
import { timeOf, type TimeSpent, waitOf } from './time-spent.ts';
import { type History, packHistory, type PackedHistory, type Run } from './history.ts';

/** Runs that the page shows one by one. */
const RUNS_MAX = 100_000;

/** Steps of the critical path that are listed. */
const STEPS_MAX = 200;

/** A run of the critical path. */
export interface PathStep extends TimeSpent {
  readonly key: string;
  readonly prefix: number;
  readonly worker: number;
}

/** The data of the page of a report; its words are in the markup. */
export interface ReportData {
  readonly history: PackedHistory;
  /** Runs that are not in it: the shortest of those that did not fail. */
  readonly shorterRuns: number;
  readonly analysis: Omit<Analysis, 'path'>;
  readonly path: Omit<CriticalPath, 'runs'> & {
    readonly steps: readonly PathStep[];
    readonly count: number;
  };
}

/** Bounded in size, whatever the size of the history. */
export function reportData(history: History, { path, ...analysis }: Analysis): ReportData {
  const { runs } = history;
  const shown = shownRuns(runs, new Set(path.runs.slice(-STEPS_MAX)));
  const { runs: chain, ...lengths } = path;
  const steps = chain.slice(-STEPS_MAX).flatMap((number): readonly PathStep[] => {
    const run = runs[number];
    if (run === undefined) return [];
    const { key, prefix, worker, timings } = run;
    return [{ key, prefix, worker, ...timeOf(timings), ...waitOf(run) }];
  });
  return {
    history: packHistory({ ...history, runs: shown }),
    shorterRuns: runs.length - shown.length,
    analysis,
    path: { ...lengths, steps, count: chain.length },
  };
}

/** The longest, and those that are named elsewhere. */
function shownRuns(runs: readonly Run[], named: ReadonlySet<number>): readonly Run[] {
  if (runs.length <= RUNS_MAX) return runs;
  const lengthOf = ({ isError, timings }: Run, number: number): number =>
    isError || named.has(number) ? Infinity : timeOf(timings).runS;
  const lengths = runs.map(lengthOf);
  const numbers = runs.map((_, number) => number);
  numbers.sort((a, b) => (lengths[b] ?? 0) - (lengths[a] ?? 0) || a - b);
  const kept = new Set(numbers.slice(0, RUNS_MAX));
  return runs.filter((_, number) => kept.has(number));
}
