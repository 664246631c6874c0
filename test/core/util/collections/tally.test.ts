import { expect, it } from 'vitest';
import { Tally } from '../../../../core/util/collections.ts';

it('an item is there from the first time that it is counted until nothing of its count is left', () => {
  const tally = new Tally<string>();
  expect(tally.increment('a')).toBe(1);
  expect(tally.increment('a')).toBe(2);
  expect(tally.decrement('a')).toBe(1);
  expect(tally.has('a')).toBe(true);
  expect(tally.decrement('a')).toBe(0);
  expect(tally.has('a')).toBe(false);
  expect(tally.get('a')).toBe(0);
  expect(tally.size).toBe(0);
});

it('counting down what is not there says so, and changes nothing', () => {
  const tally = new Tally<string>();
  tally.increment('a');
  expect(tally.decrement('b')).toBe(-1);
  expect(tally.delete('b')).toBe(false);
  expect([...tally]).toEqual([['a', 1]]);
});

it('many items are counted as few are', () => {
  const tally = new Tally<number>();
  const expected = new Map<number, number>();
  let seed = 3;
  const random = (below: number): number =>
    (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % below;
  for (let step = 0; step < 20_000; step++) {
    // The number of items goes up and down, past the length at which they are indexed.
    const item = random(step % 2000 < 1000 ? 40 : 4);
    const count = expected.get(item) ?? 0;
    const action = random(8);
    if (action < 4) {
      expected.set(item, count + 1);
      expect(tally.increment(item)).toBe(count + 1);
    } else if (action < 7) {
      if (count > 1) expected.set(item, count - 1);
      else expected.delete(item);
      expect(tally.decrement(item)).toBe(count - 1);
    } else {
      expect(tally.delete(item)).toBe(expected.delete(item));
    }
    expect(tally.size).toBe(expected.size);
  }
  expect(new Map(tally)).toEqual(expected);
});
