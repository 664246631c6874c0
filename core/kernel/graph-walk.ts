import type { GraphTask } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { TaskState } from '../state/task.ts';

/** A submitted graph as the kernel is going to take it. Tasks are named by their index in it. */
export interface GraphPlan {
  /** Tasks that the requested keys need, dependencies before dependents. */
  readonly order: readonly number[];
  /** The task of the cluster that has the same key, for each task of the graph. */
  readonly known: readonly (TaskState | undefined)[];
  /** Tasks outside of the graph that it depends on. */
  readonly outside: ReadonlySet<TaskState>;
  /** Requested keys that can be had. */
  readonly keys: readonly string[];
  /** Requested keys that need something that nobody knows, with the first such thing of each. */
  readonly lost: readonly { readonly key: string; readonly missing: string }[];
  /** A cycle, each key depending on the next, the first one repeated at the end. */
  readonly cycle: readonly string[] | undefined;
  /** Index of the n-th dependency of a task, or -1 when it is outside of the graph. */
  dependencyIndex(index: number, n: number): number;
}

const WHITE = 0;
const GREY = 1;
const BLACK = 2;
const LOST = 3;
const OUTSIDE = -1;

/**
 * Finds what the requested keys need: culls the rest, and finds cycles and dependencies that neither
 * the graph nor the cluster knows. What the cluster knows already needs nothing from the graph.
 * O(tasks + dependencies), with one look-up of a key for each.
 */
export function planGraph(
  cluster: ClusterState,
  tasks: readonly GraphTask[],
  keys: readonly string[],
): GraphPlan {
  const walk = new GraphWalk(cluster, tasks);
  walk.request(keys);
  if (walk.lost.length === 0 || walk.cycle !== undefined) return walk;
  // What only lost keys need must not be made: once more, without these.
  const rest = new GraphWalk(cluster, tasks);
  rest.request(walk.keys);
  rest.lost.push(...walk.lost);
  return rest;
}

class GraphWalk implements GraphPlan {
  readonly order: number[] = [];
  readonly known: (TaskState | undefined)[] = [];
  readonly outside = new Set<TaskState>();
  readonly keys: string[] = [];
  readonly lost: { readonly key: string; readonly missing: string }[] = [];
  cycle: readonly string[] | undefined;

  private readonly indexByKey = new Map<string, number>();
  private readonly colours: Uint8Array;
  /** Where the dependencies of each task begin in {@link resolved}. */
  private readonly offsets: Int32Array;
  private readonly resolved: Int32Array;
  /** What is missing under each lost task. */
  private readonly missing = new Map<number, string>();
  /** The path from a requested key, and how far each of its tasks has been looked into. */
  private readonly path: number[] = [];
  private readonly progress: Int32Array;

  constructor(
    private readonly cluster: ClusterState,
    private readonly tasks: readonly GraphTask[],
  ) {
    this.colours = new Uint8Array(tasks.length);
    this.progress = new Int32Array(tasks.length);
    this.offsets = new Int32Array(tasks.length + 1);
    let edges = 0;
    for (let index = 0; index < tasks.length; index++) {
      const { key, dependencies } = tasks[index] as GraphTask;
      this.indexByKey.set(key, index);
      this.offsets[index] = edges;
      edges += dependencies.length;
      this.known.push(undefined);
    }
    this.resolved = new Int32Array(edges);
  }

  dependencyIndex(index: number, n: number): number {
    return this.resolved[(this.offsets[index] as number) + n] as number;
  }

  request(keys: readonly string[]): void {
    for (const key of keys) {
      const index = this.indexByKey.get(key);
      if (index === undefined) {
        this.requestOutside(key);
        continue;
      }
      this.descend(index);
      const missing = this.missing.get(index);
      if (missing === undefined) this.keys.push(key);
      else this.lost.push({ key, missing });
    }
  }

  private requestOutside(key: string): void {
    const task = this.cluster.tasks.get(key);
    if (task === undefined) {
      this.lost.push({ key, missing: key });
      return;
    }
    this.keys.push(key);
    this.outside.add(task);
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
    const next = this.indexByKey.get(key) ?? OUTSIDE;
    this.resolved[(this.offsets[index] as number) + step] = next;
    if (next === OUTSIDE) {
      const task = this.cluster.tasks.get(key);
      if (task === undefined) this.missing.set(index, key);
      else this.outside.add(task);
      return;
    }
    const colour = this.colours[next];
    if (colour === WHITE) this.enter(next);
    else if (colour === GREY) this.foundCycle(next);
    else if (colour === LOST) this.missing.set(index, this.missing.get(next) as string);
  }

  private enter(index: number): void {
    const { key, dependencies, runSpec } = this.tasks[index] as GraphTask;
    const known = this.cluster.tasks.get(key);
    if (known === undefined && runSpec === undefined) this.missing.set(index, key);
    this.known[index] = known;
    this.colours[index] = GREY;
    this.path.push(index);
    // A known task keeps its definition: only its own dependencies count, and these are known, too.
    const isDefined = known !== undefined && (known.runSpec !== undefined || isDone(known));
    this.progress[index] = isDefined ? dependencies.length : 0;
  }

  private leave(index: number): void {
    this.path.pop();
    const missing = this.missing.size === 0 ? undefined : this.missing.get(index);
    if (missing === undefined) {
      this.colours[index] = BLACK;
      this.order.push(index);
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
