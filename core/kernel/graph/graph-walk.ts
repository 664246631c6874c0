import type { GraphTask } from '../../messages/stimulus.ts';
import type { ClusterState } from '../../state/cluster.ts';
import { endKeepAlive } from '../../state/relations.ts';
import { isDone } from '../../state/task-state-name.ts';
import type { TaskState, ClientState } from '../../state/task.ts';
import { GraphTable, isPlaceholder, OUTSIDE } from './graph-table.ts';

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
  /** Requested keys that depend on a key that is unknown or taken, with the first such key of each. */
  readonly lost: readonly LostKey[];
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
  /** How often each task is named as a dependency, culled tasks included. */
  readonly dependentCounts: Int32Array;
  /** The dependency at this place of {@link targets}, wherever it is. */
  dependencyAt(place: number): TaskState;
}

/** A requested key that cannot be had. */
export interface LostKey {
  readonly key: string;
  /** The key that is not known, or that stands for another computation already. */
  readonly missing: string;
  readonly isTaken?: true;
}

const WHITE = 0;
const GREY = 1;
const BLACK = 2;
const LOST = 3;

/**
 * Finds what the requested keys need: culls the rest, and finds cycles and dependencies that neither
 * the graph nor the cluster knows. What the cluster knows already needs nothing from the graph. The steps
 * are `enlist`, `resolve`, `advance` and `cull`, each of which may be done in slices.
 *
 * The tasks of the order are in the cluster's tables afterwards, released and without a definition; a
 * graph with a cycle leaves none. O(tasks + dependencies), with one look-up of a key for each.
 */
export class GraphWalk implements GraphPlan {
  /** Another list after the walk has begun anew. */
  outside: TaskState[] = [];
  keys: string[] = [];
  readonly lost: LostKey[] = [];
  cycle: readonly string[] | undefined;

  private readonly table: GraphTable;
  private readonly ordered: Int32Array;
  private orderedCount = 0;
  private readonly colours: Uint8Array;
  /** By place, as {@link targets}: the dependencies outside of the graph, once there is one. */
  private outsideAt: TaskState[] | undefined;
  /** What is missing under each lost task. */
  private readonly missing = new Map<number, string>();
  /** Keys under which the cluster knows another computation than this graph defines. */
  private readonly taken = new Set<string>();
  /** From a requested task down, and how many tasks that are. */
  private readonly path: Int32Array;
  private depth = 0;
  /** By task of the path: the place of {@link targets} that is looked at next. */
  private readonly cursors: Int32Array;
  /** Keys to ask for, how many of them are answered, and the task of the next one while it is looked at. */
  private requested: readonly string[];
  private answered = 0;
  private current = OUTSIDE;
  private readonly seenOutside = new Set<TaskState>();
  private isSecondWalk = false;

  /** @param isAmidAnother - a large graph is being walked through meanwhile: see {@link restoreIndices} */
  constructor(
    private readonly cluster: ClusterState,
    private readonly tasks: readonly GraphTask[],
    keys: readonly string[],
    isAmidAnother = false,
  ) {
    this.requested = keys;
    this.table = new GraphTable(cluster, tasks, isAmidAnother);
    this.ordered = new Int32Array(tasks.length);
    this.colours = new Uint8Array(tasks.length);
    this.path = new Int32Array(tasks.length);
    this.cursors = new Int32Array(tasks.length);
  }

  get order(): Int32Array {
    return this.ordered.subarray(0, this.orderedCount);
  }

  get states(): readonly TaskState[] {
    return this.table.states;
  }

  get offsets(): Int32Array {
    return this.table.offsets;
  }

  get targets(): Int32Array {
    return this.table.targets;
  }

  get dependentCounts(): Int32Array {
    return this.table.dependentCounts;
  }

  get isAllNew(): boolean {
    return this.orderedCount === this.tasks.length && this.table.isAllNew;
  }

  isNew(index: number): boolean {
    return this.table.isNew(index);
  }

  dependencyAt(place: number): TaskState {
    const index = this.table.targets[place] as number;
    return (index === OUTSIDE ? this.outsideAt?.[place] : this.table.states[index]) as TaskState;
  }

  /** Finds these tasks in the cluster, or makes them. */
  enlist(from: number, to: number): void {
    this.table.enlist(from, to);
  }

  /** Finds what these tasks depend on, when all tasks are enlisted. */
  resolve(from: number, to: number): void {
    this.table.resolve(from, to);
  }

  /**
   * Continues the walk, when all tasks are resolved.
   * @param stepsMax - tasks and dependencies to visit
   * @returns whether the walk is over
   */
  advance(stepsMax: number): boolean {
    for (let steps = 0; this.answered < this.requested.length; steps++) {
      if (steps >= stepsMax) return false;
      if (this.current === OUTSIDE && !this.begin()) continue;
      steps += this.descend(stepsMax - steps);
      if (this.depth > 0) return false;
      this.answer();
    }
    // What only lost keys need must not be made: once more, without these.
    if (this.lost.length === 0 || this.cycle !== undefined || this.isSecondWalk) return true;
    this.restart();
    return this.advance(stepsMax);
  }

  /** Whether tasks were enlisted that are not going to be made. */
  get hasCulled(): boolean {
    return this.cycle !== undefined || this.orderedCount < this.tasks.length;
  }

  /**
   * Takes those tasks out of the tables again, among the ones at these indices. Returns those that have
   * come to be needed otherwise, which stay.
   * @param holder - a client that does not count, and stops wanting what is taken out
   */
  cull(from: number, to: number, holder?: ClientState): TaskState[] {
    const needed: TaskState[] = [];
    for (let index = from; index < to; index++) {
      const isTaken = this.cycle === undefined && this.colours[index] === BLACK;
      if (isTaken || !this.isNew(index)) continue;
      const task = this.states[index] as TaskState;
      if (!this.discard(task, holder)) needed.push(task);
    }
    return needed;
  }

  /** Gives the tasks back to the walk that was under way before. This one is of no more use then. */
  restoreIndices(): void {
    this.table.restoreIndices();
  }

  private discard(task: TaskState, holder: ClientState | undefined): boolean {
    if (!isPlaceholder(task) || task.dependentCount > 0) return false;
    if (holder !== undefined && task.whoWants.size === 1) endKeepAlive(holder, task);
    if (task.whoWants.size > 0) return false;
    this.cluster.discardTask(task);
    return true;
  }

  /** The next of the requested keys. Returns whether it is one of a task of this graph. */
  private begin(): boolean {
    const key = this.requested[this.answered] as string;
    const task = this.cluster.tasks.get(key);
    this.current = task === undefined ? OUTSIDE : this.table.indexOf(task);
    if (this.current !== OUTSIDE) {
      if (this.colours[this.current] === WHITE) this.enter(this.current);
      return true;
    }
    this.answered++;
    if (task === undefined || isPlaceholder(task)) this.lost.push({ key, missing: key });
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
    else this.lost.push({ key, missing, ...(this.taken.has(missing) ? { isTaken: true } : {}) });
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

  /**
   * Depth first without recursion: graphs are deeper than the stack. Ends when the path is empty or
   * `stepsMax` steps were made. Returns the number of steps.
   */
  private descend(stepsMax: number): number {
    const { path, cursors } = this;
    const { offsets, targets } = this.table;
    // Counted upwards: a number that may be infinite is an object for V8, a new one for each step.
    let steps = 0;
    for (; this.depth > 0 && steps < stepsMax; steps++) {
      const index = path[this.depth - 1] as number;
      const place = cursors[index] as number;
      if (place === offsets[index + 1]) {
        this.leave(index);
        continue;
      }
      cursors[index] = place + 1;
      this.visit(index, place, targets[place] as number);
    }
    return steps;
  }

  private visit(index: number, place: number, next: number): void {
    const colour = next === OUTSIDE ? OUTSIDE : (this.colours[next] as number);
    if (colour === BLACK) return;
    if (colour === WHITE && this.states[next]?.state !== 'forgotten') this.enter(next);
    else if (colour === GREY) this.foundCycle(next);
    else if (colour === LOST) this.missing.set(index, this.missing.get(next) as string);
    else this.visitOutside(index, place);
  }

  /** The dependency is not in the graph, or it was forgotten since. */
  private visitOutside(index: number, place: number): void {
    const { targets, offsets } = this.table;
    const { dependencies } = this.tasks[index] as GraphTask;
    const key = dependencies[place - (offsets[index] as number)] as string;
    targets[place] = OUTSIDE;
    const task = this.cluster.tasks.get(key);
    if (task === undefined || isPlaceholder(task)) {
      this.missing.set(index, key);
      return;
    }
    this.addOutside(task);
    // Full length from the start: written here and there, an empty array would become a hash table.
    this.outsideAt ??= new Array<TaskState>(targets.length);
    this.outsideAt[place] = task;
  }

  private addOutside(task: TaskState): void {
    if (this.seenOutside.has(task)) return;
    this.seenOutside.add(task);
    this.outside.push(task);
  }

  private enter(index: number): void {
    const { table } = this;
    this.colours[index] = GREY;
    this.path[this.depth++] = index;
    this.cursors[index] = table.offsets[index] as number;
    const { key, runSpec } = this.tasks[index] as GraphTask;
    if (!table.isNew(index)) {
      const taken = table.takenBelow(index);
      if (taken !== undefined) {
        this.taken.add(taken);
        this.missing.set(index, taken);
      }
      this.enterKnown(index);
    } else if (runSpec === undefined) this.missing.set(index, key);
  }

  /** A known task keeps its definition: only its own dependencies count, and these are known, too. */
  private enterKnown(index: number): void {
    const { runSpec, state } = this.states[index] as TaskState;
    if (runSpec === undefined && !isDone(state)) this.table.resolveOne(index);
    else this.cursors[index] = this.table.offsets[index + 1] as number;
  }

  private leave(index: number): void {
    this.depth--;
    const missing = this.missing.size === 0 ? undefined : this.missing.get(index);
    if (missing === undefined) {
      this.colours[index] = BLACK;
      this.ordered[this.orderedCount++] = index;
      return;
    }
    this.colours[index] = LOST;
    if (this.depth > 0) this.missing.set(this.path[this.depth - 1] as number, missing);
  }

  private foundCycle(next: number): void {
    if (this.cycle !== undefined) return;
    const path = this.path.subarray(0, this.depth);
    const loop = [...path.subarray(path.indexOf(next)), next];
    this.cycle = loop.map((index) => (this.tasks[index] as GraphTask).key);
  }
}
