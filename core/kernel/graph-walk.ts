import type { GraphTask } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { TaskState } from '../state/task.ts';

/** A submitted graph as the kernel is going to take it. Tasks are named by their index in it. */
export interface GraphPlan {
  /** Tasks that the requested keys need, dependencies before dependents. */
  readonly order: Int32Array;
  /** The task of the cluster for each task of the graph; those of the order are in the tables. */
  readonly states: readonly TaskState[];
  /** Tasks outside of the graph that it depends on. */
  readonly outside: ReadonlySet<TaskState>;
  /** Requested keys that can be had. */
  readonly keys: readonly string[];
  /** Requested keys that need something that nobody knows, with the first such thing of each. */
  readonly lost: readonly { readonly key: string; readonly missing: string }[];
  /** A cycle, each key depending on the next, the first one repeated at the end. */
  readonly cycle: readonly string[] | undefined;
  /** Whether this graph brought the task; otherwise the cluster knew the key before. */
  isNew(index: number): boolean;
  /** Dependencies of a task of the order, as often as it names them. Valid until the next call. */
  dependenciesOf(index: number): readonly TaskState[];
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
 */
export function planGraph(
  cluster: ClusterState,
  tasks: readonly GraphTask[],
  keys: readonly string[],
): GraphPlan {
  const walk = new GraphWalk(cluster, tasks);
  walk.request(keys);
  // What only lost keys need must not be made: once more, without these.
  if (walk.lost.length > 0 && walk.cycle === undefined) walk.restart();
  walk.discardRest();
  return walk;
}

class GraphWalk implements GraphPlan {
  readonly states: TaskState[];
  readonly outside = new Set<TaskState>();
  keys: string[] = [];
  readonly lost: { readonly key: string; readonly missing: string }[] = [];
  cycle: readonly string[] | undefined;

  private readonly ordered: Int32Array;
  private orderedCount = 0;
  private readonly newness: Uint8Array;
  private readonly colours: Uint8Array;
  /** Where the dependencies of each task begin in {@link resolved}. */
  private readonly offsets: Int32Array;
  private readonly resolved: TaskState[];
  private readonly dependencies: TaskState[] = [];
  /** What is missing under each lost task. */
  private readonly missing = new Map<number, string>();
  /** The path from a requested key, and how far each of its tasks has been looked into. */
  private readonly path: number[] = [];
  private readonly progress: Int32Array;

  constructor(
    private readonly cluster: ClusterState,
    private readonly tasks: readonly GraphTask[],
  ) {
    this.states = new Array<TaskState>(tasks.length);
    this.ordered = new Int32Array(tasks.length);
    this.newness = new Uint8Array(tasks.length);
    this.colours = new Uint8Array(tasks.length);
    this.progress = new Int32Array(tasks.length);
    this.offsets = new Int32Array(tasks.length);
    let edges = 0;
    for (let index = 0; index < tasks.length; index++) {
      this.offsets[index] = edges;
      edges += (tasks[index] as GraphTask).dependencies.length;
    }
    // Full length from the start: written in the order of the walk, an empty array would become a
    // hash table.
    this.resolved = new Array<TaskState>(edges);
    for (let index = 0; index < tasks.length; index++) this.enlist(index);
  }

  get order(): Int32Array {
    return this.ordered.subarray(0, this.orderedCount);
  }

  isNew(index: number): boolean {
    return this.newness[index] === 1;
  }

  dependenciesOf(index: number): readonly TaskState[] {
    const { dependencies } = this;
    const count = this.progress[index] as number;
    const offset = this.offsets[index] as number;
    dependencies.length = count;
    for (let n = 0; n < count; n++) dependencies[n] = this.resolved[offset + n] as TaskState;
    return dependencies;
  }

  request(keys: readonly string[]): void {
    for (const key of keys) {
      const task = this.cluster.tasks.get(key);
      if (task === undefined) {
        this.lost.push({ key, missing: key });
        continue;
      }
      const index = this.indexOf(task);
      if (index === OUTSIDE) {
        this.keys.push(key);
        this.outside.add(task);
        continue;
      }
      this.descend(index);
      const missing = this.missing.get(index);
      if (missing === undefined) this.keys.push(key);
      else this.lost.push({ key, missing });
    }
  }

  /** Walks again from those of the requested keys that can be had. */
  restart(): void {
    const { keys } = this;
    this.keys = [];
    this.orderedCount = 0;
    this.outside.clear();
    this.missing.clear();
    this.colours.fill(WHITE);
    this.request(keys);
  }

  /** Takes back what was enlisted and is not going to be made. */
  discardRest(): void {
    if (this.cycle === undefined && this.orderedCount === this.tasks.length) return;
    for (let index = 0; index < this.tasks.length; index++) {
      const isTaken = this.cycle === undefined && this.colours[index] === BLACK;
      if (!isTaken && this.newness[index] === 1) {
        this.cluster.discardTask(this.states[index] as TaskState);
      }
    }
  }

  /** Finds the task in the cluster, or makes it: one look-up serves the graph and the cluster. */
  private enlist(index: number): void {
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
      }
    }
    task.graphIndex = index;
    this.states[index] = task;
  }

  /** Where the task is in this graph. Graphs before this one have left other indices behind. */
  private indexOf(task: TaskState): number {
    return this.states[task.graphIndex] === task ? task.graphIndex : OUTSIDE;
  }

  /** Depth first without recursion: graphs are deeper than the stack. */
  private descend(start: number): void {
    if (this.colours[start] !== WHITE) return;
    this.enter(start);
    while (this.path.length > 0) {
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
  }

  private visit(index: number, step: number, key: string): void {
    const task = this.cluster.tasks.get(key);
    if (task === undefined) {
      this.missing.set(index, key);
      return;
    }
    this.resolved[(this.offsets[index] as number) + step] = task;
    const next = this.indexOf(task);
    if (next === OUTSIDE) {
      this.outside.add(task);
      return;
    }
    const colour = this.colours[next];
    if (colour === WHITE) this.enter(next);
    else if (colour === GREY) this.foundCycle(next);
    else if (colour === LOST) this.missing.set(index, this.missing.get(next) as string);
  }

  private enter(index: number): void {
    const { key, dependencies, runSpec } = this.tasks[index] as GraphTask;
    const task = this.states[index] as TaskState;
    const isNew = this.newness[index] === 1;
    if (isNew && runSpec === undefined) this.missing.set(index, key);
    this.colours[index] = GREY;
    this.path.push(index);
    // A known task keeps its definition: only its own dependencies count, and these are known, too.
    const isDefined = !isNew && (task.runSpec !== undefined || isDone(task));
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

function isDone({ state }: TaskState): boolean {
  return state === 'memory' || state === 'erred';
}
