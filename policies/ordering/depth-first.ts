import { definePolicy, type GraphLinks, type GraphTask } from '../../core/api/index.ts';
import type { Steps } from '../../core/util/steps.ts';
import { depthFirstInSteps, depthFirstWalk, startsOf, withSortedDependencies } from './dask.ts';
import { type GraphIndex, indexGraph, resolveLinks, topologicalOrder } from './graph-index.ts';

/** From this number of tasks on, the order is found with pauses; below it takes less than a millisecond. */
const LARGE = 5000;

/**
 * Depth first from the requested keys, in the order in which they were given: what belongs together is
 * computed together, and a reduction is finished before the next one begins. The dependencies of a task
 * come as they were given; or with `most-needed` first the one that the most tasks depend on, directly
 * or not, so that nothing has to wait for the base of a long chain. O(tasks + dependencies).
 */
export const depthFirst = definePolicy('ordering', {
  name: 'depth-first',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      children: {
        description:
          'Which of the dependencies of a task comes first: as-given, or most-needed (by what depends on it, directly or not).',
        enum: ['as-given', 'most-needed'],
        default: 'as-given',
      },
    },
  },
  create: ({ children }) => ({ order: children === 'most-needed' ? mostNeededFirst : asGiven }),
});

function asGiven(
  tasks: readonly GraphTask[],
  keys: readonly string[],
  links: GraphLinks = resolveLinks(tasks),
): Int32Array | Steps<Int32Array> {
  return tasks.length < LARGE
    ? depthFirstWalk(links, tasks.length, startsOf(links, keys))
    : depthFirstInSteps(links, tasks.length, keys, (key) => links.positionOf(key));
}

function mostNeededFirst(
  tasks: readonly GraphTask[],
  keys: readonly string[],
  links?: GraphLinks,
): Int32Array {
  const graph = indexGraph(tasks, links);
  const needs = waysToLeaves(graph);
  const sorted = withSortedDependencies(
    graph,
    (a, b) => Math.sign((needs[b] as number) - (needs[a] as number)) || a - b,
  );
  return depthFirstWalk(sorted.dependencies, tasks.length, startsOf(graph, keys));
}

/** For each task 1 plus those of its dependents; beyond what a double can hold all are equal. */
function waysToLeaves(graph: GraphIndex): Float64Array {
  const { offsets, targets } = graph.dependencies;
  const ways = new Float64Array(graph.nodeCount).fill(1);
  for (const node of topologicalOrder(graph).reverse()) {
    const own = Math.min(ways[node] as number, Number.MAX_VALUE);
    ways[node] = own;
    const end = offsets[node + 1] as number;
    for (let n = offsets[node] as number; n < end; n++) {
      const dependency = targets[n] as number;
      ways[dependency] = (ways[dependency] as number) + own;
    }
  }
  return ways;
}
