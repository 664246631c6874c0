import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GraphTask } from '../../../core/api/index.ts';
import { fifo } from '../../../policies/ordering/fifo.ts';
import { best, liveResults } from '../../../policies/ordering/best.ts';
import { cheapestBundles } from '../../../policies/ordering/cheapest-bundles.ts';
import { daskOrder } from '../../../policies/ordering/dask.ts';
import { depthFirst } from '../../../policies/ordering/depth-first.ts';
import { freeingFirst, freeingFirstFromEnd } from '../../../policies/ordering/freeing-first.ts';
import { type GraphIndex, indexGraph } from '../../../policies/ordering/graph-index.ts';
import { graphTasks, sinks, type TerseGraph } from '../../kit/graph.ts';
import { ranksOf, randomGraphs, sequenceOf, whyInvalid } from '../../kit/orders.ts';
import { made } from '../../kit/made.ts';

function peakOf(tasks: readonly GraphTask[], ranks: ArrayLike<number>): number {
  return liveResults(indexGraph(tasks), ranks).peak;
}

function bundled(graph: GraphIndex, base: Int32Array, workMax = 1000): Int32Array {
  return cheapestBundles(graph, base, { sizeMax: 8, isOldestFirst: true }, workMax).ranks;
}

/** Pairs of leaves whose sums are needed at the very end: breadth first keeps all of them. */
function pairs(count: number): TerseGraph {
  const range = Array.from({ length: count }, (_, index) => index);
  return Object.fromEntries([
    ...range.flatMap((n) => [
      [`a${n}`, []],
      [`b${n}`, []],
    ]),
    ...range.map((n) => [`sum${n}`, [`a${n}`, `b${n}`]]),
    ['all', range.map((n) => `sum${n}`)],
  ]) as TerseGraph;
}

/** Generations of a square that is closed at its rims: each cell needs itself and its eight neighbours. */
function life(size: number, generations: number): TerseGraph {
  const graph: Record<string, string[]> = {};
  const cell = (age: number, row: number, column: number): string =>
    `('cell', ${age}, ${(row + size) % size}, ${(column + size) % size})`;
  const near = [-1, 0, 1];
  for (let age = 0; age < generations; age++) {
    for (let at = 0; at < size * size; at++) {
      const [row, column] = [Math.floor(at / size), at % size];
      graph[cell(age, row, column)] =
        age === 0
          ? []
          : near.flatMap((down) => near.map((right) => cell(age - 1, row + down, column + right)));
    }
  }
  return graph;
}

/** For each column the sums of its chunks up to each row. */
function cumulativeSums(rows: number, columns: number): TerseGraph {
  const graph: Record<string, string[]> = {};
  for (let at = 0; at < rows * columns; at++) {
    const [row, column] = [at % rows, Math.floor(at / rows)];
    const before = row === 0 ? [] : [`('sum', ${row - 1}, ${column})`];
    graph[`('chunk', ${row}, ${column})`] = [];
    graph[`('sum', ${row}, ${column})`] = [`('chunk', ${row}, ${column})`, ...before];
  }
  return graph;
}

/** Sums along the short axis of a grid, and sums of these along the long one. */
function sumsOfSums(rows: number, columns: number): TerseGraph {
  const graph: Record<string, string[]> = {};
  const name = (what: string, row: number, column: number): string =>
    `('${what}', ${row}, ${column})`;
  for (let at = 0; at < rows * columns; at++) {
    const [row, column] = [(at * 7) % rows, Math.floor((at * 7) / rows) % columns];
    const left = column === 0 ? [] : [name('along', row, column - 1)];
    const above = row === 0 ? [] : [name('down', row - 1, column)];
    graph[name('chunk', row, column)] = [];
    graph[name('along', row, column)] = [name('chunk', row, column), ...left];
    graph[name('down', row, column)] = [name('along', row, column), ...above];
    graph[name('shown', row, column)] = [name('down', row, column)];
  }
  return graph;
}

function lasts(rows: number, columns: number): string[] {
  return Array.from({ length: columns }, (_, column) => `('sum', ${rows - 1}, ${column})`);
}

describe('live results', () => {
  it('a result is kept from the step after it was computed until its last user has run', () => {
    const tasks = graphTasks({ a: [], b: ['a'], c: ['a', 'b'], d: ['c'] });
    expect(liveResults(indexGraph(tasks), [0, 1, 2, 3])).toEqual({ peak: 2, sumOfAges: 2 + 1 + 1 });
  });

  it('results without dependents are not counted', () => {
    const tasks = graphTasks({ a: [], b: [], c: ['a'] });
    expect(liveResults(indexGraph(tasks), [1, 0, 2])).toEqual({ peak: 1, sumOfAges: 1 });
  });

  it('data outside of the graph is not counted', () => {
    const tasks = graphTasks({ a: ['x'], b: ['a', 'y'] });
    expect(liveResults(indexGraph(tasks), [0, 1])).toEqual({ peak: 1, sumOfAges: 1 });
  });
});

describe('improving an order', () => {
  const tasks = graphTasks(pairs(3));
  const graph = indexGraph(tasks);
  const asGiven = Int32Array.from(tasks.keys());

  it('results are freed as soon as they can be', () => {
    expect(peakOf(tasks, asGiven)).toBe(6);
    expect(peakOf(tasks, freeingFirst(graph, asGiven))).toBe(4);
  });

  it('what is needed late is computed late', () => {
    expect(peakOf(tasks, freeingFirstFromEnd(graph, asGiven))).toBe(4);
  });

  it('bundles free results although each of their users lacks something else', () => {
    const all = [0, 1, 2, 3, 4];
    const late = graphTasks(
      Object.fromEntries([
        ...all.map((n) => [`early${n}`, []]),
        ...all.map((n) => [`late${n}`, []]),
        ...all.map((n) => [`both${n}`, [`early${n}`, `late${n}`]]),
      ]) as TerseGraph,
    );
    const [index, breadthFirst] = [indexGraph(late), Int32Array.from(late.keys())];
    expect(peakOf(late, freeingFirst(index, breadthFirst))).toBe(6);
    expect(peakOf(late, bundled(index, breadthFirst))).toBe(2);
  });

  it('beyond the work that is allowed bundles leave the order alone', () => {
    expect([...bundled(graph, asGiven, 0)]).toEqual([...asGiven]);
  });

  it('results that are kept count as work at every step, and no step exceeds what is allowed', () => {
    const roots = Array.from({ length: 200 }, (_, n) => `root${n}`);
    const star = indexGraph(
      graphTasks({ ...Object.fromEntries(roots.map((root) => [root, []])), sum: roots }),
    );
    // Backwards: what the sum lacks is met before what it has.
    const base = Int32Array.from({ length: 201 }, (_, task) => (task === 200 ? 200 : 199 - task));
    const work = (workMax: number): number =>
      cheapestBundles(star, base, { sizeMax: 8, isOldestFirst: true }, workMax).work;
    expect(work(Infinity)).toBeGreaterThan((200 * 200) / 2);
    expect(work(1000)).toBeLessThan(1000 + 2 * 200);
  });

  it('a good order is left alone', () => {
    const good = Int32Array.from(ranksOf(made(daskOrder), tasks, ['all']) as Int32Array);
    expect([...freeingFirst(graph, good)]).toEqual([...good]);
  });

  it('gives an order of every graph', () => {
    fc.assert(
      fc.property(randomGraphs(), (random) => {
        const index = indexGraph(random);
        const base = ranksOf(made(fifo), random, []) as Int32Array;
        expect(whyInvalid(random, freeingFirst(index, base))).toBeUndefined();
        expect(whyInvalid(random, freeingFirstFromEnd(index, base))).toBeUndefined();
        expect(whyInvalid(random, bundled(index, base))).toBeUndefined();
        expect(whyInvalid(random, bundled(index, base, 5))).toBeUndefined();
      }),
    );
  });
});

describe('the best of several orders', () => {
  it('never keeps more results than any of its candidates', () => {
    const others = [made(daskOrder), made(depthFirst)];
    fc.assert(
      fc.property(randomGraphs(), (tasks) => {
        const keys = sinks(tasks);
        const peak = peakOf(tasks, ranksOf(made(best), tasks, keys));
        for (const other of others) {
          expect(peak).toBeLessThanOrEqual(peakOf(tasks, ranksOf(other, tasks, keys)));
        }
      }),
    );
  });

  const graph = { b: [], a: [], sum: ['a', 'b'] };
  const give = (options: Partial<Parameters<typeof best.create>[0]>): string =>
    sequenceOf(made(best, options), graph);

  it('among equals the first candidate is taken', () => {
    expect(give({ candidates: ['fifo', 'dask'] })).toBe('b a sum');
    expect(give({ candidates: ['depth-first', 'fifo'] })).toBe('a b sum');
  });

  it('orders are improved unless that is forbidden', () => {
    const tasks = graphTasks(pairs(3));
    const peak = (improve: boolean): number =>
      peakOf(tasks, ranksOf(made(best, { candidates: ['fifo'], improve }), tasks, ['all']));
    expect([peak(false), peak(true)]).toEqual([6, 4]);
  });

  it('a graph beyond the bound gets the best candidate, and nothing is improved', () => {
    const tasks = graphTasks(pairs(3));
    const peak = (
      workMax: number,
      candidates: Parameters<typeof best.create>[0]['candidates'],
    ): number => peakOf(tasks, ranksOf(made(best, { candidates, workMax }), tasks, ['all']));
    const work = indexGraph(tasks).nodeCount + indexGraph(tasks).dependencies.targets.length;
    expect([0, work].map((workMax) => peak(workMax, ['fifo']))).toEqual([6, 4]);
    expect(peak(0, ['fifo', 'dask'])).toBe(4);
  });

  it.each([
    ['a game of life', life(8, 5)],
    ['cumulative sums along an axis', cumulativeSums(10, 12)],
    ['cumulative sums along an axis, summed', { ...cumulativeSums(6, 4), all: lasts(6, 4) }],
  ])('on %s no candidate keeps fewer results, within any bound', (_name, shape) => {
    const tasks = graphTasks(shape);
    const keys = sinks(tasks);
    const all = ['dask', 'depth-first', 'needs-first', 'mars', 'fifo'] as const;
    const alone = all.map((candidate) =>
      peakOf(tasks, ranksOf(made(best, { candidates: [candidate], improve: false }), tasks, keys)),
    );
    for (const workMax of [0, 1000, 2_000_000]) {
      const ranks = ranksOf(made(best, { candidates: all, workMax }), tasks, keys);
      expect(peakOf(tasks, ranks)).toBeLessThanOrEqual(Math.min(...alone));
    }
  });

  it('sums along one axis of sums along the other keep a row of either', () => {
    const tasks = graphTasks(sumsOfSums(30, 4));
    expect(peakOf(tasks, ranksOf(made(best), tasks, sinks(tasks)))).toBeLessThanOrEqual(6);
  });

  it('sums along an axis keep one result and the chunk that is added', () => {
    const tasks = graphTasks(cumulativeSums(10, 12));
    expect(peakOf(tasks, ranksOf(made(best), tasks, sinks(tasks)))).toBe(2);
  });
});

it('fifo puts what a task needs before it, and otherwise keeps the order', () => {
  const graph = { c: ['a'], b: [], a: [], d: ['b', 'e'], e: [] };
  expect(sequenceOf(made(fifo), graph, ['d'])).toBe('a c b e d');
});
