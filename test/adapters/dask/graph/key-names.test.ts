import { expect, it } from 'vitest';
import { namesOfWireKey } from '../../../../adapters/dask/graph/materialized.ts';

it.each([
  [['x-abc-de', 0], { prefix: 'x-abc-de', group: 'x-abc-de' }],
  [['x-2', 1], undefined],
  [[['a-1', 0], 1], { prefix: 'a', group: "('a-1', 0)" }],
  [5, { prefix: 'Other', group: 'Other' }],
  [Buffer.from('inc-1'), { prefix: 'inc', group: 'inc' }],
  ['inc-1', undefined],
])('the key %j has the names that Dask gives it', (key, names) => {
  expect(namesOfWireKey(key)).toEqual(names);
});
