/** Policies and plugins beside Dask's. */
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

export function orderBesideDask(shape: string): Row {
  return {
    name: `order ${shape}`,
    needs: 'python',
    async figures(measure, { tasks, repeat }) {
      const [own, dask, both] = three(
        await measure('order', [shape, tasks, '--repeat', repeat, VS_DASK]),
      );
      return [
        {
          what: `ordering like Dask's, ${shape}`,
          unit: 'times less CPU',
          value: number(both, 'ratio'),
          goal: atLeast(15),
          ours: number(own, 'usPerTask'),
          theirs: number(dask, 'usPerTask'),
        },
      ];
    },
  };
}

export const steal: Row = {
  name: 'steal',
  needs: 'python',
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

export function amm(kind: 'reduce' | 'retire', what: string, ratio: number): Row {
  return {
    name: `amm ${kind}`,
    needs: 'python',
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

/** What a policy of one's own costs: the same policy, with views of the state instead of the state itself. */
export function ownPolicy(
  what: string,
  script: 'amm' | 'kernel',
  field: 'usPerUnit' | 'usPerTask',
  args: (extent: Extent) => readonly (string | number)[],
): Row {
  return {
    name: `own ${script}`,
    async figures(measure, extent) {
      // In turn, so that both meet the same noise.
      const [builtIn, own] = (await alternate(extent.repeat, [[], ['--own']], async (how) =>
        number((await measure(script, [...args(extent), ...how])).at(-1), field),
      )) as [number, number];
      return [
        {
          what: `${what}, by a policy of one's own`,
          unit: 'times the CPU of the built-in one',
          value: own / builtIn,
          goal: atMost(1.3),
          ours: own,
          theirs: builtIn,
        },
      ];
    },
  };
}
