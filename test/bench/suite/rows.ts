/** What `npm run bench` measures, and what is expected of it. */
import type { Result } from '../side-by-side.ts';
import { cost } from './cost-row.ts';

/** What a figure has to be. */
export interface Goal {
  readonly is: 'at least' | 'at most';
  readonly value: number;
}

/** One line of the table. */
export interface Figure {
  readonly what: string;
  /** How to read the value: `times less` than the peer, `µs`, `ms`, … */
  readonly unit: string;
  readonly value: number;
  readonly goal: Goal;
  /** All measurements of both sides, for further analysis. */
  readonly ours?: number;
  readonly theirs?: number;
}

/** A figure, or the reason why there is none. */
export type Line = { readonly name: string; readonly skipped: string } | Figure;

/** How much is measured, and beside which peers. */
export interface Extent {
  readonly tasks: number;
  readonly repeat: number;
  /** The sizes that take minutes are measured as well. */
  readonly isFull: boolean;
  /** Interpreters of Python with Dask, and with HyperQueue. */
  readonly python: string;
  readonly hyperqueue: string;
}

/** Runs one benchmark script of ours; each line that it prints. */
export type Measure = (
  script: string,
  args: readonly (string | number)[],
) => Promise<readonly Result[]>;

/** A group of figures that one or several scripts give. */
export interface Row {
  readonly name: string;
  /** Whether the peer that it needs is Python's. */
  readonly needsDask: boolean;
  figures(measure: Measure, extent: Extent): Promise<readonly Line[]>;
}

const atLeast = (value: number): Goal => ({ is: 'at least', value });
const atMost = (value: number): Goal => ({ is: 'at most', value });
const VS_DASK = '--vs-dask';

/** The kernel beside Dask's scheduler: the ratio, and our CPU time per task. */
function kernelBesideDask(
  shape: string,
  workers: number,
  goals: { readonly ratio: number; readonly us?: number },
): Row {
  return {
    name: `kernel ${shape} ${workers}`,
    needsDask: true,
    async figures(measure, { tasks, repeat }) {
      const lines = await measure('kernel', [shape, tasks, workers, '--repeat', repeat, VS_DASK]);
      const [own, dask, both] = three(lines);
      const ours = number(own, 'usPerTask');
      const theirs = number(dask, 'usPerTask');
      const graphs = { ours: number(own, 'usGraph'), theirs: number(dask, 'usGraph') };
      const what = `kernel, ${shape}, ${workers} workers`;
      const ratio = { what, unit: 'times less CPU', value: number(both, 'ratio'), ours, theirs };
      const { us } = goals;
      return [
        { ...ratio, goal: atLeast(goals.ratio) },
        ...(us === undefined
          ? []
          : [
              { what, unit: 'µs per task', value: ours, goal: atMost(us) },
              {
                what: `${what}: memory`,
                unit: 'bytes per task',
                value: number(own, 'bytesPerTask'),
                goal: atMost(600),
              },
              {
                what: `${what}: update-graph`,
                unit: 'times less CPU',
                value: graphs.theirs / graphs.ours,
                goal: atLeast(15),
                ...graphs,
              },
            ]),
      ];
    },
  };
}

/** How much more a task costs when there are more workers, or more tasks. */
function growth(
  what: string,
  limit: number,
  from: (extent: Extent) => readonly [tasks: number, workers: number],
  to: (extent: Extent) => readonly [tasks: number, workers: number],
): Row {
  return {
    name: `growth ${what}`,
    needsDask: false,
    async figures(measure, extent) {
      // In turn, so that both meet the same noise.
      const [small, large] = (await alternate(
        extent.repeat,
        [from(extent), to(extent)],
        async (size) => number((await measure('kernel', ['tree', ...size])).at(-1), 'usPerTask'),
      )) as [number, number];
      return [
        {
          what: `growth, ${what}`,
          unit: 'times the CPU',
          value: large / small,
          goal: atMost(limit),
          ours: large,
          theirs: small,
        },
      ];
    },
  };
}

function orderBesideDask(shape: string): Row {
  return {
    name: `order ${shape}`,
    needsDask: true,
    async figures(measure, { tasks, repeat }) {
      const [own, dask, both] = three(
        await measure('order', [shape, tasks, '--repeat', repeat, VS_DASK]),
      );
      return [
        {
          what: `ordering like Dask's, ${shape}`,
          unit: 'times less CPU',
          value: number(both, 'ratio'),
          goal: atLeast(10),
          ours: number(own, 'usPerTask'),
          theirs: number(dask, 'usPerTask'),
        },
      ];
    },
  };
}

const steal: Row = {
  name: 'steal',
  needsDask: true,
  async figures(measure, { tasks, repeat }) {
    const [own, dask, both] = three(
      await measure('steal', [tasks, 1000, '--repeat', repeat, VS_DASK]),
    );
    return [
      {
        what: 'a round of work stealing, 1000 workers',
        unit: 'times less CPU',
        value: number(both, 'ratio'),
        goal: atLeast(50),
        ours: number(own, 'firstMs'),
        theirs: number(dask, 'firstMs'),
      },
      {
        what: 'a round of work stealing: longest slice',
        unit: 'ms',
        value: number(own, 'longestSliceMs'),
        goal: atMost(10),
      },
    ];
  },
};

function amm(kind: 'reduce' | 'retire', what: string, ratio: number): Row {
  return {
    name: `amm ${kind}`,
    needsDask: true,
    async figures(measure, { tasks, repeat }) {
      const args = [tasks, 1000, '--kind', kind, '--repeat', repeat, VS_DASK];
      const [own, dask, both] = three(await measure('amm', args));
      return [
        {
          what,
          unit: 'times less CPU',
          value: number(both, 'ratio'),
          goal: atLeast(ratio),
          ours: number(own, 'usPerUnit'),
          theirs: number(dask, 'usPerUnit'),
        },
      ];
    },
  };
}

const wire: Row = {
  name: 'zero',
  needsDask: false,
  async figures(measure, { tasks }) {
    const line = (await measure('zero', ['tree', tasks, 100])).at(-1);
    return [
      {
        what: 'over TCP, workers that compute nothing: the longest that nothing else happens',
        unit: 'ms',
        value: number(line, 'longestBlockMs'),
        goal: atMost(20),
      },
      {
        what: 'over TCP, workers that compute nothing',
        unit: 'tasks per s',
        value: number(line, 'tasksPerS'),
        goal: atLeast(100_000),
      },
    ];
  },
};

/** Whole clusters in turn: client, scheduler and two worker processes, ours and Dask's. */
const endToEnd: Row = {
  name: 'end to end',
  needsDask: true,
  async figures(measure, { isFull }) {
    const extent = isFull ? ['10000', '--turns', 3] : ['5000', '--turns', 1];
    const [own, dask, both] = three(await measure('end-to-end', ['map', ...extent, VS_DASK]));
    const what = 'end to end, two worker processes, no-ops';
    return [
      {
        what,
        unit: 'times the tasks per s',
        value: number(both, 'throughputRatio'),
        goal: atLeast(40),
        ours: number(own, 'tasksPerS'),
        theirs: number(dask, 'tasksPerS'),
      },
      {
        what,
        unit: 'times less CPU',
        value: number(both, 'cpuRatio'),
        goal: atLeast(40),
        ours: number(own, 'cpuUsPerTask'),
        theirs: number(dask, 'cpuUsPerTask'),
      },
    ];
  },
};

const latency: Row = {
  name: 'latency',
  needsDask: true,
  async figures(measure, { isFull }) {
    const extent = isFull ? ['500', '--turns', 3] : ['200', '--turns', 1];
    const [own, dask, both] = three(await measure('end-to-end', ['latency', ...extent, VS_DASK]));
    const what = 'from submit to the result, two worker processes, median';
    const ours = number(own, 'p50Ms');
    const ratio = { value: number(both, 'latencyRatio'), theirs: number(dask, 'p50Ms') };
    return [
      { what, unit: 'ms', value: ours, goal: atMost(0.5) },
      { what, unit: 'times less time', goal: atLeast(20), ours, ...ratio },
    ];
  },
};

/** Two threads, with scheduler and client, beside the best of the pools of threads. */
const pools: Row = {
  name: 'pools',
  needsDask: false,
  async figures(measure, { isFull }) {
    const extent = isFull ? [] : ['--tasks', 5000, '--rounds', 3, '--repeat', 1];
    const lines = await measure('worker', ['--part', 'pools', ...extent]);
    return (['burst', 'closed'] as const).flatMap((pattern) => {
      const its = lines.filter((line) => line['pattern'] === pattern);
      const best = its.find(({ bench }) => bench === 'worker-pool-vs-best');
      const beside = its.filter(({ pool }) => pool !== undefined);
      const ours = beside.find(({ pool }) => pool === 'yardmaster');
      const peers = beside.filter((line) => line !== ours);
      const what = `threads beside the best pool, ${pattern}`;
      return [
        {
          what,
          unit: 'times the tasks per s',
          value: number(best, 'throughputRatio'),
          goal: atLeast(1),
          ours: number(ours, 'tasksPerS'),
          theirs: Math.max(...peers.map((line) => number(line, 'tasksPerS'))),
        },
        {
          what,
          unit: 'times less CPU',
          value: number(best, 'cpuRatio'),
          goal: atLeast(1),
          ours: number(ours, 'usPerTask'),
          theirs: Math.min(...peers.map((line) => number(line, 'usPerTask'))),
        },
      ];
    });
  },
};

const million: Row = {
  name: 'million',
  needsDask: false,
  async figures(measure, { isFull }) {
    if (!isFull) return [];
    // The shape rounds down to a power of two.
    const line = (await measure('kernel', ['tree', 1_048_576, 1000, '--once'])).at(-1);
    const tasks = number(line, 'tasks');
    return [
      {
        what: `a tree of ${tasks} tasks, 1000 workers`,
        unit: 's of CPU',
        value: (number(line, 'usPerTask') * tasks) / 1e6,
        goal: atMost(8),
      },
      {
        what: `a tree of ${tasks} tasks: peak of the process`,
        unit: 'MB',
        value: number(line, 'peakMb'),
        goal: atMost(700),
      },
    ];
  },
};

/** In the order of the table. */
export const ROWS: readonly Row[] = [
  kernelBesideDask('tree', 100, { ratio: 20, us: 5 }),
  kernelBesideDask('chains', 100, { ratio: 20, us: 5 }),
  kernelBesideDask('shuffle', 100, { ratio: 20, us: 5 }),
  kernelBesideDask('overlap', 100, { ratio: 20, us: 5 }),
  kernelBesideDask('merge', 1000, { ratio: 60 }),
  growth(
    '1000 workers against 10',
    1.3,
    ({ tasks }) => [tasks, 10],
    ({ tasks }) => [tasks, 1000],
  ),
  growth(
    '10000 workers against 10',
    1.3,
    ({ tasks }) => [tasks, 10],
    ({ tasks }) => [tasks, 10_000],
  ),
  growth(
    'ten or a hundred times the tasks',
    1.5,
    () => [10_000, 100],
    ({ isFull }) => [isFull ? 1_000_000 : 100_000, 100],
  ),
  orderBesideDask('tree'),
  orderBesideDask('shuffle'),
  orderBesideDask('overlap'),
  steal,
  amm('reduce', 'a copy dropped by reduce-replicas, 1000 workers', 10),
  amm('retire', 'a result of a retiring worker, 1000 workers', 25),
  endToEnd,
  latency,
  pools,
  cost,
  wire,
  million,
];

/** Medians of several turns in which each input is measured once. */
async function alternate<T>(
  turns: number,
  inputs: readonly T[],
  measure: (input: T) => Promise<number>,
): Promise<readonly number[]> {
  const values = inputs.map(() => [] as number[]);
  for (let turn = 0; turn < turns; turn++) {
    for (const [index, input] of inputs.entries()) values[index]?.push(await measure(input));
  }
  return values.map((own) => own.toSorted((a, b) => a - b)[own.length >> 1] as number);
}

function three(lines: readonly Result[]): readonly [Result, Result, Result] {
  if (lines.length === 3) return lines as [Result, Result, Result];
  throw new Error(`three lines were expected: ours, the peer's and the ratio; got ${lines.length}`);
}

function number(line: Result | undefined, field: string): number {
  const value = line?.[field];
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`the benchmark printed no "${field}"`);
}
