import type { GraphLinks, Submission } from '../api/policies.ts';
import type { ActionTiming } from '../state/groups.ts';
import type { GraphTask, UpdateGraph } from '../messages/stimulus.ts';
import { byPriority, type TaskState } from '../state/task.ts';
import { isSteps, type Steps, withoutPauses } from '../util/steps.ts';
import { isPromise } from '../util/values.ts';
import { askPolicy, nameAnswer, type Question } from './ask-policy.ts';
import type { GraphPlan } from './graph-intake.ts';
import type { OrderSubject } from './ports.ts';
import type { KernelScope } from './scope.ts';

// Who comes first. Source: Dask's `update_graph`.

/** The advance in priority of a task that was submitted from inside a task over its parent. */
const SUBMITTED_INSIDE = 0.01;

/**
 * A submission as the fairness policy sees it. Its number: older submissions come first, and those
 * closer together than the timeout share a generation. A task's own submissions precede every ordinary
 * generation.
 */
export function submissionOf(scope: KernelScope, stimulus: UpdateGraph): Submission {
  const { cluster, nowMs } = scope;
  const { client, submittingTask, fifoTimeoutMs = 0 } = stimulus;
  const parent = submittingTask === undefined ? undefined : cluster.tasks.get(submittingTask);
  if (parent === undefined && cluster.lastGenerationMs + fifoTimeoutMs < nowMs) {
    cluster.generation++;
    cluster.lastGenerationMs = nowMs;
  }
  const generation =
    parent === undefined ? cluster.generation : parent.negatedUserPriority - SUBMITTED_INSIDE;
  return { client, tasks: [], generation, parent, nowMs };
}

/** The next submissions are numbered behind all tasks, whichever policy has dated those. O(tasks). */
export function numberBehindAll({ cluster }: KernelScope): void {
  for (const { generation } of cluster.tasks.values()) {
    cluster.generation = Math.max(cluster.generation, Math.ceil(generation));
  }
}

/** The generation that all tasks of a submission begin with. */
export function generationOf(scope: KernelScope, submission: Submission): number {
  const { isPerTask } = scope.ports.fairness.policy;
  const generation =
    isPerTask === true ? submission.generation : (askGenerations(scope, submission) as number);
  for (const watcher of scope.watchers) watcher.submitted?.(submission, generation);
  return generation;
}

/** Asks the fairness policy. */
export function askGenerations(
  scope: KernelScope,
  submission: Submission,
): number | ArrayLike<number> {
  return askPolicy(scope, GENERATIONS, submission);
}

/**
 * Gives each new task its own generation, for a policy that distinguishes the tasks of a
 * submission. O(n log n).
 */
export function setGenerations(
  scope: KernelScope,
  submission: Submission,
  tasks: TaskState[],
): void {
  if (tasks.length === 0) return;
  tasks.sort(byPriority);
  const generations = askGenerations(scope, { ...submission, tasks });
  for (let index = 0; index < tasks.length; index++) {
    const generation = typeof generations === 'number' ? generations : generations[index];
    (tasks[index] as TaskState).generation = generation as number;
  }
}

/** Notifies the fairness policy that a task is no longer open. */
export function reportTaskOver(
  scope: KernelScope,
  task: TaskState,
  timings: readonly ActionTiming[] = [],
): void {
  const runs = timings.filter(({ action }) => action === 'compute');
  const seconds = runs.reduce((sum, { startS, stopS }) => sum + (stopS - startS), 0);
  askPolicy(scope, TASK_OVER, task, runs.length === 0 ? undefined : seconds);
}

const GENERATIONS: Question<'fairness', Submission, number | ArrayLike<number>> = {
  slot: 'fairness',
  ask: (policy, { cluster }, submission) => policy.generations(submission, cluster),
  refuse: (generations, _scope, { tasks }) => refuseGenerations(generations, tasks.length),
};

const TASK_OVER: Question<'fairness', TaskState, void, number | undefined> = {
  slot: 'fairness',
  ask: (policy, { cluster }, task, seconds) => {
    const isServed =
      task.whoHas.size > 0 || (task.state === 'erred' && task.exceptionBlame === task);
    policy.taskOver?.(task, isServed, cluster, seconds);
  },
  refuse: () => undefined,
};

function refuseGenerations(
  generations: number | ArrayLike<number>,
  count: number,
): string | undefined {
  if (typeof generations === 'number') {
    return Number.isFinite(generations)
      ? undefined
      : `gave the generation ${generations} instead of a finite number`;
  }
  if (typeof generations !== 'object' || isPromise(generations)) {
    return `gave ${nameAnswer(generations)} instead of the number of a generation`;
  }
  if (count === 0) return 'gave a list of generations, and does not say that it isPerTask';
  if (generations.length !== count) {
    return `gave ${String(generations.length)} generations to ${count} tasks`;
  }
  for (let index = 0; index < count; index++) {
    const generation: unknown = generations[index];
    if (!Number.isFinite(generation))
      return `gave ${nameAnswer(generation)} as a generation instead of a finite number`;
  }
  return undefined;
}

// The static order of a graph. Source: Dask's `update_graph`.

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

/** The tasks that the policy is asked about, and their indices in the graph unless they are all. */
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
  if (!isList || typeof ranks === 'string')
    return `gave ${nameAnswer(ranks)} instead of a rank for each task`;
  if (ranks.length !== count)
    return `ranked ${ranks.length} of ${count} tasks; each task has a rank`;
  for (let index = 0; index < count; index++) {
    const rank = ranks[index] as number;
    if (!Number.isSafeInteger(rank) || rank < 0)
      return `gave ${nameAnswer(rank)} as a rank; ranks are whole numbers from 0`;
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
      return `gave the rank ${rank} twice, the second time to ${(tasks[index] as GraphTask).key}; each is given once`;
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
      return `ranked ${key} before ${dependencies[n - start] as string}, which it needs; dependencies have lower ranks`;
    }
  }
  return undefined;
}
