import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { groupOfKey, prefixOfKey } from '../../../core/state/groups.ts';

/** A key, its prefix, and its group. */
const NAMES = [
  ['x', 'x', 'x'],
  ['x-1', 'x', 'x'],
  ['x-1-2-3', 'x', 'x'],
  ["('x-2', 1)", 'x', 'x-2'],
  ["('random-a1b2c3', 0)", 'random', 'random-a1b2c3'],
  ['hello-world-1', 'hello-world', 'hello-world'],
  ['x-abcdefab', 'x', 'x'],
  ['x-abcdefg', 'x-abcdefg', 'x-abcdefg'],
  ['x-deadbeef-y', 'x', 'x'],
  ['inc-ab31c010444977004d656610d2d421ec', 'inc', 'inc'],
  ['sum-aggregate-abc123', 'sum-aggregate', 'sum-aggregate'],
  ['ae05086432ca935f6eba409a8ecd4896', 'data', 'data'],
  ['1x-2', '1x', '1x'],
  ['_(x)', 'x', 'x'],
  ['read_csv-5f', 'read_csv', 'read_csv'],
  ['17', '17', '17'],
  ["('x-abc-de', 0)", 'x-abc', 'x-abc-de'],
  ['12-load-3', '12-load', '12-load'],
  ['x-download-y', 'x', 'x'],
  ['-x', 'Other', 'Other'],
  ['', 'Other', 'Other'],
  ['<module.submodule.myclass object at 0x7f>', 'myclass', 'myclass'],
] as const;

it.each(NAMES)('%s has the prefix %s and the group %s', (key, prefix, group) => {
  expect([prefixOfKey(key), groupOfKey(key)]).toEqual([prefix, group]);
});

it('every key of the table has the names that Dask gives it', () => {
  const table = new URL('data/key-names.json', import.meta.url);
  const rows = JSON.parse(readFileSync(table, 'utf8')) as [key: string, ...names: string[]][];
  const named = rows.map(([key]) => [key, prefixOfKey(key), groupOfKey(key)]);
  expect(named).toEqual(rows);
  expect(rows.length).toBeGreaterThan(300);
});
