import type { Steps } from '../../../core/util/steps.ts';
import type { GraphIndex, Rows } from './graph-index.ts';

/** Nodes or keys that are looked at between two pauses. */
const STEP = 5000;

/**
 * Numbers tasks as a walk from the given starts leaves them: dependencies first, in the order of their
 * rows. What no start needs comes last. O(tasks + links), without recursion.
 * @param rows - dependencies; numbers that are no tasks are passed over
 */
export function depthFirstWalk(
  rows: Rows,
  taskCount: number,
  starts: Iterable<number>,
): Int32Array {
  const walk = new DepthFirstWalk(rows, taskCount);
  for (const start of starts) walk.from(start, Infinity);
  for (let task = 0; task < taskCount; task++) walk.from(task, Infinity);
  return walk.ranks;
}

/** The same with pauses, from the tasks of these keys. */
export function* depthFirstInSteps(
  rows: Rows,
  taskCount: number,
  keys: readonly string[],
  positionOf: (key: string) => number,
): Steps<Int32Array> {
  const walk = new DepthFirstWalk(rows, taskCount);
  let stepsLeft = STEP;
  for (let n = 0; n < keys.length + taskCount; n++) {
    const start = n < keys.length ? positionOf(keys[n] as string) : n - keys.length;
    if (start < 0) continue;
    stepsLeft = walk.from(start, stepsLeft - 1);
    while (stepsLeft <= 0) {
      yield;
      stepsLeft = walk.goOn(STEP);
    }
  }
  return walk.ranks;
}

class DepthFirstWalk {
  readonly ranks: Int32Array;
  private readonly entered: Uint8Array;
  private readonly next: Int32Array;
  private readonly path: Int32Array;
  private length = 0;
  private rank = 0;

  constructor(
    private readonly rows: Rows,
    taskCount: number,
  ) {
    this.ranks = new Int32Array(taskCount).fill(-1);
    this.entered = new Uint8Array(taskCount);
    this.next = rows.offsets.slice(0, taskCount);
    this.path = new Int32Array(taskCount);
  }

  /** Begins at a task, when the walk from the one before is over. Returns the steps that are left. */
  from(start: number, stepsMax: number): number {
    if (this.entered[start] === 1) return stepsMax;
    this.entered[start] = 1;
    this.path[this.length++] = start;
    return this.goOn(stepsMax);
  }

  /** Returns the steps that are left: none if the walk is not over. */
  goOn(stepsMax: number): number {
    const { entered, next, path, ranks } = this;
    const { offsets, targets } = this.rows;
    let { length } = this;
    let stepsLeft = stepsMax;
    for (; length > 0 && stepsLeft > 0; stepsLeft--) {
      const task = path[length - 1] as number;
      const position = next[task] as number;
      if (position === offsets[task + 1]) {
        ranks[task] = this.rank++;
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
    this.length = length;
    return stepsLeft;
  }
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
