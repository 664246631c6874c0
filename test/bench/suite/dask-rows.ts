/** Dask's own client and workers, with our scheduler and with Dask's in turn. */
import type { Result } from '../side-by-side.ts';
import { atLeast, type Line, number, type Row } from './row.ts';

type Figures = (scenario: Scenario) => readonly Line[];

/** What one scenario gave. */
interface Scenario {
  readonly ratio: number;
  readonly cpuRatio: number;
  readonly ours: Result;
  readonly theirs: Result;
}

/**
 * What each workload costs the scheduler and the Python that reads its graphs together. A scheduler lives
 * for days: as many tasks come before, unmeasured.
 */
export const served: Row = {
  name: 'dask tasks',
  needs: 'served',
  figures: (measure, { isFull }) => {
    if (!isFull) return Promise.resolve([]);
    const args = ['--tasks', 10_000, '--warm-up', 10_000, '--rounds', 3];
    return scenarios(measure('dask', ['--scenarios', 'map,tree,array,query', ...args]), {
      map: workload("Dask's workers: a map of no-ops", { rate: 5, cpu: 15 }),
      tree: workload("Dask's workers: a tree of small sums", { rate: 5, cpu: 10 }),
      array: workload("Dask's workers: reductions of arrays", { rate: 3, cpu: 5 }),
      query: workload("Dask's workers: a query of joined dataframes", { rate: 1, cpu: 1 }),
    });
  },
};

/** Results of 8 and 200 MB that pass the scheduler. */
export const servedData: Row = {
  name: 'dask data',
  needs: 'served',
  figures: (measure, { isFull }) => {
    if (!isFull) return Promise.resolve([]);
    const lines = measure('dask', ['--scenarios', 'gather,scatter', '--rounds', 3]);
    return scenarios(lines, {
      gather: data("Dask's workers: 40 results of 8 MB to the client"),
      scatter: data("Dask's workers: 4 values of 200 MB from the client"),
    });
  },
};

/** Tasks per second and CPU per task, beside the peer. */
function workload(what: string, goals: { readonly rate: number; readonly cpu: number }): Figures {
  return ({ ratio, cpuRatio, ours, theirs }) => [
    {
      what,
      unit: 'times the tasks per s',
      value: ratio,
      goal: atLeast(goals.rate),
      ours: number(ours, 'tasksPerS'),
      theirs: number(theirs, 'tasksPerS'),
    },
    {
      what,
      unit: 'times less CPU, with the Python that reads graphs',
      value: cpuRatio,
      goal: atLeast(goals.cpu),
      ours: number(ours, 'cpuUsPerTask'),
      theirs: number(theirs, 'cpuUsPerTask'),
    },
  ];
}

/** Time, CPU and memory are to be at or below those of the peer. */
function data(what: string): Figures {
  return ({ ours, theirs }) =>
    (
      [
        ['seconds', 'times less time'],
        ['cpuS', 'times less CPU'],
        ['memoryMB', 'times less memory afterwards'],
      ] as const
    ).map(([field, unit]) => {
      const [own, peer] = [number(ours, field), number(theirs, field)];
      return { what, unit, value: peer / own, goal: atLeast(1), ours: own, theirs: peer };
    });
}

async function scenarios(
  measured: Promise<readonly Result[]>,
  figures: Readonly<Record<string, Figures>>,
): Promise<readonly Line[]> {
  const lines = await measured;
  return Object.entries(figures).flatMap(([name, of]) => {
    const line = lines.find(({ scenario }) => scenario === name);
    return of({
      ratio: number(line, 'ratio'),
      cpuRatio: number(line, 'cpuRatio'),
      ours: line?.['yardmaster'] as Result,
      theirs: line?.['dask'] as Result,
    });
  });
}
