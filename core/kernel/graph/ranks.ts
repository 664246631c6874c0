/** The static order of a graph. Source: Dask's `update_graph`. */
import type { GraphLinks } from '../../api/policies.ts';
import type { GraphTask, UpdateGraph } from '../../messages/stimulus.ts';
import { askPolicy, nameAnswer, type Question } from '../placement/ask-policy.ts';
import type { OrderSubject } from '../ports.ts';
import type { GraphPlan } from './graph-walk.ts';
import type { KernelScope } from '../scope.ts';
import { isSteps, type Steps, withoutPauses } from '../../util/steps.ts';

/**
 * Ranks by the index of each task in its graph: as the client gives them, else as the ordering policy
 * says. The policy sees only tasks that are needed; what is known already has no dependencies for it,
 * because the definition that comes with this graph does not count.
 *
 * @param isSliced - the policy may work in steps, with other stimuli in between
 */
export function* findRanks(
  scope: KernelScope,
  stimulus: UpdateGraph,
  plan: GraphPlan,
  isSliced: boolean,
): Steps<ArrayLike<number>> {
  const given = givenRanks(stimulus);
  if (given !== undefined) return given;
  const { subject, indices } = orderSubject(scope, stimulus, plan);
  if (isSliced) yield;
  const ranks = isSliced ? yield* askOrderInSteps(scope, subject) : askOrder(scope, subject);
  if (isSliced) yield;
  for (const watcher of scope.watchers) watcher.ranked?.(subject, ranks);
  if (indices === undefined) return ranks;
  const all = new Float64Array(stimulus.tasks.length);
  indices.forEach((index, position) => (all[index] = ranks[position] as number));
  return all;
}

function givenRanks({ tasks }: UpdateGraph): ArrayLike<number> | undefined {
  if (!tasks.every((task) => task.rank !== undefined)) return undefined;
  return tasks.map((task) => task.rank as number);
}

/** What the policy is asked about, and the indices of these tasks in the graph unless they are all. */
interface Asked {
  readonly subject: OrderSubject;
  readonly indices: Int32Array | undefined;
}

function orderSubject(scope: KernelScope, { tasks }: UpdateGraph, plan: GraphPlan): Asked {
  const { keys } = plan;
  if (plan.isAllNew) {
    return { subject: { tasks, keys, links: allLinks(scope, plan) }, indices: undefined };
  }
  const indices = plan.order.toSorted();
  const needed = Array.from(indices, (index) => {
    const task = tasks[index] as GraphTask;
    return plan.isNew(index) ? task : { ...task, dependencies: [] };
  });
  const links = linksAmong(scope, needed, plan, indices);
  return { subject: { tasks: needed, keys, links }, indices };
}

/** Asks the ordering policy. */
export function askOrder(scope: KernelScope, subject: OrderSubject): ArrayLike<number> {
  return askPolicy(scope, ORDER, subject);
}

const ORDER: Question<'ordering', OrderSubject, ArrayLike<number>> = {
  slot: 'ordering',
  ask: (policy, _scope, { tasks, keys, links }) => withoutPauses(policy.order(tasks, keys, links)),
  refuse: (ranks, _scope, subject) =>
    refuseNumbers(ranks, subject.tasks.length) ??
    rejectDuplicateRanks(ranks, subject.tasks) ??
    refuseOrder(ranks, subject),
};

/** Asks the ordering policy, and pauses where it does. */
function* askOrderInSteps(scope: KernelScope, subject: OrderSubject): Steps<ArrayLike<number>> {
  const { policy: asked } = scope.ports.ordering;
  let answer: () => ArrayLike<number>;
  try {
    const order = asked.order(subject.tasks, subject.keys, subject.links);
    const ranks = isSteps(order) ? yield* order : order;
    answer = () => ranks;
  } catch (error) {
    answer = () => {
      throw error;
    };
  }
  const question: typeof ORDER = {
    ...ORDER,
    ask: (policy, ...rest) => (policy === asked ? answer() : ORDER.ask(policy, ...rest)),
  };
  return askPolicy(scope, question, subject);
}

/** The plan has looked up all keys, so policies need not do so again. */
function allLinks({ cluster }: KernelScope, { offsets, targets, states }: GraphPlan): GraphLinks {
  return {
    offsets,
    targets,
    positionOf: (key) => {
      const task = cluster.tasks.get(key);
      return task !== undefined && states[task.graphIndex] === task ? task.graphIndex : -1;
    },
  };
}

/** Links among these tasks of the graph. O(tasks + dependencies). */
function linksAmong(
  { cluster }: KernelScope,
  tasks: readonly GraphTask[],
  plan: GraphPlan,
  indices: Int32Array,
): GraphLinks {
  const { states } = plan;
  const positions = positionsOf(indices, states.length);
  const offsets = new Int32Array(tasks.length + 1);
  for (let position = 0; position < tasks.length; position++) {
    const { length } = (tasks[position] as GraphTask).dependencies;
    offsets[position + 1] = (offsets[position] as number) + length;
  }
  const targets = new Int32Array(offsets[tasks.length] as number);
  for (let position = 0; position < tasks.length; position++) {
    const index = indices[position] as number;
    if (!plan.isNew(index)) continue;
    const from = plan.offsets[index] as number;
    const start = offsets[position] as number;
    const end = offsets[position + 1] as number;
    for (let n = start; n < end; n++) {
      const target = plan.targets[from + n - start] as number;
      targets[n] = target < 0 ? -1 : (positions[target] as number);
    }
  }
  const positionOf = (key: string): number => {
    const task = cluster.tasks.get(key);
    return task !== undefined && states[task.graphIndex] === task
      ? (positions[task.graphIndex] as number)
      : -1;
  };
  return { offsets, targets, positionOf };
}

function positionsOf(indices: Int32Array, count: number): Int32Array {
  const positions = new Int32Array(count).fill(-1);
  indices.forEach((index, position) => (positions[index] = position));
  return positions;
}

function refuseNumbers(ranks: ArrayLike<number>, count: number): string | undefined {
  const isList: boolean =
    typeof (ranks as Partial<typeof ranks> | null | undefined)?.length === 'number';
  if (!isList || typeof ranks === 'string') return `gave ${nameAnswer(ranks)} instead of ranks`;
  if (ranks.length !== count) return `ranked ${ranks.length} of ${count} tasks`;
  for (let index = 0; index < count; index++) {
    const rank = ranks[index] as number;
    if (!Number.isSafeInteger(rank) || rank < 0) return `gave the rank ${String(rank)}`;
  }
  return undefined;
}

/** O(tasks), without hashing when ranks are about as many as tasks. */
function rejectDuplicateRanks(
  ranks: ArrayLike<number>,
  tasks: readonly GraphTask[],
): string | undefined {
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
