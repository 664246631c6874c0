import type { GraphTask } from '../../messages/stimulus.ts';
import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState } from '../../state/task.ts';
import { DependencyGuess } from './dependency-guess.ts';

/** Stands for the index of what is not in the graph. */
export const OUTSIDE = -1;

/**
 * Whether this is a task of a pending graph without a definition, on which other graphs may not
 * depend yet.
 */
export function isPlaceholder({ runSpec, state }: TaskState): boolean {
  return runSpec === undefined && state === 'released';
}

/**
 * Whether the task computes something else than this run specification says, so that whoever submits it would get the
 * result of another task. A client says what a task computes (`definition`) where its author chose the key; for others,
 * as in Dask, the same key is the same task. Data under such a key is something else, too.
 */
export function isTakenBy(known: TaskState, runSpec: unknown): boolean {
  const definition = definitionIn(runSpec);
  if (definition === undefined) return false;
  if (known.runSpec === undefined) return known.state === 'memory';
  const other = definitionIn(known.runSpec);
  return other !== undefined && other !== definition;
}

/** The only part of a run specification that the kernel reads. */
function definitionIn(runSpec: unknown): unknown {
  if (typeof runSpec !== 'object' || runSpec === null) return undefined;
  return (runSpec as { readonly definition?: unknown }).definition;
}

/**
 * A submitted graph with numbers for keys: a task is its index, and its dependencies are a row of indices.
 * Keys are looked up here, first those of the tasks (`enlist`), then those of the dependencies (`resolve`);
 * both in the order of the graph, in which neighbours lie side by side in memory.
 */
export class GraphTable {
  /** The task of the cluster for each task that is enlisted. */
  readonly states: TaskState[];
  /** Where the dependencies of each task begin in {@link targets}; one more than there are tasks. */
  readonly offsets: Int32Array;
  /** Indices of the dependencies of tasks that are resolved; {@link OUTSIDE} for all others. */
  readonly targets: Int32Array;
  /** How often each task is named as a dependency, by the tasks that are resolved. */
  readonly dependentCounts: Int32Array;
  private readonly newness: Uint8Array;
  /** Tasks that the cluster knows with another definition, and those of which nothing below is such a one. */
  private readonly taken = new Set<number>();
  private readonly untaken = new Set<number>();
  /** What {@link TaskState.graphIndex} was before, where another graph still needs it. */
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

  /** Whether the graph brought the task; otherwise the cluster knew the key before. */
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

  /** Where the task is in this graph. Graphs before this one have left other indices behind. */
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
      if (earlier !== OUTSIDE) {
        this.newness[index] = this.newness[earlier] as number;
        this.newness[earlier] = 0;
      } else if (isPlaceholder(task)) this.newness[index] = 1;
      else if (isTakenBy(task, runSpec)) this.taken.add(index);
    }
    if (this.earlierIndices !== undefined) this.earlierIndices[index] = task.graphIndex;
    task.graphIndex = index;
    this.states[index] = task;
  }
}
