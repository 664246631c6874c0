import { describe, expect, it } from 'vitest';
import { chains, overlap, tree, type Workload } from '../../../adapters/workloads/index.ts';
import { daskOrder } from '../../../policies/ordering/critical-path/dask.ts';
import { depthFirst } from '../../../policies/ordering/baselines/depth-first.ts';

const GRAPHS: readonly (readonly [string, Workload])[] = [
  ['a tree', tree(13)],
  ['chains', chains(100, 100)],
  ['a stencil', overlap(100, 100)],
];

describe.each([
  ['dask', daskOrder.create({})],
  ['depth-first', depthFirst.create({})],
])('%s', (_name, policy) => {
  it.each(GRAPHS)('orders %s in steps as at once', (_graph, { tasks, keys }) => {
    const steps = policy.orderInSteps!(tasks, keys);
    let pauses = 0;
    let next = steps.next();
    for (; next.done !== true; pauses++) next = steps.next();
    expect(pauses).toBeGreaterThan(2);
    expect(next.value).toEqual(policy.order(tasks, keys));
  });
});
