/** The kernel alone: workers are numbers that answer at once. */
import {
  alternate,
  atLeast,
  atMost,
  type Extent,
  number,
  type Row,
  three,
  VS_DASK,
} from './row.ts';

/** The kernel beside Dask's scheduler: the ratio, and our CPU time per task. */
export function kernelBesideDask(
  shape: string,
  workers: number,
  goals: { readonly ratio: number; readonly us?: number; readonly updateGraph?: number },
): Row {
  return {
    name: `kernel ${shape} ${workers}`,
    needs: 'python',
    async figures(measure, { tasks, repeat }) {
      const lines = await measure('kernel', [shape, tasks, workers, '--repeat', repeat, VS_DASK]);
      const [own, dask, both] = three(lines);
      const ours = number(own, 'usPerTask');
      const theirs = number(dask, 'usPerTask');
      const graphs = { ours: number(own, 'usGraph'), theirs: number(dask, 'usGraph') };
      const what = `kernel, ${shape}, ${workers} workers`;
      const ratio = { what, unit: 'times less CPU', value: number(both, 'ratio'), ours, theirs };
      const { us, updateGraph = 15 } = goals;
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
                goal: atLeast(updateGraph),
                ...graphs,
              },
            ]),
      ];
    },
  };
}

/** How much more a task costs when there are more workers, or more tasks. */
export function growth(
  what: string,
  limit: number,
  from: (extent: Extent) => readonly [tasks: number, workers: number],
  to: (extent: Extent) => readonly [tasks: number, workers: number],
): Row {
  return {
    name: `growth ${what}`,
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

export const million: Row = {
  name: 'million',
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
        goal: atMost(5),
      },
      {
        what: `a tree of ${tasks} tasks: peak of the process`,
        unit: 'MB',
        value: number(line, 'peakMb'),
        goal: atMost(500),
      },
    ];
  },
};
