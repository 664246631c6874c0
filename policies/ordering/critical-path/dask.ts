import { definePolicy, type GraphLinks, type GraphTask } from '../../../core/api/index.ts';
import type { Steps } from '../../../core/util/steps.ts';
import { criticalPathInSteps } from './critical-path.ts';
import { indexGraph } from './graph-index.ts';
import { withoutData } from './without-data.ts';

/**
 * The order that Dask gives graphs since 2023.12. It keeps few results alive when tasks run one after
 * the other. Ties go by key, so that the order does not depend on the order of submission.
 */
export const daskOrder = definePolicy('ordering', {
  name: 'dask',
  create: () => ({ order }),
});

function* order(
  tasks: readonly GraphTask[],
  _keys: readonly string[],
  links?: GraphLinks,
): Steps<Int32Array> {
  const graph = indexGraph(tasks, links);
  yield;
  const reduced = withoutData(graph, tasks);
  yield;
  return yield* criticalPathInSteps(reduced);
}
