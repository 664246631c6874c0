/** The static order of a graph. Source: behaviour.md section 8. */
import type { GraphLinks } from '../api/policies.ts';
import type { GraphTask, UpdateGraph } from '../messages/stimulus.ts';
import type { TaskState } from '../state/task.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import type { GraphPlan } from './graph-walk.ts';
import type { KernelScope } from './scope.ts';

/**
 * Ranks by the index of each task in its graph: as the client gives them, else as the ordering policy
 * says. The policy sees only tasks that are needed; what is known already has no dependencies for it,
 * because the definition that comes with this graph does not count.
 */
export function ranksOf(
  scope: KernelScope,
  stimulus: UpdateGraph,
  plan: GraphPlan,
): ArrayLike<number> {
  const { tasks } = stimulus;
  if (tasks.every((task) => task.rank !== undefined)) {
    return tasks.map((task) => task.rank as number);
  }
  const { keys } = plan;
  if (isAllNew(plan, tasks.length)) {
    return rank(scope, { tasks, keys, links: linksOf(scope, tasks, plan, undefined) });
  }
  const indices = plan.order.toSorted();
  const needed = Array.from(indices, (index) => {
    const task = tasks[index] as GraphTask;
    return plan.isNew(index) ? task : { ...task, dependencies: [] };
  });
  const links = linksOf(scope, needed, plan, indices);
  const ranks = rank(scope, { tasks: needed, keys, links });
  const all = new Float64Array(tasks.length);
  indices.forEach((index, position) => (all[index] = ranks[position] as number));
  return all;
}

function isAllNew(plan: GraphPlan, count: number): boolean {
  if (plan.order.length < count) return false;
  for (let index = 0; index < count; index++) if (!plan.isNew(index)) return false;
  return true;
}

function rank(scope: KernelScope, subject: OrderSubject): ArrayLike<number> {
  const ranks = askOrder(scope, subject);
  for (const watcher of scope.watchers) watcher.ranked?.(scope, subject, ranks);
  return ranks;
}

/** Asks the ordering policy. */
export function askOrder(scope: KernelScope, subject: OrderSubject): ArrayLike<number> {
  return askPolicy(scope, ORDER, subject);
}

/** What an ordering policy is asked about. */
export interface OrderSubject {
  readonly tasks: readonly GraphTask[];
  /** Requested. */
  readonly keys: readonly string[];
  readonly links: GraphLinks;
}

const ORDER: Question<'ordering', OrderSubject, ArrayLike<number>> = {
  slot: 'ordering',
  ask: (policy, _scope, { tasks, keys, links }) => policy.order(tasks, keys, links),
  refuse: (ranks, _scope, subject) =>
    refuseNumbers(ranks, subject.tasks.length) ??
    refuseTwins(ranks, subject.tasks) ??
    refuseOrder(ranks, subject),
};

/** The plan has looked all keys up: nobody has to do so again. O(tasks + dependencies). */
function linksOf(
  { cluster }: KernelScope,
  tasks: readonly GraphTask[],
  plan: GraphPlan,
  indices: Int32Array | undefined,
): GraphLinks {
  const { states } = plan;
  const positions = indices === undefined ? undefined : positionsOf(indices, states.length);
  const positionOf = (task: TaskState | undefined): number => {
    if (task === undefined || states[task.graphIndex] !== task) return -1;
    return positions === undefined ? task.graphIndex : (positions[task.graphIndex] as number);
  };
  const offsets = new Int32Array(tasks.length + 1);
  for (let position = 0; position < tasks.length; position++) {
    const { length } = (tasks[position] as GraphTask).dependencies;
    offsets[position + 1] = (offsets[position] as number) + length;
  }
  const targets = new Int32Array(offsets[tasks.length] as number);
  for (let position = 0; position < tasks.length; position++) {
    const index = indices === undefined ? position : (indices[position] as number);
    if (!plan.isNew(index)) continue;
    const start = offsets[position] as number;
    const dependencies = plan.dependenciesOf(index);
    for (let n = 0; n < dependencies.length; n++) targets[start + n] = positionOf(dependencies[n]);
  }
  return { offsets, targets, positionOf: (key) => positionOf(cluster.tasks.get(key)) };
}

function positionsOf(indices: Int32Array, count: number): Int32Array {
  const positions = new Int32Array(count).fill(-1);
  indices.forEach((index, position) => (positions[index] = position));
  return positions;
}

function refuseNumbers(ranks: ArrayLike<number>, count: number): string | undefined {
  if (ranks.length !== count) return `ranked ${ranks.length} of ${count} tasks`;
  for (let index = 0; index < count; index++) {
    const rank = ranks[index] as number;
    if (!Number.isSafeInteger(rank) || rank < 0) return `gave the rank ${String(rank)}`;
  }
  return undefined;
}

/** O(tasks), without hashing when ranks are about as many as tasks. */
function refuseTwins(ranks: ArrayLike<number>, tasks: readonly GraphTask[]): string | undefined {
  const seen = new Uint8Array(2 * tasks.length);
  const beyond = new Set<number>();
  for (let index = 0; index < tasks.length; index++) {
    const rank = ranks[index] as number;
    if (rank < seen.length ? seen[rank] === 1 : beyond.has(rank)) {
      return `gave the rank ${rank} twice, the second time to ${(tasks[index] as GraphTask).key}`;
    }
    if (rank < seen.length) seen[rank] = 1;
    else beyond.add(rank);
  }
  return undefined;
}

/** Every task must come after what it needs. O(tasks + dependencies), without hashing. */
function refuseOrder(
  ranks: ArrayLike<number>,
  { tasks, links: { offsets, targets } }: OrderSubject,
): string | undefined {
  for (let position = 0; position < tasks.length; position++) {
    const start = offsets[position] as number;
    const end = offsets[position + 1] as number;
    for (let n = start; n < end; n++) {
      const dependency = targets[n] as number;
      if (dependency < 0 || (ranks[dependency] as number) < (ranks[position] as number)) continue;
      const { key, dependencies } = tasks[position] as GraphTask;
      return `ranked ${key} before ${dependencies[n - start] as string}, which it needs`;
    }
  }
  return undefined;
}
