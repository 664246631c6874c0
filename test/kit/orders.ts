import fc from 'fast-check';
import { withoutPauses } from '../../core/util/steps.ts';
import type { GraphTask, Ordering } from '../../core/api/index.ts';
import { graphTasks, sinks, type TerseGraph } from './graph.ts';

/** The ranks that a policy gives, without pauses. */
export function ranksOf(
  ordering: Ordering,
  ...graph: Parameters<Ordering['order']>
): ArrayLike<number> {
  return withoutPauses(ordering.order(...graph));
}

/** Keys in the order of their ranks. Without keys, what nothing else needs is asked for. */
export function sequenceOf(
  ordering: Ordering,
  graph: TerseGraph | readonly GraphTask[],
  keys?: readonly string[],
): string {
  const tasks = isTasks(graph) ? graph : graphTasks(graph);
  const ranks = ranksOf(ordering, tasks, keys ?? sinks(tasks));
  return tasks
    .map(({ key }, index) => ({ key, rank: ranks[index]! }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ key }) => key)
    .join(' ');
}

/** Graphs without cycles, in any order of submission; some need keys that are not in them. */
export function randomGraphs(sizeMax = 40): fc.Arbitrary<GraphTask[]> {
  const task = fc.record({
    reach: fc.array(fc.nat(sizeMax), { maxLength: 5 }),
    hasRunSpec: fc.integer({ min: 0, max: 9 }),
    place: fc.nat(1000),
    outside: fc.option(fc.nat(3), { freq: 12 }),
  });
  return fc.array(task, { maxLength: sizeMax }).map((rows) =>
    rows
      .map(({ reach, hasRunSpec, place, outside }, index) => {
        const dependencies = reach.filter((n) => n < index).map((n) => `k-${n}`);
        if (outside !== null) dependencies.push(`outside-${outside}`);
        const runSpec = hasRunSpec > 0 ? 'run' : undefined;
        return { place, task: { key: `k-${index}`, dependencies, runSpec } };
      })
      .sort((a, b) => a.place - b.place)
      .map(({ task: made }) => made),
  );
}

/** Why ranks are not 0 to n - 1 with dependencies before their dependents; undefined when they are. */
export function whyInvalid(
  tasks: readonly GraphTask[],
  ranks: ArrayLike<number>,
): string | undefined {
  const sorted = Array.from(ranks).sort((a, b) => a - b);
  if (sorted.length !== tasks.length) return `${sorted.length} ranks`;
  if (sorted.some((rank, index) => rank !== index)) return `not a permutation: ${sorted.join()}`;
  const rankOf = new Map(tasks.map(({ key }, index) => [key, ranks[index]!]));
  for (const { key, dependencies } of tasks) {
    const late = dependencies.find((other) => (rankOf.get(other) ?? -1) >= rankOf.get(key)!);
    if (late !== undefined) return `${key} comes before ${late}`;
  }
  return undefined;
}

function isTasks(graph: TerseGraph | readonly GraphTask[]): graph is readonly GraphTask[] {
  return Array.isArray(graph);
}
