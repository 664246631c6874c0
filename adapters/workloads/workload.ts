import { type GraphTask, YardmasterError } from '../../core/api/index.ts';

/** The size of a graph. */
export interface GraphCounts {
  readonly tasks: number;
  /** Pairs of a task and another one that it needs. */
  readonly dependencies: number;
  /** Dependencies one after the other, at most. 0 when no task needs another. */
  readonly longestPath: number;
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
  /** The keys that a client would ask for. */
  readonly keys: string[];
  readonly counts: GraphCounts;
  /** Seconds that each task computes, in the order of `tasks`. */
  readonly durationsS: Float64Array;
  /** Bytes of each result, in the order of `tasks`. */
  readonly nbytes: Float64Array;
}

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

/** One task of a graph with what it costs. */
export interface CostedTask {
  readonly key: string;
  /** Keys of other tasks. Default none. */
  readonly needs?: readonly string[];
  /** Seconds. Default 0. */
  readonly durationS?: number;
  /** Bytes of its result. Default 0. */
  readonly nbytes?: number;
  /** The kind of task. Default: derived from the key. */
  readonly prefix?: string;
}

/**
 * Makes a workload of any graph. The tasks may come in any order. `wanted` are the keys whose results a client asks
 * for, by default and without any those that no task needs; `source` is what messages name, a file for example.
 * @throws YardmasterError `ERR_GRAPH_INVALID`, `ERR_GRAPH_CYCLE` with source and task
 */
export function graphWorkload(
  name: string,
  tasks: readonly CostedTask[],
  {
    wanted = [],
    source = name,
  }: { readonly wanted?: readonly string[]; readonly source?: string } = {},
): Workload {
  const byKey = new Map<string, CostedTask>();
  for (const task of tasks) {
    if (byKey.has(task.key)) throw invalid(source, task.key, 'is there twice; rename one of both');
    checkCost(source, task, 'durationS');
    checkCost(source, task, 'nbytes');
    byKey.set(task.key, task);
  }
  if (byKey.size === 0) throw invalid(source, undefined, 'has no tasks');
  const builder = new WorkloadBuilder();
  const numbers = new Map<string, number>();
  const needed = new Set<string>();
  for (const key of inOrder(source, byKey)) {
    const { needs = [], durationS = 0, nbytes = 0, prefix } = byKey.get(key) as CostedTask;
    const unique = [...new Set(needs)];
    for (const need of unique) needed.add(need);
    const kind = prefix === undefined ? {} : { prefix, group: prefix };
    const before = unique.map((need) => numbers.get(need) as number);
    numbers.set(key, builder.add(key, before, { durationS, nbytes }, kind));
  }
  const keys = wanted.length > 0 ? wanted : [...byKey.keys()].filter((key) => !needed.has(key));
  const numbersWanted = keys.map((key) => {
    const number = numbers.get(key);
    if (number === undefined) throw invalid(source, key, 'is wanted, and is no task of the graph');
    return number;
  });
  return builder.build(name, numbersWanted);
}

/** A task on the way down to what it needs, and how many of its needs were looked at. */
interface Step {
  readonly key: string;
  readonly needs: readonly string[];
  at: number;
}

/** Keys, each after those that it needs; otherwise in the order in which they came. O(tasks + needs). */
function* inOrder(source: string, byKey: ReadonlyMap<string, CostedTask>): Generator<string> {
  const state = new Map<string, 'open' | 'done'>();
  const path: Step[] = [];
  const enter = (key: string): void => {
    state.set(key, 'open');
    path.push({ key, needs: byKey.get(key)?.needs ?? [], at: 0 });
  };
  for (const start of byKey.keys()) {
    if (!state.has(start)) enter(start);
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const need = step.needs[step.at++];
      if (need === undefined) {
        state.set(step.key, 'done');
        path.pop();
        yield step.key;
      } else if (!byKey.has(need)) {
        throw invalid(source, step.key, `needs "${need}", and there is no such task; add it`);
      } else if (state.get(need) === 'open') {
        throw cycleError(source, [...path.map(({ key }) => key), need]);
      } else if (!state.has(need)) enter(need);
    }
  }
}

/** @param path - keys, each of which needs the next one; the last one is there before as well */
function cycleError(source: string, path: readonly string[]): YardmasterError {
  const cycle = path.slice(path.indexOf(path.at(-1) as string));
  return new YardmasterError(
    'ERR_GRAPH_CYCLE',
    `${source}: the graph has a cycle: ${cycle.join(' -> ')}. Each of these depends on the next; break one link.`,
    { source, cycle },
  );
}

/** Thirty years, and what numbers hold exactly: beyond, a clock does not advance by what a task takes. */
export const COST_MAX = { durationS: 1e9, nbytes: Number.MAX_SAFE_INTEGER } as const;

function checkCost(source: string, task: CostedTask, field: 'durationS' | 'nbytes'): void {
  const value = task[field] ?? 0;
  if (Number.isFinite(value) && value >= 0 && value <= COST_MAX[field]) return;
  throw invalid(
    source,
    task.key,
    `has the ${field} ${value}; it must be a number from 0 to ${COST_MAX[field]}`,
  );
}

function invalid(source: string, key: string | undefined, what: string): YardmasterError {
  const subject = key === undefined ? 'the graph' : `the task "${key}"`;
  return new YardmasterError('ERR_GRAPH_INVALID', `${source}: ${subject} ${what}`, { source, key });
}
