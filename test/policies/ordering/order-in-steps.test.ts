import { describe, expect, it } from 'vitest';
import { chains, overlap, tree, type Workload } from '../../../adapters/workloads/index.ts';
import type { GraphTask } from '../../../core/api/index.ts';
import { isSteps } from '../../../core/util/steps.ts';
import { depthFirst } from '../../../policies/ordering/depth-first.ts';
import {
  criticalPathOrder,
  daskOrder,
  depthFirstWalk,
  startsOf,
  withoutData,
} from '../../../policies/ordering/dask.ts';
import { indexGraph, resolveLinks } from '../../../policies/ordering/graph-index.ts';
import { made } from '../../kit/made.ts';

const GRAPHS: readonly (readonly [string, Workload])[] = [
  ['a tree', tree(13)],
  ['chains', chains(100, 100)],
  ['a stencil', overlap(100, 100)],
];

function walkAtOnce(tasks: readonly GraphTask[], keys: readonly string[]): Int32Array {
  const links = resolveLinks(tasks);
  return depthFirstWalk(links, tasks.length, startsOf(links, keys));
}

function criticalPathsAtOnce(tasks: readonly GraphTask[]): Int32Array {
  return criticalPathOrder(withoutData(indexGraph(tasks), tasks));
}

describe.each([
  ['dask', made(daskOrder), criticalPathsAtOnce],
  ['depth-first', made(depthFirst), walkAtOnce],
])('%s', (_name, policy, atOnce) => {
  it.each(GRAPHS)('orders %s in steps as at once', (_graph, { tasks, keys }) => {
    const steps = policy.order(tasks, keys);
    if (!isSteps(steps)) throw new TypeError('the order was found without pauses');
    let pauses = 0;
    let next = steps.next();
    for (; next.done !== true; pauses++) next = steps.next();
    expect(pauses).toBeGreaterThan(2);
    expect(next.value).toEqual(atOnce(tasks, keys));
  });
});
