import fc from 'fast-check';
import { expect, it } from 'vitest';
import { depthFirst } from '../../../policies/ordering/depth-first.ts';
import { sinks, type TerseGraph } from '../../kit/graph.ts';
import { ranksOf, sequenceOf } from '../../kit/orders.ts';
import { made } from '../../kit/made.ts';

const policy = made(depthFirst);

/** Keys in the order of their ranks. */
const sequence = (graph: TerseGraph, keys?: readonly string[]): string =>
  sequenceOf(policy, graph, keys);

it('one branch is finished before the next one begins', () => {
  const graph = {
    l1: [],
    l2: [],
    l: ['l1', 'l2'],
    r1: [],
    r2: [],
    r: ['r1', 'r2'],
    top: ['l', 'r'],
  };
  expect(sequence(graph)).toBe('l1 l2 l r1 r2 r top');
});

it('branches and keys come in the order in which they were given', () => {
  const graph = { a: [], b: [], top: ['b', 'a'], other: [] };
  expect(sequence(graph, ['other', 'top'])).toBe('other b a top');
});

it('most-needed takes the dependency first that the most tasks depend on, directly or not', () => {
  const mostNeeded = made(depthFirst, { children: 'most-needed' });
  const graph = {
    rare: [],
    base: [],
    wide: [],
    one: ['base'],
    two: ['one'],
    three: ['two'],
    top: ['rare', 'wide', 'base'],
    other: ['wide'],
  };
  expect(sequenceOf(mostNeeded, graph, ['top'])).toBe('base wide rare top one two three other');
  expect(sequence(graph, ['top'])).toBe('rare wide base top one two three other');
});

it('most-needed leaves equals as they were given', () => {
  const mostNeeded = made(depthFirst, { children: 'most-needed' });
  expect(sequenceOf(mostNeeded, { 'x-2': [], 'x-10': [], sum: ['x-2', 'x-10'] })).toBe(
    'x-2 x-10 sum',
  );
});

it('what no requested key needs comes last', () => {
  expect(sequence({ unneeded: [], a: [], b: ['a'] }, ['b'])).toBe('a b unneeded');
});

it('dependencies outside of the graph do not matter', () => {
  expect(sequence({ a: ['elsewhere'], b: ['a', 'there'] })).toBe('a b');
});

it('every order is a permutation with dependencies before their dependents', () => {
  const graphs = fc.array(fc.array(fc.nat(50), { maxLength: 4 }), { maxLength: 40 });
  fc.assert(
    fc.property(graphs, (edges) => {
      const tasks = edges.map((targets, index) => {
        const dependencies = [...new Set(targets)].filter((n) => n < index).map((n) => `k-${n}`);
        return { key: `k-${index}`, dependencies, runSpec: 0 };
      });
      const ranks = Array.from(ranksOf(policy, tasks, sinks(tasks)));
      expect(ranks.toSorted((a, b) => a - b)).toEqual(tasks.map((_, index) => index));
      tasks.forEach(({ dependencies }, index) => {
        for (const key of dependencies) {
          expect(ranks[Number(key.slice(2))]).toBeLessThan(ranks[index]!);
        }
      });
    }),
  );
});

it('the same graph gets the same order', () => {
  const graph = { a: [], b: [], c: ['a', 'b'], d: ['b'], e: ['c', 'd'] };
  expect(sequence(graph)).toBe(sequence(graph));
});

it('a chain of 100 000 tasks is ordered without recursion', () => {
  const tasks = Array.from({ length: 100_000 }, (_, index) => ({
    key: `k-${index}`,
    dependencies: index === 0 ? [] : [`k-${index - 1}`],
    runSpec: 0,
  }));
  const ranks = ranksOf(policy, tasks, ['k-99999']);
  expect([ranks[0], ranks[99_999]]).toEqual([0, 99_999]);
});
