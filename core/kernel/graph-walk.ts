import type { GraphTask } from '../messages/stimulus.ts';
import type { ClusterState } from '../state/cluster.ts';

/** A submitted graph as the kernel is going to take it. */
export interface GraphPlan {
  /** Indices of the tasks that the requested keys need, dependencies before dependents. */
  readonly order: readonly number[];
  /** Keys outside of the graph that its tasks depend on and the cluster knows. */
  readonly known: readonly string[];
  /** Requested keys that can be had. */
  readonly keys: readonly string[];
  /** Requested keys that need something that nobody knows, with the first such thing of each. */
  readonly lost: readonly { readonly key: string; readonly missing: string }[];
  /** A cycle, each key depending on the next, the first one repeated at the end. */
  readonly cycle: readonly string[] | undefined;
}

const WHITE = 0;
const GREY = 1;
const BLACK = 2;
const LOST = 3;

/**
 * Finds what the requested keys need: culls the rest, and finds cycles and dependencies that neither
 * the graph nor the cluster knows. What is in memory or has failed already needs nothing more.
 * O(tasks + dependencies).
 */
export function planGraph(
  cluster: ClusterState,
  tasks: readonly GraphTask[],
  keys: readonly string[],
): GraphPlan {
  return new GraphWalk(cluster, tasks).plan(keys);
}

class GraphWalk {
  private readonly indexByKey = new Map<string, number>();
  private readonly colours: Uint8Array;
  private readonly order: number[] = [];
  private readonly known = new Set<string>();
  /** What is missing under each lost task. */
  private readonly missing = new Map<number, string>();
  /** The path from a requested key, and how far each of its tasks has been looked into. */
  private readonly path: number[] = [];
  private readonly progress: number[] = [];
  private cycle: readonly string[] | undefined;

  constructor(
    private readonly cluster: ClusterState,
    private readonly tasks: readonly GraphTask[],
  ) {
    tasks.forEach((task, index) => this.indexByKey.set(task.key, index));
    this.colours = new Uint8Array(tasks.length);
  }

  plan(keys: readonly string[]): GraphPlan {
    const kept: string[] = [];
    const lost: { key: string; missing: string }[] = [];
    for (const key of keys) {
      const index = this.indexByKey.get(key);
      if (index === undefined) {
        if (this.cluster.tasks.has(key)) {
          kept.push(key);
          this.known.add(key);
        } else {
          lost.push({ key, missing: key });
        }
        continue;
      }
      this.descend(index);
      const missing = this.missing.get(index);
      if (missing === undefined) kept.push(key);
      else lost.push({ key, missing });
    }
    return { order: this.order, known: [...this.known], keys: kept, lost, cycle: this.cycle };
  }

  /** Depth first without recursion: graphs are deeper than the stack. */
  private descend(start: number): void {
    if (this.colours[start] !== WHITE) return;
    this.enter(start);
    while (this.path.length > 0) {
      const index = this.path[this.path.length - 1] as number;
      const { dependencies } = this.tasks[index] as GraphTask;
      const step = this.progress[this.progress.length - 1] as number;
      if (step === dependencies.length || this.isDone(index)) {
        this.leave(index);
        continue;
      }
      this.progress[this.progress.length - 1] = step + 1;
      this.visit(index, dependencies[step] as string);
    }
  }

  private visit(index: number, key: string): void {
    const next = this.indexByKey.get(key);
    if (next === undefined) {
      if (this.cluster.tasks.has(key)) this.known.add(key);
      else this.missing.set(index, key);
      return;
    }
    const colour = this.colours[next];
    if (colour === WHITE) this.enter(next);
    else if (colour === GREY) this.foundCycle(next);
    else if (colour === LOST) this.missing.set(index, this.missing.get(next) as string);
  }

  private enter(index: number): void {
    this.colours[index] = GREY;
    this.path.push(index);
    this.progress.push(0);
  }

  private leave(index: number): void {
    this.path.pop();
    this.progress.pop();
    const missing = this.missing.get(index);
    if (missing === undefined) {
      this.colours[index] = BLACK;
      this.order.push(index);
      return;
    }
    this.colours[index] = LOST;
    const parent = this.path[this.path.length - 1];
    if (parent !== undefined) this.missing.set(parent, missing);
  }

  private isDone(index: number): boolean {
    const state = this.cluster.tasks.get((this.tasks[index] as GraphTask).key)?.state;
    return state === 'memory' || state === 'erred';
  }

  private foundCycle(next: number): void {
    if (this.cycle !== undefined) return;
    const loop = this.path.slice(this.path.indexOf(next));
    loop.push(next);
    this.cycle = loop.map((index) => (this.tasks[index] as GraphTask).key);
  }
}
