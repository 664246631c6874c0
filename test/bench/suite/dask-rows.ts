/** Dask's own client and workers, with our scheduler and with Dask's in turn. */
import type { Result } from '../side-by-side.ts';
import { atLeast, atMost, type Figure, type Line, number, type Row } from './row.ts';

type Figures = (scenario: Scenario) => readonly Line[];

/** What one scenario gave. */
interface Scenario {
  readonly ratio: number;
  readonly cpuRatio: number;
  readonly ours: Result;
  readonly theirs: Result;
}

/** Tasks that do nothing. A scheduler lives for days: as many come before, unmeasured. */
export const served: Row = {
  name: 'dask tasks',
  needs: 'served',
  figures: (measure, { isFull }) => {
    if (!isFull) return Promise.resolve([]);
    const args = ['--tasks', 10_000, '--warm-up', 10_000, '--rounds', 3];
    return scenarios(measure('dask', ['--scenarios', 'rounds,map', ...args]), { map, rounds });
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

function map(scenario: Scenario): readonly Line[] {
  const what = "Dask's workers: a map of no-ops";
  return [tasksPerS(what, scenario, 5), ...cpu(what, scenario)];
}

function rounds(scenario: Scenario): readonly Line[] {
  const what = "Dask's workers: rounds of map and gather";
  const { ours } = scenario;
  const helper = 'the Python that reads graphs';
  return [
    ...cpu(what, scenario),
    {
      what: `${what}, ${helper}`,
      unit: 'µs of CPU per task',
      value: number(ours, 'helperCpuUsPerTask'),
      goal: atMost(10),
    },
    {
      what: `${what}, ${helper}`,
      unit: 'MB',
      value: number(ours, 'helperMemoryMB'),
      goal: atMost(120),
    },
  ];
}

function tasksPerS(what: string, { ratio, ours, theirs }: Scenario, goal: number): Figure {
  return {
    what,
    unit: 'times the tasks per s',
    value: ratio,
    goal: atLeast(goal),
    ours: number(ours, 'tasksPerS'),
    theirs: number(theirs, 'tasksPerS'),
  };
}

/** Of the process of the scheduler. */
function cpu(what: string, { cpuRatio, ours, theirs }: Scenario): readonly Figure[] {
  const own = number(ours, 'cpuUsPerTask');
  return [
    { what, unit: 'µs of CPU per task', value: own, goal: atMost(60) },
    {
      what,
      unit: 'times less CPU',
      value: cpuRatio,
      goal: atLeast(15),
      ours: own,
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
