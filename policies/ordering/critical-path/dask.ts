import { definePolicy, type GraphLinks, type GraphTask } from '../../../core/api/index.ts';
import { criticalPathInSteps, criticalPathOrder } from './critical-path.ts';
import { indexGraph } from './graph-index.ts';
import { withoutData } from './without-data.ts';

/**
 * The order that Dask gives graphs since 2023.12. It keeps few results alive when tasks run one after
 * the other. Ties go by key, so that the order does not depend on the order of submission.
 */
export const daskOrder = definePolicy('ordering', {
  name: 'dask',
  create: () => ({
    order: (tasks, _keys, links) => criticalPathOrder(withoutData(indexGraph(tasks, links), tasks)),
    orderInSteps,
  }),
});

function* orderInSteps(
  tasks: readonly GraphTask[],
  _keys: readonly string[],
  links?: GraphLinks,
): Generator<undefined, Int32Array, undefined> {
  const graph = indexGraph(tasks, links);
  yield;
  const reduced = withoutData(graph, tasks);
  yield;
  return yield* criticalPathInSteps(reduced);
}
