import { type GraphIndex, rowLength } from './graph-index.ts';

/** The choice of bundles; see {@link cheapestBundles}. */
export interface Bundling {
  /** Tasks that a bundle has at most. */
  readonly sizeMax: number;
  /** Among equals the bundle wins that uses the oldest result, otherwise the one that the order has first. */
  readonly isOldestFirst: boolean;
}

/**
 * Improves an order by bundles. A bundle is a user of a result that is kept, together with all tasks that
 * this user lacks. At each step the bundle is taken that adds the fewest results for each of its tasks. So
 * results are freed although each of their users lacks something else. When there is no small bundle, or
 * the work is used up, the order goes on.
 * @param base - ranks of the tasks, 0 to their number - 1
 * @param workMax - tasks, dependencies and kept results that may be gone through
 */
export function cheapestBundles(
  graph: GraphIndex,
  base: Int32Array,
  bundling: Bundling,
  workMax: number,
): { readonly ranks: Int32Array; readonly work: number } {
  return new Bundles(graph, base, bundling).run(workMax);
}

class Bundles {
  private readonly ranks: Int32Array;
  private rank = 0;
  private work = 0;
  /** The number of users of each task that have no rank yet. */
  private readonly users: Int32Array;
  /** Results that are kept, the oldest first. */
  private kept: number[] = [];
  /** The bundle that is looked at: dependencies before their dependents. */
  private bundle: number[] = [];
  private bundleCount = 0;
  private bundleSize = 0;
  /** Bundle in which each task was met last. */
  private readonly metIn: Int32Array;
  /** Users that the bundle would leave, for the results that it needs. */
  private readonly usersLeft: Int32Array;
  private readonly usersLeftIn: Int32Array;

  constructor(
    private readonly graph: GraphIndex,
    private readonly base: Int32Array,
    private readonly bundling: Bundling,
  ) {
    const { taskCount, dependents } = graph;
    this.ranks = new Int32Array(taskCount).fill(-1);
    this.users = new Int32Array(taskCount);
    for (let task = 0; task < taskCount; task++) this.users[task] = rowLength(dependents, task);
    this.metIn = new Int32Array(taskCount);
    this.usersLeft = new Int32Array(taskCount);
    this.usersLeftIn = new Int32Array(taskCount);
  }

  run(workMax: number): ReturnType<typeof cheapestBundles> {
    const { taskCount } = this.graph;
    const sequence = new Int32Array(taskCount);
    for (let task = 0; task < taskCount; task++) sequence[this.base[task] as number] = task;
    let next = 0;
    while (this.rank < taskCount) {
      const cheapest = this.cheapest(workMax);
      for (const task of cheapest ?? []) this.take(task);
      if (cheapest !== undefined) continue;
      while (this.isTaken(sequence[next] as number)) next++;
      this.take(sequence[next] as number);
    }
    return { ranks: this.ranks, work: this.work };
  }

  private isTaken(task: number): boolean {
    return (this.ranks[task] as number) >= 0;
  }

  private take(task: number): void {
    const { taskCount, dependencies } = this.graph;
    this.ranks[task] = this.rank++;
    const end = dependencies.offsets[task + 1] as number;
    for (let n = dependencies.offsets[task] as number; n < end; n++) {
      const dependency = dependencies.targets[n] as number;
      if (dependency < taskCount) this.users[dependency] = (this.users[dependency] as number) - 1;
    }
    if ((this.users[task] as number) > 0) this.kept.push(task);
  }

  /** Undefined when there is none, or the work is used up before all were compared. */
  private cheapest(workMax: number): number[] | undefined {
    if (this.work >= workMax) return undefined;
    const { offsets, targets } = this.graph.dependents;
    this.work += this.kept.length;
    this.kept = this.kept.filter((result) => (this.users[result] as number) > 0);
    const lookedAt = new Set<number>();
    let cheapest: number[] | undefined;
    let leastGrowth = Infinity;
    let firstRank = Infinity;
    for (const result of this.kept) {
      if (this.bundling.isOldestFirst) firstRank = -1;
      const end = offsets[result + 1] as number;
      for (let n = offsets[result] as number; n < end; n++) {
        if (this.work++ >= workMax) return undefined;
        const user = targets[n] as number;
        if (this.isTaken(user) || lookedAt.has(user)) continue;
        lookedAt.add(user);
        if (!this.gather(user)) continue;
        const growth = this.growth() / this.bundle.length;
        const rank = this.base[user] as number;
        if (growth > leastGrowth || (growth === leastGrowth && rank > firstRank)) continue;
        leastGrowth = growth;
        firstRank = rank;
        cheapest = this.bundle;
      }
    }
    return cheapest;
  }

  /** Makes the bundle of a task, unless it has too many tasks. */
  private gather(task: number): boolean {
    this.bundle = [];
    this.bundleSize = 0;
    this.bundleCount++;
    return this.add(task);
  }

  private add(task: number): boolean {
    const { taskCount, dependencies } = this.graph;
    if (task >= taskCount || this.isTaken(task) || this.metIn[task] === this.bundleCount)
      return true;
    if (this.bundleSize++ === this.bundling.sizeMax) return false;
    this.metIn[task] = this.bundleCount;
    const end = dependencies.offsets[task + 1] as number;
    for (let n = dependencies.offsets[task] as number; n < end; n++) {
      this.work++;
      if (!this.add(dependencies.targets[n] as number)) return false;
    }
    this.bundle.push(task);
    return true;
  }

  /** The number of further results that would be kept after the bundle. */
  private growth(): number {
    const { taskCount, dependencies } = this.graph;
    let growth = 0;
    for (const task of this.bundle) {
      const end = dependencies.offsets[task + 1] as number;
      for (let n = dependencies.offsets[task] as number; n < end; n++) {
        const dependency = dependencies.targets[n] as number;
        if (dependency >= taskCount) continue;
        const isFirst = this.usersLeftIn[dependency] !== this.bundleCount;
        const left = ((isFirst ? this.users : this.usersLeft)[dependency] as number) - 1;
        this.usersLeftIn[dependency] = this.bundleCount;
        this.usersLeft[dependency] = left;
        if (left === 0) growth--;
      }
      if ((this.users[task] as number) > 0) growth++;
      this.work += 1 + end - (dependencies.offsets[task] as number);
    }
    return growth;
  }
}
