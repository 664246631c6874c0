import { definePolicy } from '../../core/api/index.ts';
import { depthFirstWalk } from './dask.ts';
import { type GraphIndex, indexGraph } from './graph-index.ts';

/**
 * First in, first out: tasks in the order of submission, each right after what it needs, if that was
 * submitted later. The simplest ordering there is. O(tasks + links).
 */
export const fifo = definePolicy('ordering', {
  name: 'fifo',
  apiVersion: 1,
  create: () => ({ order: (tasks, _keys, links) => submissionOrder(indexGraph(tasks, links)) }),
});

/** A walk from the first task, from the second, and so on: what it starts from has its place already. */
export function submissionOrder(graph: GraphIndex): Int32Array {
  return depthFirstWalk(graph.dependencies, graph.taskCount, []);
}
