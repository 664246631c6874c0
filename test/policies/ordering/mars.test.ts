import { expect, it } from 'vitest';
import { mars } from '../../../policies/ordering/mars.ts';
import { sequenceOf } from '../../kit/orders.ts';
import { made } from '../../kit/made.ts';

const ordering = made(mars);

it('of the ready tasks the deepest comes first', () => {
  const graph = { a: [], b: [], deeper: ['a'], c: [] };
  expect(sequenceOf(ordering, graph)).toBe('a deeper b c');
});

it('of equally deep tasks the one that a deeper task needs comes first', () => {
  const graph = { a: [], b: [], x: [], a1: ['a'], b1: ['b'], deep: ['b1', 'x'] };
  expect(sequenceOf(ordering, graph)).toBe('x a a1 b b1 deep');
});

it('then the one with the smaller output comes first', () => {
  const sized = (outputBytes: unknown): object => ({ annotations: { outputBytes } });
  const graph = { big: sized(100), small: sized(5), none: sized(undefined), odd: sized('many') };
  expect(sequenceOf(ordering, graph)).toBe('none odd small big');
});

it('then the one that became ready last comes first', () => {
  const graph = { a: [], b: [], a1: ['a'], a2: ['a'], b1: ['b'] };
  expect(sequenceOf(ordering, graph)).toBe('a a1 a2 b b1');
});

it('a tree is reduced depth first, with few results alive', () => {
  const graph = {
    l0: [],
    l1: [],
    l2: [],
    l3: [],
    m0: ['l0', 'l1'],
    m1: ['l2', 'l3'],
    r: ['m0', 'm1'],
  };
  expect(sequenceOf(ordering, graph)).toBe('l0 l1 m0 l2 l3 m1 r');
});

it('a cycle is refused', () => {
  expect(() => sequenceOf(ordering, { a: ['b'], b: ['a'] })).toThrow('has a cycle');
});
