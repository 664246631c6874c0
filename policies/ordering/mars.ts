import { definePolicy, type GraphTask } from '../../core/api/index.ts';
import {
  eachInRow,
  eachLink,
  type GraphIndex,
  indexGraph,
  topologicalOrder,
} from './graph-index.ts';
import { NumberHeap } from './number-heap.ts';

/**
 * Mars' rules for tasks that are ready: the deeper one first, then the one that deeper tasks need, then
 * the one with the smaller output, then the one that became ready last. The size of an output is the
 * annotation `outputBytes` of its task, 0 without one. O(tasks log tasks + links).
 */
export const mars = definePolicy('ordering', {
  name: 'mars',
  apiVersion: 1,
  create: () => ({ order: (tasks, _keys, links) => marsOrder(indexGraph(tasks, links), tasks) }),
});

/** @throws YardmasterError `ERR_GRAPH_CYCLE` */
export function marsOrder(graph: GraphIndex, tasks: readonly GraphTask[]): Int32Array {
  const { taskCount, dependents } = graph;
  const missing = new Int32Array(taskCount);
  eachLink(graph, (task) => {
    missing[task] = (missing[task] as number) + 1;
  });
  const ready = new ReadyTasks(classesOf(graph, tasks));
  for (let task = taskCount - 1; task >= 0; task--) if (missing[task] === 0) ready.push(task);
  const ranks = new Int32Array(taskCount);
  for (let rank = 0; rank < taskCount; rank++) {
    const task = ready.pop();
    ranks[task] = rank;
    const start = dependents.offsets[task] as number;
    // Backwards, so that of what becomes ready at once the first submitted ends on top.
    for (let n = (dependents.offsets[task + 1] as number) - 1; n >= start; n--) {
      const dependent = dependents.targets[n] as number;
      const left = (missing[dependent] as number) - 1;
      missing[dependent] = left;
      if (left === 0) ready.push(dependent);
    }
  }
  return ranks;
}

/** Tasks that the first three rules treat alike have the same number, better ones a smaller one. */
function classesOf(graph: GraphIndex, tasks: readonly GraphTask[]): Int32Array {
  const { taskCount } = graph;
  const depths = depthsOf(graph);
  const deepest = deepestDependents(graph, depths);
  const sizes = Float64Array.from(tasks, ({ annotations }) => {
    const size = annotations?.['outputBytes'];
    return typeof size === 'number' && size >= 0 ? size : 0;
  });
  const compare = (a: number, b: number): number =>
    (depths[b] as number) - (depths[a] as number) ||
    (deepest[b] as number) - (deepest[a] as number) ||
    (sizes[a] as number) - (sizes[b] as number);
  const sorted = Int32Array.from({ length: taskCount }, (_, task) => task).sort(compare);
  const classes = new Int32Array(taskCount);
  let current = 0;
  for (let n = 1; n < taskCount; n++) {
    const task = sorted[n] as number;
    if (compare(sorted[n - 1] as number, task) !== 0) current++;
    classes[task] = current;
  }
  return classes;
}

/** Longest way from a task without dependencies, whose depth is 0. */
function depthsOf(graph: GraphIndex): Int32Array {
  const depths = new Int32Array(graph.nodeCount);
  for (const node of topologicalOrder(graph)) {
    if (node >= graph.taskCount) continue;
    eachInRow(graph.dependents, node, (dependent) => {
      depths[dependent] = Math.max(depths[dependent] as number, (depths[node] as number) + 1);
    });
  }
  return depths;
}

function deepestDependents(graph: GraphIndex, depths: Int32Array): Int32Array {
  const deepest = new Int32Array(graph.taskCount);
  eachLink(graph, (task, dependency) => {
    deepest[dependency] = Math.max(deepest[dependency] as number, depths[task] as number);
  });
  return deepest;
}

/** A stack of tasks for each class; the best class that has any comes first. */
class ReadyTasks {
  /** Top of each stack, and what is below each task; -1: nothing. */
  private readonly tops: Int32Array;
  private readonly below: Int32Array;
  /** Classes whose stacks are not empty. */
  private readonly open = new NumberHeap();

  constructor(private readonly classes: Int32Array) {
    this.tops = new Int32Array(classes.length).fill(-1);
    this.below = new Int32Array(classes.length);
  }

  push(task: number): void {
    const own = this.classes[task] as number;
    const top = this.tops[own] as number;
    if (top < 0) this.open.push(own);
    this.below[task] = top;
    this.tops[own] = task;
  }

  /** There must be one. */
  pop(): number {
    const best = this.open.first;
    const task = this.tops[best] as number;
    const next = this.below[task] as number;
    this.tops[best] = next;
    if (next < 0) this.open.pop();
    return task;
  }
}
