import { expect, it } from 'vitest';
import { append } from '../../../core/util/collections.ts';

it.each([0, 1, 2, 3, 4, 5, 40])(
  'a list of which %i items are expected takes any number',
  (expected) => {
    let list: readonly string[] = [];
    for (let count = 1; count <= 30; count++) {
      list = append(list, `item-${count}`, expected);
      expect(list).toEqual(Array.from({ length: count }, (_, index) => `item-${index + 1}`));
    }
  },
);

it('what is expected may change from item to item', () => {
  let list: readonly number[] = [];
  const expected = [0, 4, 0, 3, 4, 1, 0, 4];
  for (const [item, length] of expected.entries()) list = append(list, item, length);
  expect(list).toEqual([...expected.keys()]);
});

it.each([0, 2, 3, 4, 5])('a list of one item is not written to, with %i expected', (expected) => {
  const one = ['a'];
  expect(append(one, 'b', expected)).toEqual(['a', 'b']);
  expect(one).toEqual(['a']);
});
