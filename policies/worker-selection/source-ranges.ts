import type { ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';

/** The walks together visit at most this many times as many nodes as the graph has nodes and edges. */
const VISITS_MAX = 4;

/** A worker and how many sources it is still to get. */
interface Range {
  readonly worker: WorkerView;
  quota: number;
  /** Its part of the graph: tasks that a walk for it meets at most. */
  visitsMax: number;
}

/**
 * Divides the sources of a graph among the running workers: in proportion to their threads, less what
 * they are processing already, and so that neighbours get the same worker. Neighbours are found by
 * walking the graph breadth first, along edges in both directions. After Mars' initial assignment.
 * O(tasks + edges + workers).
 *
 * @param tasks - the tasks of the graph, of which those without dependencies and restrictions count
 * @param assign - called once for each source
 */
export function divideSources(
  tasks: readonly TaskView[],
  cluster: ClusterView,
  assign: (source: TaskView, worker: WorkerView) => void,
): void {
  const sources = tasks.filter((task) => task.state === 'released' && isSource(task));
  // One alone has no neighbours; any idle worker will do.
  if (sources.length < 2 || cluster.running.size === 0) return;
  const ranges = rangesFor(sources.length, cluster);
  for (const range of ranges) {
    range.visitsMax = Math.ceil((tasks.length * range.quota) / sources.length);
  }
  new SourceWalk(tasks, ranges, assign).run(sources);
}

function isSource(task: TaskView): boolean {
  return task.dependencies.length === 0 && task.restrictions === undefined && !task.isActor;
}

/** The number of the `count` sources that each worker gets. */
function rangesFor(count: number, cluster: ClusterView): Range[] {
  const workers = [...cluster.running];
  let busy = 0;
  let threads = 0;
  for (const worker of workers) {
    busy += worker.processing.size;
    threads += worker.threadCount;
  }
  const shares = workers.map((worker) =>
    Math.max(0, ((count + busy) * worker.threadCount) / threads - worker.processing.size),
  );
  const total = shares.reduce((sum, share) => sum + share, 0);
  const ranges = workers.map((worker, index) => ({
    worker,
    quota: Math.floor(((shares[index] as number) * count) / total),
    visitsMax: 0,
  }));
  let rest = ranges.reduce((left, { quota }) => left - quota, count);
  const bySize = ranges.toSorted((a, b) => b.worker.threadCount - a.worker.threadCount);
  for (let turn = 0; rest > 0; turn++, rest--) {
    (bySize[turn % bySize.length] as Range).quota++;
  }
  return ranges;
}

/** One walk after the other, each for one worker. */
class SourceWalk {
  /** Neighbours within the graph by index of the task. */
  private readonly neighbours: number[][];
  private readonly indices = new Map<TaskView, number>();
  private readonly isWaiting: Uint8Array;
  /** Number of the walk in which a task was met last. */
  private readonly metIn: Int32Array;
  private visitsLeft: number;

  constructor(
    private readonly tasks: readonly TaskView[],
    private readonly ranges: readonly Range[],
    private readonly assign: (source: TaskView, worker: WorkerView) => void,
  ) {
    tasks.forEach((task, index) => this.indices.set(task, index));
    this.neighbours = tasks.map(() => []);
    this.isWaiting = new Uint8Array(tasks.length);
    this.metIn = new Int32Array(tasks.length);
    this.visitsLeft = VISITS_MAX * (tasks.length + this.link());
  }

  run(sources: readonly TaskView[]): void {
    const order = sources.map((source) => this.indices.get(source) as number);
    for (const index of order) this.isWaiting[index] = 1;
    let next = 0;
    for (let walk = 1; ; walk++) {
      const range = largest(this.ranges);
      if (range.quota === 0) return;
      // Until the worker has its share or its part of the graph, then the next one.
      for (let visited = 0; visited < range.visitsMax && range.quota > 0;) {
        while (next < order.length && this.isWaiting[order[next] as number] === 0) next++;
        const start = order[next];
        if (start === undefined) return;
        visited += this.walkFrom(start, walk, range, range.visitsMax - visited);
      }
    }
  }

  /** Gives what it meets to the worker. Returns how many tasks it met. */
  private walkFrom(start: number, walk: number, range: Range, visitsMax: number): number {
    const found = [start];
    this.metIn[start] = walk;
    let visited = 0;
    for (; visited < found.length && visited < visitsMax && range.quota > 0; visited++) {
      const index = found[visited] as number;
      if (this.isWaiting[index] === 1) {
        this.isWaiting[index] = 0;
        range.quota--;
        this.assign(this.tasks[index] as TaskView, range.worker);
      }
      // A graph in which walks meet the same tasks again and again is divided in order instead.
      if (this.visitsLeft > 0) this.meetNeighbours(index, walk, found);
    }
    return visited;
  }

  private meetNeighbours(index: number, walk: number, found: number[]): void {
    for (const neighbour of this.neighbours[index] as number[]) {
      this.visitsLeft--;
      if (this.metIn[neighbour] === walk) continue;
      this.metIn[neighbour] = walk;
      const isTaken =
        this.isWaiting[neighbour] === 0 && isSource(this.tasks[neighbour] as TaskView);
      if (!isTaken) found.push(neighbour);
    }
  }

  /** Returns the number of links. */
  private link(): number {
    let count = 0;
    this.tasks.forEach((task, index) => {
      for (const dependency of task.dependencies) {
        const other = this.indices.get(dependency);
        if (other === undefined) continue;
        (this.neighbours[index] as number[]).push(other);
        (this.neighbours[other] as number[]).push(index);
        count += 2;
      }
    });
    return count;
  }
}

/** The worker that is to get the most; of equals the first. */
function largest(ranges: readonly Range[]): Range {
  let best = ranges[0] as Range;
  for (const range of ranges) if (range.quota > best.quota) best = range;
  return best;
}
