import type { GraphTask } from '../../core/messages/stimulus.ts';

/** A task of a terse graph: its dependencies, or these and whatever else is to be said about it. */
export type TerseTask =
  readonly string[] | (Partial<GraphTask> & { readonly deps?: readonly string[] });

/** A graph in terse notation: `{ a: [], b: ['a'], c: { deps: ['b'], retries: 1 } }`. */
export type TerseGraph = Readonly<Record<string, TerseTask>>;

export function graphTasks(graph: TerseGraph): GraphTask[] {
  return Object.entries(graph).map(([key, task]) => {
    if (isBare(task)) return { key, dependencies: task, runSpec: `compute ${key}` };
    const { deps = [], ...rest } = task;
    return { key, dependencies: deps, runSpec: `compute ${key}`, ...rest };
  });
}

/** Keys of the graph that no other task of it depends on. */
export function sinks(tasks: readonly GraphTask[]): string[] {
  const needed = new Set(tasks.flatMap((task) => task.dependencies));
  return tasks.map((task) => task.key).filter((key) => !needed.has(key));
}

/** `numbered('r', 3)` is a graph of three independent tasks r-0, r-1, r-2. */
export function numbered(prefix: string, count: number, task: TerseTask = []): TerseGraph {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`${prefix}-${index}`, task]),
  );
}

function isBare(task: TerseTask): task is readonly string[] {
  return Array.isArray(task);
}
