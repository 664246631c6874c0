import type { FunctionSpec } from '../messages/protocol.ts';
import type { GraphTask } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import { NO_TASKS, type TaskState } from '../state/task.ts';
import { contradicts } from '../util/values.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import type { GraphPlan } from './graph-intake.ts';
import type { KernelPorts } from './ports.ts';
import type { KernelScope } from './scope.ts';

/** Stands for the index of what is not in the graph. */
export const OUTSIDE = -1;

/**
 * True when this is a task of a pending graph without a definition, on which other graphs may not
 * depend yet.
 */
export function isPlaceholder({ runSpec, state }: TaskState): boolean {
  return runSpec === undefined && state === 'released';
}

/**
 * True when the task computes something else than this run specification says, so that whoever submits it would get the
 * result of another task. A client says what a task computes (`definition`) where its author chose the key; for others,
 * as in Dask, the same key is the same task. Data under such a key is something else, too.
 */
export function isTakenBy(known: TaskState, runSpec: unknown): boolean {
  const now = partsOf(runSpec);
  if (known.runSpec === undefined) return now.definition !== undefined && known.state === 'memory';
  const before = partsOf(known.runSpec);
  if (contradicts(before.definition, now.definition)) return true;
  // The inputs of what is read are not here, where their own definitions would be compared.
  const isRead = isKeptResult(known.runSpec) || isKeptResult(runSpec);
  return isRead && contradicts(before.basis, now.basis);
}

/** True for the computation of a result that is read from a store instead, for which no inputs are needed. */
export function isKeptResult(runSpec: unknown): boolean {
  return partsOf(runSpec).persist?.isKept === true;
}

/** A run specification with which the kernel decides as with the whole; undefined: it reads nothing of this one. */
export function meaningOf(runSpec: unknown): object | undefined {
  const { definition, basis } = partsOf(runSpec);
  const isKept = isKeptResult(runSpec);
  if (definition === undefined && basis === undefined && !isKept) return undefined;
  return {
    definition,
    ...(basis === undefined ? {} : { basis }),
    ...(isKept ? { persist: { isKept } } : {}),
  };
}

/** The only parts of a run specification that the kernel reads. */
function partsOf(
  runSpec: unknown,
): Partial<Pick<FunctionSpec, 'definition' | 'basis' | 'persist'>> {
  return typeof runSpec === 'object' && runSpec !== null ? runSpec : {};
}

/**
 * A submitted graph with numbers for keys: a task is its index, and its dependencies are a row of indices.
 * Keys are looked up here, first those of the tasks (`enlist`), then those of the dependencies (`resolve`);
 * both in the order of the graph, in which neighbours lie side by side in memory.
 */
export class GraphTable {
  /** The task of the cluster for each task that is enlisted. */
  readonly states: TaskState[];
  /** The index in {@link targets} at which the dependencies of each task begin; one more than there are tasks. */
  readonly offsets: Int32Array;
  /** Indices of the dependencies of tasks that are resolved; {@link OUTSIDE} for all others. */
  readonly targets: Int32Array;
  /** The number of times that each task is named as a dependency, by the tasks that are resolved. */
  readonly dependentCounts: Int32Array;
  private readonly newness: Uint8Array;
  /** Tasks that the cluster knows with another definition, and those of which nothing below is such a one. */
  private readonly taken = new Set<number>();
  private readonly untaken = new Set<number>();
  /** The earlier values of {@link TaskState.graphIndex}, where another graph still needs them. */
  private readonly earlierIndices: Int32Array | undefined;
  private readonly guess: DependencyGuess;

  /**
   * @param isAmidAnother - whether a large graph is pending meanwhile: see {@link restoreIndices}
   */
  constructor(
    private readonly cluster: ClusterState,
    readonly tasks: readonly GraphTask[],
    isAmidAnother: boolean,
  ) {
    if (isAmidAnother) this.earlierIndices = new Int32Array(tasks.length);
    this.states = new Array<TaskState>(tasks.length);
    this.guess = new DependencyGuess(this.states);
    this.newness = new Uint8Array(tasks.length);
    this.offsets = new Int32Array(tasks.length + 1);
    let edges = 0;
    for (let index = 0; index < tasks.length; index++) {
      edges += (tasks[index] as GraphTask).dependencies.length;
      this.offsets[index + 1] = edges;
    }
    this.targets = new Int32Array(edges);
    this.dependentCounts = new Int32Array(tasks.length);
  }

  /** True when the graph brought the task; otherwise the cluster knew the key before. */
  isNew(index: number): boolean {
    return this.newness[index] === 1;
  }

  get isAllNew(): boolean {
    return !this.newness.includes(0);
  }

  /** Finds these tasks in the cluster, or makes them: one look-up serves the graph and the cluster. */
  enlist(from: number, to: number): void {
    for (let index = from; index < to; index++) this.enlistOne(index);
  }

  /** Finds what these tasks depend on, when all tasks are enlisted. What the cluster knows needs nothing. */
  resolve(from: number, to: number): void {
    for (let index = from; index < to; index++) if (this.isNew(index)) this.resolveOne(index);
  }

  resolveOne(index: number): void {
    const { targets, dependentCounts, guess } = this;
    const { dependencies } = this.tasks[index] as GraphTask;
    let place = this.offsets[index] as number;
    let before: number | undefined;
    for (let step = 0; step < dependencies.length; step++) {
      const key = dependencies[step] as string;
      const task = guess.find(key, before) ?? this.cluster.tasks.get(key);
      const target = task === undefined ? OUTSIDE : this.indexOf(task);
      guess.learn(target, before);
      targets[place++] = target;
      if (target !== OUTSIDE) (dependentCounts[target] as number)++;
      before = target;
    }
  }

  /**
   * The first task that the cluster knows with another definition, among this one and what it needs by this graph; known
   * tasks included, whose own definition may be the same while that of an input is not. O(tasks) at most, in all calls
   * together; O(1) when there is no such task.
   */
  takenBelow(index: number): string | undefined {
    const { taken, untaken } = this;
    if (taken.size === 0) return undefined;
    const seen = new Set([index]);
    for (const next of seen) {
      const { key, dependencies } = this.tasks[next] as GraphTask;
      if (taken.has(next)) return key;
      for (const dependency of dependencies) {
        const task = this.cluster.tasks.get(dependency);
        const target = task === undefined ? OUTSIDE : this.indexOf(task);
        if (target !== OUTSIDE && !untaken.has(target)) seen.add(target);
      }
    }
    for (const next of seen) untaken.add(next);
    return undefined;
  }

  /** The index of the task in this graph. Graphs before this one have left other indices behind. */
  indexOf(task: TaskState): number {
    return this.states[task.graphIndex] === task ? task.graphIndex : OUTSIDE;
  }

  /** Gives the tasks back to the graph that was under way before. This one is of no more use then. */
  restoreIndices(): void {
    const { earlierIndices, states } = this;
    if (earlierIndices === undefined) return;
    // Backwards: a key that is there twice gets its first index last.
    for (let index = states.length - 1; index >= 0; index--) {
      (states[index] as TaskState).graphIndex = earlierIndices[index] as number;
    }
  }

  private enlistOne(index: number): void {
    const { key, group, prefix, runSpec } = this.tasks[index] as GraphTask;
    let task = this.cluster.tasks.get(key);
    if (task === undefined) {
      task = this.cluster.newTask(key, group, prefix);
      this.newness[index] = 1;
    } else {
      // The graph may have the same key twice. Then the last one counts.
      const earlier = this.indexOf(task);
      const isNew = earlier === OUTSIDE ? isPlaceholder(task) : this.isNew(earlier);
      if (earlier !== OUTSIDE) this.newness[earlier] = 0;
      if (isNew) this.newness[index] = 1;
      else if (isTakenBy(task, runSpec)) this.taken.add(index);
    }
    if (this.earlierIndices !== undefined) this.earlierIndices[index] = task.graphIndex;
    task.graphIndex = index;
    this.states[index] = task;
  }
}

/** Guesses the next number of a row from the last two. */
class Row {
  private last = 0;
  private stride = 0;
  private isSteady = false;

  /** The next value if the sequence continues; -1 when it was not steady lately. */
  get next(): number {
    return this.isSteady ? this.last + this.stride : -1;
  }

  /** Continues the sequence after this value instead of the last one. */
  resumeAfter(last: number): void {
    this.last = last;
  }

  add(number: number): void {
    const stride = number - this.last;
    this.isSteady = stride === this.stride;
    this.stride = stride;
    this.last = number;
  }
}

/**
 * Guesses which task of a graph a dependency is, without looking its key up in a table of a million.
 *
 * Graphs are made by loops: the dependencies of one task lie evenly spaced in the graph, and so do the
 * first dependencies of tasks that follow each other. A guess costs one comparison of keys, and is made only
 * where the one before was right.
 */
export class DependencyGuess {
  private readonly firsts = new Row();
  private readonly others = new Row();

  /** @param states - the tasks of the graph by index */
  constructor(private readonly states: readonly TaskState[]) {}

  /**
   * The task of the graph with that key if a guess is right, else undefined.
   *
   * @param before - index of the dependency before it in the list of the same task, if it is not the first
   */
  find(key: string, before: number | undefined): TaskState | undefined {
    if (before !== undefined) this.others.resumeAfter(before);
    const { next } = before === undefined ? this.firsts : this.others;
    if (next < 0 || next >= this.states.length) return undefined;
    const task = this.states[next];
    return task?.key === key && task.state !== 'forgotten' ? task : undefined;
  }

  /** The dependency after `before` turned out to be that one. */
  learn(index: number, before: number | undefined): void {
    (before === undefined ? this.firsts : this.others).add(index);
  }
}

/** Rows up to this length are searched for duplicates; in longer ones each index leaves a mark. */
const SEARCHED_MAX = 4;

/** The dependencies of the tasks of a planned graph as lists to keep, each task once. */
export class DependencyRows {
  /** Reused: what it holds beyond the present row is of no meaning. */
  private readonly row: TaskState[] = [];
  /** By index in the graph: one more than the index of the last long row that names the task. */
  private marks: Int32Array | undefined = undefined;

  constructor(private readonly plan: GraphPlan) {}

  /**
   * A list of exactly the length that it needs. Empty lists, and those of tasks that need the same single
   * result, are shared.
   */
  of(index: number): TaskState[] {
    const { plan, row } = this;
    const start = plan.offsets[index] as number;
    const count = (plan.offsets[index + 1] as number) - start;
    if (count === 1) return aloneIn(plan.dependencyAt(start));
    for (let n = 0; n < count; n++) {
      const task = plan.dependencyAt(start + n);
      if (n === row.length) row.push(task);
      else row[n] = task;
    }
    const hasTwins = count > SEARCHED_MAX ? this.isMarked(index) : isTwice(row, count);
    return hasTwins ? [...new Set(row.slice(0, count))] : copyOf(row, count);
  }

  /**
   * True when a task of the graph is in this row twice. Tasks outside of the graph are not
   * distinguished.
   */
  private isMarked(index: number): boolean {
    const { targets, offsets, states } = this.plan;
    const marks = (this.marks ??= new Int32Array(states.length));
    const end = offsets[index + 1] as number;
    let outside = 0;
    for (let place = offsets[index] as number; place < end; place++) {
      const target = targets[place] as number;
      if (target < 0) {
        if (++outside > 1) return true;
      } else if (marks[target] === index + 1) return true;
      else marks[target] = index + 1;
    }
    return false;
  }
}

function isTwice(row: readonly TaskState[], count: number): boolean {
  for (let n = 1; n < count; n++) {
    for (let earlier = 0; earlier < n; earlier++) if (row[earlier] === row[n]) return true;
  }
  return false;
}

/**
 * The list of the first task that needs this result alone will do for the others, and so will the list of dependents of a
 * task that only this one needs: lists of one are never written to.
 */
function aloneIn(dependency: TaskState): TaskState[] {
  const { dependencies, dependentsWithForgotten } = dependency;
  const list = dependentsWithForgotten[0]?.dependencies ?? dependencies[0]?.dependentsWithForgotten;
  return list?.length === 1 && list[0] === dependency ? list : [dependency];
}

/** Written out for the lengths that are the rule, which takes no call. */
function copyOf(row: readonly TaskState[], count: number): TaskState[] {
  switch (count) {
    case 0:
      return NO_TASKS;
    case 2:
      return [row[0] as TaskState, row[1] as TaskState];
    case 3:
      return [row[0] as TaskState, row[1] as TaskState, row[2] as TaskState];
    default:
      return row.slice(0, count);
  }
}

// Policies that look at graphs as a whole are shown them before any of their tasks is placed.

/** True when any policy or watcher examines graphs. */
export function wantsGraphs({ ports, watchers }: KernelScope): boolean {
  const { queuing, workerSelection } = ports;
  return (
    queuing.policy.prepare !== undefined ||
    workerSelection.policy.prepare !== undefined ||
    watchers.some((watcher) => watcher.prepare !== undefined)
  );
}

/** Shows the policies tasks that were linked and are not placed yet, dependencies first. */
export function showGraph(scope: KernelScope, tasks: readonly TaskState[]): void {
  if (tasks.length === 0) return;
  askPolicy(scope, PREPARE_QUEUING, tasks);
  askPolicy(scope, PREPARE_SELECTION, tasks);
  for (const watcher of scope.watchers) watcher.prepare?.(tasks);
}

/**
 * Shows the known tasks to policies that have just been installed. O(tasks) if they examine graphs.
 * @param before - the ports before; undefined: the tasks are new to all policies
 */
export function showKnownTasks(scope: KernelScope, before?: KernelPorts): void {
  const { queuing, workerSelection } = scope.ports;
  const isNewQueuing = queuing.policy !== before?.queuing.policy;
  const isNewSelection = workerSelection.policy !== before?.workerSelection.policy;
  if (!(isNewQueuing || isNewSelection) || !wantsGraphs(scope)) return;
  const tasks = knownTasks(scope);
  if (tasks.length === 0) return;
  if (isNewQueuing) askPolicy(scope, PREPARE_QUEUING, tasks);
  if (isNewSelection) askPolicy(scope, PREPARE_SELECTION, tasks);
}

/** Tasks that a graph brought, for policies that are installed later. */
export function knownTasks({ cluster }: KernelScope): TaskState[] {
  return [...cluster.tasks.values()].filter((task) => task.runSpec !== undefined);
}

const PREPARE_QUEUING: Question<'queuing', readonly TaskState[], void> = {
  slot: 'queuing',
  ask: (policy, { cluster }, tasks) => policy.prepare?.(tasks, cluster),
  refuse: () => undefined,
};

const PREPARE_SELECTION: Question<'workerSelection', readonly TaskState[], void> = {
  slot: 'workerSelection',
  ask: (policy, { cluster }, tasks) => policy.prepare?.(tasks, cluster),
  refuse: () => undefined,
};
