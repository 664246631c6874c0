import { type GraphTask, YardmasterError } from '../../core/api/index.ts';

/** How large a graph is. */
export interface GraphCounts {
  readonly tasks: number;
  /** Pairs of a task and another one that it needs. */
  readonly dependencies: number;
  /** Dependencies one after the other, at most. 0 when no task needs another. */
  readonly longestPath: number;
}

/** What the literature says about a graph. Means are over all of its tasks. */
export interface PublishedFigures extends GraphCounts {
  readonly meanResultKib: number;
  readonly meanDurationMs: number;
}

/**
 * A graph to measure schedulers with, and the cost of its tasks. Each call returns an equal graph
 * in new objects.
 */
export interface Workload {
  /** As in the literature where it has a name there. */
  readonly name: string;
  /** Every task comes after those that it needs. */
  readonly tasks: GraphTask[];
  /** What a client would ask for. */
  readonly keys: string[];
  readonly counts: GraphCounts;
  /** Seconds that each task computes, in the order of `tasks`. */
  readonly durationsS: Float64Array;
  /** Bytes of each result, in the order of `tasks`. */
  readonly nbytes: Float64Array;
  /** Absent when the graph of this size is not from the literature. */
  readonly published?: PublishedFigures;
}

/** What tasks of one kind cost. */
export interface TaskCost {
  readonly durationS: number;
  readonly nbytes: number;
}

/** For graphs of which nothing is published. */
export const NOMINAL: TaskCost = { durationS: 0.01, nbytes: 1000 };

/** A call of fifty bytes, with a digit; no scheduler looks inside. */
const RUN_SPEC = 'x'.repeat(49);

/** Puts a graph together, task by task. Tasks are known by their numbers, from 0 on. */
export class WorkloadBuilder {
  private readonly tasks: GraphTask[] = [];
  private readonly depths: number[] = [];
  private readonly costs: TaskCost[] = [];
  private dependencies = 0;
  private longestPath = 0;

  /** `needs` are numbers of tasks that were added before. Returns the number of this one. */
  add(
    key: string,
    needs: readonly number[],
    cost: TaskCost,
    kind: Pick<GraphTask, 'prefix' | 'group'> = {},
  ): number {
    const number = this.tasks.length;
    const dependencies = needs.map((need) => this.keyOf(need));
    this.tasks.push({ key, dependencies, runSpec: `${RUN_SPEC}${number % 10}`, ...kind });
    let depth = 0;
    for (const need of needs) depth = Math.max(depth, (this.depths[need] ?? 0) + 1);
    this.depths.push(depth);
    this.costs.push(cost);
    this.dependencies += needs.length;
    this.longestPath = Math.max(this.longestPath, depth);
    return number;
  }

  /** The graph, when all of its tasks were added; `wanted` are numbers of tasks. */
  build(name: string, wanted: readonly number[]): Workload {
    return {
      name,
      tasks: this.tasks,
      keys: wanted.map((number) => this.keyOf(number)),
      counts: {
        tasks: this.tasks.length,
        dependencies: this.dependencies,
        longestPath: this.longestPath,
      },
      durationsS: Float64Array.from(this.costs, ({ durationS }) => durationS),
      nbytes: Float64Array.from(this.costs, ({ nbytes }) => nbytes),
    };
  }

  private keyOf(number: number): string {
    const task = this.tasks[number];
    if (task === undefined) throw new RangeError(`task ${number} was not added yet`);
    return task.key;
  }
}

/**
 * @throws YardmasterError `ERR_GRAPH_INVALID` when it is not a whole number, 1 or more
 */
export function checkSize(what: string, size: number): number {
  if (Number.isSafeInteger(size) && size >= 1) return size;
  const message = `${what} is ${size}; give a whole number, 1 or more`;
  throw new YardmasterError('ERR_GRAPH_INVALID', message, { what, size });
}

/** `[0, 1, … count - 1]`. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
