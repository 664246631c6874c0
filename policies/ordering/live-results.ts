import type { GraphIndex } from './graph-index.ts';

/** The results that one worker has to keep when it computes a graph in some order. */
interface LiveResults {
  /** The most results at any one time. */
  readonly peak: number;
  /** Steps that each result is kept, all together. */
  readonly sumOfAges: number;
}

/**
 * Walks through an order and counts the results that are kept: one is from the step after it was
 * computed until the last task that needs it has been computed. Results without dependents are not
 * counted, as they have to be kept in any order. O(nodes + links).
 * @param ranks - of the tasks of the graph: 0 to their number - 1, dependencies before their
 * dependents
 */
export function liveResults(graph: GraphIndex, ranks: ArrayLike<number>): LiveResults {
  const { taskCount, dependencies, dependents } = graph;
  const sequence = new Int32Array(taskCount);
  const users = new Int32Array(taskCount);
  for (let task = 0; task < taskCount; task++) {
    sequence[ranks[task] as number] = task;
    users[task] = (dependents.offsets[task + 1] as number) - (dependents.offsets[task] as number);
  }
  let live = 0;
  let peak = 0;
  let sumOfAges = 0;
  for (let step = 0; step < taskCount; step++) {
    const task = sequence[step] as number;
    const isKept = users[task] !== 0;
    if (live > peak) peak = live;
    const end = dependencies.offsets[task + 1] as number;
    for (let n = dependencies.offsets[task] as number; n < end; n++) {
      const dependency = dependencies.targets[n] as number;
      if (dependency >= taskCount) continue;
      const left = (users[dependency] as number) - 1;
      users[dependency] = left;
      if (left > 0) continue;
      live--;
      sumOfAges += step - (ranks[dependency] as number);
    }
    if (isKept) live++;
  }
  return { peak, sumOfAges };
}
