import { definePolicy, type GraphTask, type OptionsOf } from '../../core/api/index.ts';
import { type Bundling, cheapestBundles } from './cheapest-bundles.ts';
import { submissionOrder } from './fifo.ts';
import {
  criticalPathOrder,
  depthFirstWalk,
  startsOf,
  withoutData,
  withSortedDependencies,
} from './dask.ts';
import { freeingFirst, freeingFirstFromEnd } from './freeing-first.ts';
import { type GraphIndex, indexGraph, rowLength, topologicalOrder } from './graph-index.ts';
import { marsOrder } from './mars.ts';

/** Orders that `best` can choose among, in the order in which they win when they are equal. */
const CANDIDATES = ['dask', 'depth-first', 'needs-first', 'mars', 'fifo'] as const;
type Candidate = (typeof CANDIDATES)[number];

const optionsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    candidates: {
      description: 'Orders to try. Of equals the first in this list wins.',
      type: 'array',
      minItems: 1,
      items: { enum: CANDIDATES },
      default: ['dask', 'depth-first', 'needs-first', 'mars'],
    },
    improve: {
      description: 'Improve each order: free results earlier, compute later what is needed late.',
      type: 'boolean',
      default: true,
    },
    workMax: {
      description:
        'Tasks and dependencies that may be gone through to improve the orders. A million takes about a quarter of a second.',
      type: 'integer',
      minimum: 0,
      default: 2_000_000,
    },
  },
} as const;

/**
 * Tries several orders, improves them, and takes the one with which a single worker has to keep the
 * fewest results at any one time; among equals the one that keeps them for the fewest steps. It tries
 * every candidate, so it is never worse than one of them. The improvements are bounded: of a large graph
 * only the orders that keep the fewest results are improved.
 */
export const best = definePolicy('ordering', {
  name: 'best',
  apiVersion: 1,
  optionsSchema,
  create: (options) => ({
    order: (tasks, keys, links) => new Search(indexGraph(tasks, links), options).run(tasks, keys),
  }),
});

const ORDERS: Readonly<
  Record<
    Candidate,
    (graph: GraphIndex, tasks: readonly GraphTask[], keys: readonly string[]) => Int32Array
  >
> = {
  dask: (graph, tasks) => criticalPathOrder(withoutData(ownRows(graph), tasks)),
  'depth-first': (graph, _tasks, keys) =>
    depthFirstWalk(graph.dependencies, graph.taskCount, startsOf(graph, keys)),
  'needs-first': (graph, _tasks, keys) => needsFirst(graph, startsOf(graph, keys)),
  mars: marsOrder,
  fifo: submissionOrder,
};

/** Each is the better one on some graphs; those that help most often come first. */
const BUNDLINGS: readonly Bundling[] = [
  { sizeMax: 24, isOldestFirst: false },
  { sizeMax: 64, isOldestFirst: true },
  { sizeMax: 2, isOldestFirst: true },
];

class Search {
  private ranks: Int32Array | undefined;
  private peak = Infinity;
  private sumOfAges = Infinity;
  private workLeft: number;

  constructor(
    private readonly graph: GraphIndex,
    private readonly options: OptionsOf<typeof optionsSchema>,
  ) {
    this.workLeft = options.workMax;
  }

  run(tasks: readonly GraphTask[], keys: readonly string[]): Int32Array {
    const { graph, options } = this;
    const tried = options.candidates.map((name) => this.measure(ORDERS[name](graph, tasks, keys)));
    if (options.improve) {
      for (const { ranks } of tried.sort(byPeak)) this.improve(ranks);
      const bases = [this.ranks ?? new Int32Array(0), ...tried.map(({ ranks }) => ranks)];
      for (const base of bases) for (const bundling of BUNDLINGS) this.bundle(base, bundling);
    }
    return this.ranks ?? new Int32Array(0);
  }

  /** Frees results earlier, computes late what is needed late, and then frees earlier once more. */
  private improve(ranks: Int32Array): void {
    const { graph } = this;
    const work = graph.nodeCount + graph.dependencies.targets.length;
    for (const better of [freeingFirst, freeingFirstFromEnd, freeingFirst]) {
      if (this.workLeft < work) return;
      this.workLeft -= work;
      ranks = this.measure(better(graph, ranks)).ranks;
    }
  }

  private bundle(base: Int32Array, bundling: Bundling): void {
    if (this.workLeft <= 0) return;
    const { ranks, work } = cheapestBundles(this.graph, base, bundling, this.workLeft);
    this.workLeft -= work;
    this.measure(ranks);
  }

  /** Keeps an order when it is better than the best so far. */
  private measure(ranks: Int32Array): Tried {
    const { peak, sumOfAges } = liveResults(this.graph, ranks);
    if (peak < this.peak || (peak === this.peak && sumOfAges < this.sumOfAges)) {
      this.ranks = ranks;
      this.peak = peak;
      this.sumOfAges = sumOfAges;
    }
    return { ranks, peak };
  }
}

interface Tried {
  readonly ranks: Int32Array;
  readonly peak: number;
}

/** The fewest results first; equals stay in the order of the candidates. */
function byPeak(a: Tried, b: Tried): number {
  return a.peak - b.peak;
}

/** The rows are sorted in place; other orders want them as they were given. */
function ownRows(graph: GraphIndex): GraphIndex {
  const { dependencies, dependents } = graph;
  return {
    ...graph,
    dependencies: { ...dependencies, targets: dependencies.targets.slice() },
    dependents: { ...dependents, targets: dependents.targets.slice() },
  };
}

/**
 * Depth first; at each task the dependency comes first whose computation has to keep the most
 * results, because those are released before the others begin. That is the best order for trees
 * (Sethi and Ullman). Begins with the last key, in contrast to plain depth-first, because some
 * graphs need fewer results in that direction. O(links log links).
 */
function needsFirst(graph: GraphIndex, starts: readonly number[]): Int32Array {
  const needs = resultsNeeded(graph);
  const sorted = withSortedDependencies(
    graph,
    (a, b) => (needs[b] as number) - (needs[a] as number) || b - a,
  );
  return depthFirstWalk(sorted.dependencies, graph.taskCount, starts.toReversed());
}

/** The number of results that have to be kept to compute each task, if nothing were shared. */
function resultsNeeded(graph: GraphIndex): Int32Array {
  const { offsets, targets } = graph.dependencies;
  const needs = new Int32Array(graph.nodeCount);
  for (const node of topologicalOrder(graph)) {
    const count = rowLength(graph.dependencies, node);
    const start = offsets[node] as number;
    if (count <= 1) {
      needs[node] = count === 0 ? 1 : (needs[targets[start] as number] as number);
      continue;
    }
    const row = new Int32Array(count);
    for (let n = 0; n < count; n++) row[n] = needs[targets[start + n] as number] as number;
    row.sort();
    // The one that needs the most comes first, while nothing else is kept.
    let most = 1;
    for (let n = 0; n < count; n++) most = Math.max(most, (row[n] as number) + count - 1 - n);
    needs[node] = most;
  }
  return needs;
}

/** The results that one worker has to keep when it computes a graph in some order. */
interface LiveResults {
  /** The most results at any one time. */
  readonly peak: number;
  /** Steps that each result is kept, all together. */
  readonly sumOfAges: number;
}

/**
 * Walks through an order and counts the results that are kept: one is from the step after it was
 * computed until the last task that needs it has been computed. Results without dependents are not
 * counted, as they have to be kept in any order. O(nodes + links).
 * @param ranks - of the tasks of the graph: 0 to their number - 1, dependencies before their
 * dependents
 */
export function liveResults(graph: GraphIndex, ranks: ArrayLike<number>): LiveResults {
  const { taskCount, dependencies, dependents } = graph;
  const sequence = new Int32Array(taskCount);
  const users = new Int32Array(taskCount);
  for (let task = 0; task < taskCount; task++) {
    sequence[ranks[task] as number] = task;
    users[task] = (dependents.offsets[task + 1] as number) - (dependents.offsets[task] as number);
  }
  let live = 0;
  let peak = 0;
  let sumOfAges = 0;
  for (let step = 0; step < taskCount; step++) {
    const task = sequence[step] as number;
    const isKept = users[task] !== 0;
    if (live > peak) peak = live;
    const end = dependencies.offsets[task + 1] as number;
    for (let n = dependencies.offsets[task] as number; n < end; n++) {
      const dependency = dependencies.targets[n] as number;
      if (dependency >= taskCount) continue;
      const left = (users[dependency] as number) - 1;
      users[dependency] = left;
      if (left > 0) continue;
      live--;
      sumOfAges += step - (ranks[dependency] as number);
    }
    if (isKept) live++;
  }
  return { peak, sumOfAges };
}
