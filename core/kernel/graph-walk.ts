import type { GraphTask } from '../messages/stimulus.ts';
import type { ClientState } from '../state/client.ts';
import type { ClusterState } from '../state/cluster.ts';
import { endHold } from '../state/relations.ts';
import { isDone } from '../state/task-state-name.ts';
import type { TaskState } from '../state/task.ts';
import { DependencyGuess } from './dependency-guess.ts';

/** A submitted graph as the kernel is going to take it. Tasks are named by their index in it. */
export interface GraphPlan {
  /** Tasks that the requested keys need, dependencies before dependents. */
  readonly order: Int32Array;
  /** The task of the cluster for each task of the graph; those of the order are in the tables. */
  readonly states: readonly TaskState[];
  /** Tasks outside of the graph that it depends on. */
  readonly outside: readonly TaskState[];
  /** Requested keys that can be had. */
  readonly keys: readonly string[];
  /** Requested keys that need something that nobody knows, with the first such thing of each. */
  readonly lost: readonly { readonly key: string; readonly missing: string }[];
  /** A cycle, each key depending on the next, the first one repeated at the end. */
  readonly cycle: readonly string[] | undefined;
  /** Whether this graph brought the task; otherwise the cluster knew the key before. */
  isNew(index: number): boolean;
  /** Whether it brought all of its tasks, and all are needed. */
  readonly isAllNew: boolean;
  /** Where the dependencies of each task begin in {@link targets}; one more than there are tasks. */
  readonly offsets: Int32Array;
  /** Indices of the dependencies of the new tasks of the order; -1 for one outside of the graph. */
  readonly targets: Int32Array;
  /** The dependency at this place of {@link targets}, wherever it is. */
  dependencyAt(place: number): TaskState;
}

const WHITE = 0;
const GREY = 1;
const BLACK = 2;
const LOST = 3;
const OUTSIDE = -1;

/**
 * Finds what the requested keys need: culls the rest, and finds cycles and dependencies that neither
 * the graph nor the cluster knows. What the cluster knows already needs nothing from the graph.
 *
 * The tasks of the order are in the cluster's tables afterwards, released and without a definition; a
 * graph with a cycle leaves none. O(tasks + dependencies), with one look-up of a key for each.
 *
 * @param isAmidAnother - a large graph is being walked through meanwhile: see `restoreIndices`
 */
export function planGraph(
  cluster: ClusterState,
  tasks: readonly GraphTask[],
  keys: readonly string[],
  isAmidAnother = false,
): GraphWalk {
  const walk = new GraphWalk(cluster, tasks, keys, isAmidAnother);
  walk.enlist(0, tasks.length);
  walk.advance(Infinity);
  walk.discardRest(0, tasks.length);
  return walk;
}

/** A task of a large graph that is not taken in yet: nobody else may build on it. */
export function isMereName({ runSpec, state }: TaskState): boolean {
  return runSpec === undefined && state === 'released';
}

/** The work of {@link planGraph}, which may be done in steps: `enlist`, `advance`, `discardRest`. */
export class GraphWalk implements GraphPlan {
  readonly states: TaskState[];
  /** Another list after the walk has begun anew. */
  outside: TaskState[] = [];
  keys: string[] = [];
  readonly lost: { readonly key: string; readonly missing: string }[] = [];
  cycle: readonly string[] | undefined;

  private readonly ordered: Int32Array;
  private orderedCount = 0;
  private readonly newness: Uint8Array;
  private readonly colours: Uint8Array;
  readonly offsets: Int32Array;
  readonly targets: Int32Array;
  /** By place, as {@link targets}: the dependencies outside of the graph, once there is one. */
  private outsideAt: TaskState[] | undefined;
  /** What is missing under each lost task. */
  private readonly missing = new Map<number, string>();
  /** The path from a requested key, and how far each of its tasks has been looked into. */
  private readonly path: number[] = [];
  private readonly progress: Int32Array;
  /** Keys to ask for, how many of them are answered, and the task of the next one while it is looked at. */
  private requested: readonly string[];
  private answered = 0;
  private current = OUTSIDE;
  private readonly seenOutside = new Set<TaskState>();
  private isSecondWalk = false;
  /** What {@link TaskState.graphIndex} was before, where another walk still needs it. */
  private readonly earlierIndices: Int32Array | undefined;
  private readonly guess: DependencyGuess;

  constructor(
    private readonly cluster: ClusterState,
    private readonly tasks: readonly GraphTask[],
    keys: readonly string[],
    isAmidAnother = false,
  ) {
    this.requested = keys;
    if (isAmidAnother) this.earlierIndices = new Int32Array(tasks.length);
    this.states = new Array<TaskState>(tasks.length);
    this.guess = new DependencyGuess(this.states);
    this.ordered = new Int32Array(tasks.length);
    this.newness = new Uint8Array(tasks.length);
    this.colours = new Uint8Array(tasks.length);
    this.progress = new Int32Array(tasks.length);
    this.offsets = new Int32Array(tasks.length + 1);
    let edges = 0;
    for (let index = 0; index < tasks.length; index++) {
      edges += (tasks[index] as GraphTask).dependencies.length;
      this.offsets[index + 1] = edges;
    }
    this.targets = new Int32Array(edges);
  }

  get order(): Int32Array {
    return this.ordered.subarray(0, this.orderedCount);
  }

  get isAllNew(): boolean {
    return this.orderedCount === this.tasks.length && !this.newness.includes(0);
  }

  isNew(index: number): boolean {
    return this.newness[index] === 1;
  }

  dependencyAt(place: number): TaskState {
    const index = this.targets[place] as number;
    return (index === OUTSIDE ? this.outsideAt?.[place] : this.states[index]) as TaskState;
  }

  /** Finds these tasks in the cluster, or makes them: one look-up serves the graph and the cluster. */
  enlist(from: number, to: number): void {
    for (let index = from; index < to; index++) this.enlistOne(index);
  }

  /**
   * Goes on with the walk, when all tasks are enlisted.
   * @param stepsMax - tasks and dependencies to look at
   * @returns whether the walk is over
   */
  advance(stepsMax: number): boolean {
    for (let stepsLeft = stepsMax; this.answered < this.requested.length; stepsLeft--) {
      if (stepsLeft <= 0) return false;
      if (this.current === OUTSIDE && !this.begin()) continue;
      stepsLeft = this.descend(stepsLeft);
      if (this.path.length > 0) return false;
      this.answer();
    }
    // What only lost keys need must not be made: once more, without these.
    if (this.lost.length === 0 || this.cycle !== undefined || this.isSecondWalk) return true;
    this.restart();
    return this.advance(stepsMax);
  }

  /** Takes back what was enlisted and is not going to be made, among the tasks of these indices. */
  discardRest(from: number, to: number): void {
    if (this.cycle === undefined && this.orderedCount === this.tasks.length) return;
    for (let index = from; index < to; index++) if (this.isCulled(index)) this.discard(index);
  }

  /** Whether this graph brought the task, and does not need it. */
  isCulled(index: number): boolean {
    const isTaken = this.cycle === undefined && this.colours[index] === BLACK;
    return !isTaken && this.newness[index] === 1;
  }

  /**
   * Takes a task out of the tables, unless somebody has come to need it.
   * @param holder - whose hold does not count, and ends with the task
   */
  discard(index: number, holder?: ClientState): boolean {
    const task = this.states[index] as TaskState;
    if (!isMereName(task) || task.dependentCount > 0) return false;
    if (holder !== undefined && task.whoWants.size === 1) endHold(holder, task);
    if (task.whoWants.size > 0) return false;
    this.cluster.discardTask(task);
    return true;
  }

  /** Gives the tasks back to the walk that was under way before. This one is of no more use then. */
  restoreIndices(): void {
    const { earlierIndices, states } = this;
    if (earlierIndices === undefined) return;
    // Backwards: a key that is there twice gets its first index last.
    for (let index = states.length - 1; index >= 0; index--) {
      (states[index] as TaskState).graphIndex = earlierIndices[index] as number;
    }
  }

  /** The next of the requested keys. Returns whether it is one of a task of this graph. */
  private begin(): boolean {
    const key = this.requested[this.answered] as string;
    const task = this.cluster.tasks.get(key);
    this.current = task === undefined ? OUTSIDE : this.indexOf(task);
    if (this.current !== OUTSIDE) {
      if (this.colours[this.current] === WHITE) this.enter(this.current);
      return true;
    }
    this.answered++;
    if (task === undefined || isMereName(task)) this.lost.push({ key, missing: key });
    else {
      this.keys.push(key);
      this.addOutside(task);
    }
    return false;
  }

  private answer(): void {
    const key = this.requested[this.answered++] as string;
    const missing = this.missing.get(this.current);
    if (missing === undefined) this.keys.push(key);
    else this.lost.push({ key, missing });
    this.current = OUTSIDE;
  }

  /** Walks again from those of the requested keys that can be had. */
  private restart(): void {
    this.isSecondWalk = true;
    this.requested = this.keys;
    this.answered = 0;
    this.keys = [];
    this.orderedCount = 0;
    this.outside = [];
    this.seenOutside.clear();
    this.missing.clear();
    this.colours.fill(WHITE);
  }

  private enlistOne(index: number): void {
    const { key, group, prefix } = this.tasks[index] as GraphTask;
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
      } else if (isMereName(task)) this.newness[index] = 1;
    }
    if (this.earlierIndices !== undefined) this.earlierIndices[index] = task.graphIndex;
    task.graphIndex = index;
    this.states[index] = task;
  }

  /** Where the task is in this graph. Graphs before this one have left other indices behind. */
  private indexOf(task: TaskState): number {
    return this.states[task.graphIndex] === task ? task.graphIndex : OUTSIDE;
  }

  /**
   * Depth first without recursion: graphs are deeper than the stack. Ends when the path is empty or
   * so many steps were taken. Returns the steps that are left.
   */
  private descend(stepsMax: number): number {
    let stepsLeft = stepsMax;
    for (; this.path.length > 0 && stepsLeft > 0; stepsLeft--) {
      const index = this.path[this.path.length - 1] as number;
      const { dependencies } = this.tasks[index] as GraphTask;
      const step = this.progress[index] as number;
      if (step === dependencies.length) {
        this.leave(index);
        continue;
      }
      this.progress[index] = step + 1;
      this.visit(index, step, dependencies[step] as string);
    }
    return stepsLeft;
  }

  private visit(index: number, step: number, key: string): void {
    const place = (this.offsets[index] as number) + step;
    const before = step === 0 ? undefined : this.targets[place - 1];
    const depth = this.path.length;
    const task = this.guess.find(key, before, depth) ?? this.cluster.tasks.get(key);
    if (task === undefined) {
      this.missing.set(index, key);
      return;
    }
    const next = this.indexOf(task);
    this.targets[place] = next;
    this.guess.learn(next, before, depth);
    if (next === OUTSIDE) {
      if (isMereName(task)) this.missing.set(index, key);
      else {
        this.addOutside(task);
        // Full length from the start: written here and there, an empty array would become a hash table.
        this.outsideAt ??= new Array<TaskState>(this.targets.length);
        this.outsideAt[place] = task;
      }
      return;
    }
    const colour = this.colours[next];
    if (colour === WHITE) this.enter(next);
    else if (colour === GREY) this.foundCycle(next);
    else if (colour === LOST) this.missing.set(index, this.missing.get(next) as string);
  }

  private addOutside(task: TaskState): void {
    if (this.seenOutside.has(task)) return;
    this.seenOutside.add(task);
    this.outside.push(task);
  }

  private enter(index: number): void {
    const { key, dependencies, runSpec } = this.tasks[index] as GraphTask;
    const task = this.states[index] as TaskState;
    const isNew = this.newness[index] === 1;
    if (isNew && runSpec === undefined) this.missing.set(index, key);
    this.colours[index] = GREY;
    this.path.push(index);
    // A known task keeps its definition: only its own dependencies count, and these are known, too.
    const isDefined = !isNew && (task.runSpec !== undefined || isDone(task.state));
    this.progress[index] = isDefined ? dependencies.length : 0;
  }

  private leave(index: number): void {
    this.path.pop();
    const missing = this.missing.size === 0 ? undefined : this.missing.get(index);
    if (missing === undefined) {
      this.colours[index] = BLACK;
      this.ordered[this.orderedCount++] = index;
      return;
    }
    this.colours[index] = LOST;
    const parent = this.path[this.path.length - 1];
    if (parent !== undefined) this.missing.set(parent, missing);
  }

  private foundCycle(next: number): void {
    if (this.cycle !== undefined) return;
    const loop = this.path.slice(this.path.indexOf(next));
    loop.push(next);
    this.cycle = loop.map((index) => (this.tasks[index] as GraphTask).key);
  }
}
