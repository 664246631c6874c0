import { depthFirstWalk, withSortedDependencies } from './dask.ts';
import { type GraphIndex, rowLength, topologicalOrder } from './graph-index.ts';

/**
 * Depth first; at each task the dependency comes first whose computation has to keep the most
 * results, because those are released before the others begin. That is the best order for trees
 * (Sethi and Ullman). Begins with the last key, in contrast to plain depth-first, because some
 * graphs need fewer results in that direction. O(links log links).
 */
export function needsFirst(graph: GraphIndex, starts: readonly number[]): Int32Array {
  const needs = resultsNeeded(graph);
  const sorted = withSortedDependencies(
    graph,
    (a, b) => (needs[b] as number) - (needs[a] as number) || b - a,
  );
  return depthFirstWalk(sorted.dependencies, graph.taskCount, starts.toReversed());
}

/** The number of results that have to be kept to compute each task, if nothing were shared. */
function resultsNeeded(graph: GraphIndex): Int32Array {
  const { offsets, targets } = graph.dependencies;
  const needs = new Int32Array(graph.nodeCount);
  for (const node of topologicalOrder(graph)) {
    const count = rowLength(graph.dependencies, node);
    const start = offsets[node] as number;
    if (count <= 1) {
      needs[node] = count === 0 ? 1 : (needs[targets[start] as number] as number);
      continue;
    }
    const row = new Int32Array(count);
    for (let n = 0; n < count; n++) row[n] = needs[targets[start + n] as number] as number;
    row.sort();
    // The one that needs the most comes first, while nothing else is kept.
    let most = 1;
    for (let n = 0; n < count; n++) most = Math.max(most, (row[n] as number) + count - 1 - n);
    needs[node] = most;
  }
  return needs;
}
