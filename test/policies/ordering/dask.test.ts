import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { daskOrder } from '../../../policies/ordering/dask.ts';
import { graphTasks, numbered, type TerseGraph } from '../../kit/graph.ts';
import { ranksOf, randomGraphs, sequenceOf, whyInvalid } from '../../kit/orders.ts';
import { made } from '../../kit/made.ts';

const dask = made(daskOrder);

const BINARY_TREE = {
  ...numbered('l', 8),
  m0: ['l-0', 'l-1'],
  m1: ['l-2', 'l-3'],
  m2: ['l-4', 'l-5'],
  m3: ['l-6', 'l-7'],
  n0: ['m0', 'm1'],
  n1: ['m2', 'm3'],
  r: ['n0', 'n1'],
};

function allToAll(size: number): TerseGraph {
  const range = Array.from({ length: size }, (_, index) => index);
  return Object.fromEntries([
    ...range.map((i) => [`i${i}`, []]),
    ...range.flatMap((i) => range.map((j) => [`s${i}${j}`, [`i${i}`]])),
    ...range.map((j) => [`o${j}`, range.map((i) => `s${i}${j}`)]),
  ]) as TerseGraph;
}

// Recorded from Dask HEAD; the same under all seeds of its hashes.
const RECORDED: readonly (readonly [string, TerseGraph, string])[] = [
  ['a chain', { a: [], b: ['a'], c: ['b'] }, 'a b c'],
  ['a diamond', { a: [], b: ['a'], c: ['a'], d: ['b', 'c'] }, 'a c b d'],
  ['a fork with a long branch', { a: [], b: ['a'], c: ['a'], d: ['c'] }, 'a c d b'],
  [
    'two reductions',
    { a: [], b: [], ab: ['a', 'b'], c: [], d: [], cd: ['c', 'd'] },
    'd c cd b a ab',
  ],
  ['a binary tree', BINARY_TREE, 'l-7 l-6 m3 l-5 l-4 m2 n1 l-3 l-2 m1 l-1 l-0 m0 n0 r'],
  [
    'branches that join in pairs',
    {
      X: [],
      a: ['X'],
      b: ['X'],
      c: ['X'],
      d: ['X'],
      e: ['a'],
      f: ['b'],
      g: ['c'],
      h: ['d'],
      i: ['e', 'f'],
      j: ['g', 'h'],
    },
    'X d h c g j b f a e i',
  ],
  [
    'a long and a short way',
    { a: [], b: ['a'], c: ['b'], out1: ['c'], z: [], out2: ['z'] },
    'a b c out1 z out2',
  ],
  [
    'a map and a reduction',
    { x0: [], x1: [], x2: [], y0: ['x0'], y1: ['x1'], y2: ['x2'], s: ['y0', 'y1', 'y2'] },
    'x2 y2 x1 y1 x0 y0 s',
  ],
  [
    'overlapping windows',
    {
      ...{ x0: [], x1: [], x2: [], x3: [], x4: [] },
      ...{ o0: ['x0', 'x1'], o1: ['x0', 'x1', 'x2'], o2: ['x1', 'x2', 'x3'] },
      ...{ o3: ['x2', 'x3', 'x4'], o4: ['x3', 'x4'] },
    },
    'x0 x1 o0 x2 o1 x3 o2 x4 o4 o3',
  ],
  [
    'two splits that cross',
    { a: [], b: [], s1: ['a'], s2: ['a'], t1: ['b'], t2: ['b'], u: ['s1', 't1'], v: ['s2', 't2'] },
    'b t2 a s2 v t1 s1 u',
  ],
  ['all to all', allToAll(3), 'i2 s22 i1 s12 i0 s02 o2 s21 s11 s01 o1 s20 s10 s00 o0'],
  [
    'a result that is needed twice',
    { a0: [], b0: [], a1: ['a0'], b1: ['b0'], c: ['a1', 'b1'], d: ['c', 'a0'], e: ['b0', 'd'] },
    'b0 b1 a0 a1 c d e',
  ],
  [
    'branches of different lengths',
    { a: [], b: ['a'], c1: ['b'], d1: ['c1'], c2: [], d2: ['c2'], e: ['d1', 'd2'] },
    'a b c1 d1 c2 d2 e',
  ],
];

describe('the order of Dask', () => {
  it.each(RECORDED)('%s comes in the recorded order', (_name, graph, expected) => {
    expect(sequenceOf(dask, graph)).toBe(expected);
  });

  it('does not depend on the order of submission', () => {
    fc.assert(
      fc.property(randomGraphs(), fc.infiniteStream(fc.nat(1000)), (tasks, places) => {
        const shuffled = tasks
          .map((task) => ({ task, place: places.next().value as number }))
          .sort((a, b) => a.place - b.place)
          .map(({ task }) => ({ ...task, dependencies: task.dependencies.toReversed() }));
        expect(sequenceOf(dask, shuffled)).toBe(sequenceOf(dask, tasks));
      }),
    );
  });

  it('an empty graph has an empty order', () => {
    expect(ranksOf(dask, [], [])).toHaveLength(0);
  });

  it('a cycle is refused by the names of its keys', () => {
    const graph = { before: [], a: ['before', 'c'], b: ['a'], c: ['b'], after: ['c'] };
    expect(() => sequenceOf(dask, graph)).toThrow(
      expect.objectContaining({
        code: 'ERR_GRAPH_CYCLE',
        message: expect.stringContaining('the graph has a cycle: a -> c -> b -> a') as string,
      }),
    );
  });

  it('a task that needs itself is a cycle', () => {
    expect(() => sequenceOf(dask, { a: ['a'] })).toThrow('a -> a');
  });

  it('a dependency that is given twice counts once', () => {
    expect(sequenceOf(dask, { a: [], b: ['a', 'a'], c: ['b', 'a', 'b'] })).toBe('a b c');
  });
});

describe('data in a graph', () => {
  const data = { deps: [], runSpec: undefined };

  it('comes right before the first task that needs it', () => {
    const graph = { big: data, a: [], b: ['a', 'big'], c: ['b'], d: ['c', 'big'] };
    expect(sequenceOf(dask, graph)).toBe('a big b c d');
  });

  it('that only one task needs is ordered as a task would be', () => {
    expect(sequenceOf(dask, { x: data, a: ['x'], y: data, b: ['y'] })).toBe('y b x a');
  });

  it('that merely gathers other tasks comes last', () => {
    const all = { deps: ['a', 'b'], runSpec: undefined };
    expect(sequenceOf(dask, { all, a: [], b: [], c: ['a'], d: ['b'] })).toMatch(/ all$/);
  });

  it('outside of the graph uses up no number', () => {
    const tasks = graphTasks({ a: ['elsewhere'], b: ['elsewhere', 'a'], c: ['nowhere'] });
    expect(whyInvalid(tasks, ranksOf(dask, tasks, []))).toBeUndefined();
  });

  it('that only a gathering leaf needs is numbered, too', () => {
    const tasks = [
      { key: 'x', dependencies: [], runSpec: undefined },
      { key: 'all', dependencies: ['x', 'a'], runSpec: undefined },
      { key: 'every', dependencies: ['x', 'a'], runSpec: undefined },
      { key: 'a', dependencies: [], runSpec: 'run' },
    ];
    expect(whyInvalid(tasks, ranksOf(dask, tasks, []))).toBeUndefined();
  });
});

describe('large graphs', () => {
  it('a chain of 100 000 tasks is ordered without recursion', () => {
    const tasks = Array.from({ length: 100_000 }, (_, index) => ({
      key: `k-${index}`,
      dependencies: index === 0 ? [] : [`k-${index - 1}`],
      runSpec: 0,
    }));
    expect(whyInvalid(tasks, ranksOf(dask, tasks, []))).toBeUndefined();
  });

  it('a hub between 30 000 roots and 30 000 leaves is no product of both', () => {
    const range = Array.from({ length: 30_000 }, (_, index) => index);
    const tasks = [
      ...range.map((n) => ({ key: `root-${n}`, dependencies: [], runSpec: 0 })),
      { key: 'hub', dependencies: range.map((n) => `root-${n}`), runSpec: 0 },
      ...range.map((n) => ({ key: `leaf-${n}`, dependencies: ['hub'], runSpec: 0 })),
    ];
    expect(whyInvalid(tasks, ranksOf(dask, tasks, []))).toBeUndefined();
  });

  it('one whose nodes reach too many roots to list them gets an order all the same', () => {
    const tasks = Array.from({ length: 6000 }, (_, index) => [
      { key: `root-${index}`, dependencies: [], runSpec: 0 },
      {
        key: `sum-${index}`,
        dependencies: [`root-${index}`, ...(index > 0 ? [`sum-${index - 1}`] : [])],
        runSpec: 0,
      },
    ]).flat();
    expect(whyInvalid(tasks, ranksOf(dask, tasks, []))).toBeUndefined();
  });
});
