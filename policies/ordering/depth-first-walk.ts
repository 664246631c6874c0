import type { GraphIndex, Rows } from './graph-index.ts';

/**
 * Numbers tasks as a walk from the given starts leaves them: dependencies first, in the order of their
 * rows. What no start needs comes last. O(tasks + links), without recursion.
 * @param rows - dependencies; numbers that are no tasks are passed over
 */
export function depthFirstWalk(
  { offsets, targets }: Rows,
  taskCount: number,
  starts: Iterable<number>,
): Int32Array {
  const ranks = new Int32Array(taskCount).fill(-1);
  const entered = new Uint8Array(taskCount);
  const next = offsets.slice(0, taskCount);
  const path = new Int32Array(taskCount);
  let rank = 0;
  const walk = (start: number): void => {
    if (entered[start] === 1) return;
    let length = 0;
    entered[start] = 1;
    path[length++] = start;
    while (length > 0) {
      const task = path[length - 1] as number;
      const position = next[task] as number;
      if (position === offsets[task + 1]) {
        ranks[task] = rank++;
        length--;
        continue;
      }
      next[task] = position + 1;
      const dependency = targets[position] as number;
      // Nothing is entered below 0 or from the number of tasks on.
      if (entered[dependency] !== 0) continue;
      entered[dependency] = 1;
      path[length++] = dependency;
    }
  };
  for (const start of starts) walk(start);
  for (let task = 0; task < taskCount; task++) walk(task);
  return ranks;
}

/** The tasks of the requested keys; keys that are not in the graph are left out. */
export function startsOf(graph: Pick<GraphIndex, 'positionOf'>, keys: readonly string[]): number[] {
  const starts: number[] = [];
  for (const key of keys) {
    const task = graph.positionOf(key);
    if (task >= 0) starts.push(task);
  }
  return starts;
}

/** The same graph with the dependencies of each task in another order. */
export function withSortedDependencies(
  graph: GraphIndex,
  compare: (a: number, b: number) => number,
): GraphIndex {
  const { offsets } = graph.dependencies;
  const targets = graph.dependencies.targets.slice();
  for (let task = 0; task < graph.taskCount; task++) {
    const start = offsets[task] as number;
    const end = offsets[task + 1] as number;
    if (end - start === 2) {
      const [first, second] = [targets[start] as number, targets[start + 1] as number];
      if (compare(first, second) > 0) targets.set([second, first], start);
    } else if (end - start > 2) targets.subarray(start, end).sort(compare);
  }
  return { ...graph, dependencies: { offsets, targets } };
}
