import type { Result } from '../side-by-side.ts';
import type { Line, Row } from './row.ts';

/** Whom a scheduler is compared with: all whose workers are of the same kind. */
interface Comparison {
  readonly beside: string;
  readonly workers: 'processes' | 'threads';
  readonly isPeer: (who: string) => boolean;
  /** How many times their tasks per second, and per second of CPU time, we have to do. */
  readonly ratio: number;
}

const COMPARISONS: readonly Comparison[] = [
  { beside: 'Dask', workers: 'processes', isPeer: (who) => who === 'dask', ratio: 40 },
  { beside: 'HyperQueue', workers: 'processes', isPeer: (who) => who === 'hyperqueue', ratio: 10 },
  { beside: 'the best pool', workers: 'threads', isPeer: (who) => who !== 'yardmaster', ratio: 1 },
];

/** What scheduling costs, with tasks that do nothing: the same with every peer that is installed. */
export const cost: Row = {
  name: 'cost',
  async figures(measure, { isFull, python, hyperqueue }) {
    const extent = isFull ? [] : ['--tasks', 5000, '--turns', 1];
    const lines = await measure('cost', [
      ...extent,
      ...['--python', python, '--hyperqueue', hyperqueue],
    ]);
    return COMPARISONS.flatMap((comparison) => compare(comparison, lines));
  },
};

function compare(
  { beside, workers, isPeer, ratio }: Comparison,
  all: readonly Result[],
): readonly Line[] {
  const lines = all.filter((line) => line['workers'] === workers);
  const own = lines.find((line) => line['who'] === 'yardmaster');
  const peers = lines.filter((line) => isPeer(String(line['who'])));
  const what = `cost of no-ops, two ${workers}, beside ${beside}`;
  const skipped = peers.map((line) => line['skipped']).find((why) => typeof why === 'string');
  if (skipped !== undefined) return [{ name: what, skipped }];
  return (['tasksPerS', 'tasksPerCoreS'] as const).map((field) => {
    const ours = Number(own?.[field]);
    const theirs = Math.max(...peers.map((line) => Number(line[field])));
    if (!Number.isFinite(ours / theirs)) throw new Error(`the benchmark printed no "${field}"`);
    return {
      what,
      unit: field === 'tasksPerS' ? 'times the tasks per s' : 'times the tasks per core-second',
      value: ours / theirs,
      goal: { is: 'at least', value: ratio },
      ours,
      theirs,
    };
  });
}
