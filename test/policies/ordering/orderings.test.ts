import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Ordering } from '../../../core/api/index.ts';
import { fifo } from '../../../policies/ordering/fifo.ts';
import { best } from '../../../policies/ordering/best.ts';
import { daskOrder } from '../../../policies/ordering/dask.ts';
import { depthFirst } from '../../../policies/ordering/depth-first.ts';
import { mars } from '../../../policies/ordering/mars.ts';
import { sinks } from '../../kit/graph.ts';
import { ranksOf, randomGraphs, whyInvalid } from '../../kit/orders.ts';
import { made } from '../../kit/made.ts';

const ORDERINGS: Readonly<Record<string, Ordering>> = {
  dask: made(daskOrder),
  'depth-first': made(depthFirst),
  'depth-first, most needed first': made(depthFirst, { children: 'most-needed' }),
  mars: made(mars),
  fifo: made(fifo),
  best: made(best, { candidates: ['dask', 'depth-first', 'needs-first', 'mars', 'fifo'] }),
};

describe.each(Object.entries(ORDERINGS))('%s', (_name, ordering) => {
  it('gives each task its own number, dependencies before their dependents', () => {
    fc.assert(
      fc.property(randomGraphs(), (tasks) => {
        expect(whyInvalid(tasks, ranksOf(ordering, tasks, sinks(tasks)))).toBeUndefined();
      }),
    );
  });

  it('gives the same graph the same order', () => {
    fc.assert(
      fc.property(randomGraphs(), (tasks) => {
        const keys = sinks(tasks);
        expect(Array.from(ranksOf(ordering, tasks, keys))).toEqual(
          Array.from(ranksOf(ordering, structuredClone(tasks), keys)),
        );
      }),
    );
  });
});
