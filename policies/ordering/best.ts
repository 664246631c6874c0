import { definePolicy, type GraphTask } from '../../core/api/index.ts';
import { submissionOrder } from './fifo.ts';
import { criticalPathOrder } from './critical-path.ts';
import { depthFirstWalk, startsOf } from './depth-first-walk.ts';
import { freeingFirst, freeingFirstFromEnd } from './freeing-first.ts';
import { type GraphIndex, indexGraph } from './graph-index.ts';
import { liveResults } from './live-results.ts';
import { marsOrder } from './mars.ts';
import { needsFirst } from './needs-first.ts';
import { withoutData } from './without-data.ts';

/** Orders that `best` can choose among, in the order in which they win when they are equal. */
const CANDIDATES = ['dask', 'depth-first', 'needs-first', 'mars', 'fifo'] as const;
type Candidate = (typeof CANDIDATES)[number];

/** Options of the policy `best`. */
export interface BestOptions {
  /** What is tried, in this order. */
  readonly candidates: readonly Candidate[];
  /** Whether the orders are improved before they are compared. */
  readonly improve: boolean;
  /** Tasks and dependencies that may be gone through, over all tries; at least one try is made. */
  readonly workMax: number;
}

const DEFAULTS: BestOptions = {
  candidates: ['dask', 'depth-first', 'needs-first'],
  improve: true,
  workMax: 2_000_000,
};

/**
 * Tries several orders, improves each, and takes the one with which a single worker has to keep the
 * fewest results at any one time; among equals the one that keeps them for the fewest steps. The work
 * is bounded: large graphs get fewer tries.
 */
export const best = definePolicy<'ordering', Partial<BestOptions>>('ordering', {
  name: 'best',
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      candidates: {
        description: 'Orders to try, in this order. The first is tried however large the graph is.',
        type: 'array',
        minItems: 1,
        items: { enum: CANDIDATES },
        default: DEFAULTS.candidates,
      },
      improve: {
        description: 'Improve each order: free results earlier, compute later what is needed late.',
        type: 'boolean',
        default: DEFAULTS.improve,
      },
      workMax: {
        description:
          'Tasks and dependencies that may be gone through, over all tries. A million takes about a quarter of a second.',
        type: 'integer',
        minimum: 0,
        default: DEFAULTS.workMax,
      },
    },
  },
  create: (options) => {
    const settings = { ...DEFAULTS, ...options };
    return {
      order: (tasks, keys, links) =>
        new Search(indexGraph(tasks, links), settings).run(tasks, keys),
    };
  },
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

class Search {
  private ranks: Int32Array | undefined;
  private peak = Infinity;
  private sumOfAges = Infinity;
  private triesLeft: number;

  constructor(
    private readonly graph: GraphIndex,
    private readonly options: BestOptions,
  ) {
    const work = graph.nodeCount + graph.dependencies.targets.length;
    this.triesLeft = Math.max(1, Math.floor(options.workMax / Math.max(1, work)));
  }

  run(tasks: readonly GraphTask[], keys: readonly string[]): Int32Array {
    const { graph, options } = this;
    const tried: Int32Array[] = [];
    for (const name of options.candidates) {
      const ranks = this.try(() => ORDERS[name](graph, tasks, keys));
      if (ranks !== undefined) tried.push(ranks);
    }
    if (options.improve) {
      const improved = tried.map((ranks) => this.try(() => freeingFirst(graph, ranks)));
      for (const ranks of improved) {
        if (ranks === undefined) break;
        const late = this.try(() => freeingFirstFromEnd(graph, ranks));
        if (late !== undefined) this.try(() => freeingFirst(graph, late));
      }
    }
    return this.ranks ?? new Int32Array(0);
  }

  /** Makes an order and keeps it when it is better than the best so far. */
  private try(makeOrder: () => Int32Array): Int32Array | undefined {
    if (this.triesLeft-- <= 0) return undefined;
    const ranks = makeOrder();
    const { peak, sumOfAges } = liveResults(this.graph, ranks);
    if (peak < this.peak || (peak === this.peak && sumOfAges < this.sumOfAges)) {
      this.ranks = ranks;
      this.peak = peak;
      this.sumOfAges = sumOfAges;
    }
    return ranks;
  }
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
