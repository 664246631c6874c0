/** Policies and plugins beside Dask's. */
import { atLeast, atMost, number, type Row, three, VS_DASK } from './row.ts';

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
