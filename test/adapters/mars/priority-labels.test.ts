import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type PriorityLabel,
  PriorityLabels,
  type PriorityTuple,
} from '../../../adapters/mars/mars.ts';
import { compareTuples } from '../../../core/util/values.ts';

/** The numbers are in the order of the tuples, exactly. */
function expectOrder(labels: Iterable<PriorityLabel>): void {
  const sorted = [...labels].sort((a, b) => compareTuples(a.tuple, b.tuple));
  for (let index = 1; index < sorted.length; index++) {
    const [before, after] = [sorted[index - 1]!, sorted[index]!];
    const isSame = compareTuples(before.tuple, after.tuple) === 0;
    if (isSame) expect(after.value).toBe(before.value);
    else expect(after.value).toBeGreaterThan(before.value);
  }
}

it('tuples are compared from the front, and a shorter one is smaller', () => {
  const ascending = [[-1, 9], [0], [0, -5], [0, 0], [0, 0, 1], [0, 1], [1]];
  expect(ascending.toReversed().sort(compareTuples)).toEqual(ascending);
});

it('a tuple of one element is its own number', () => {
  const { labels } = new PriorityLabels().acquire([[3], [0.25], [-7]]);
  expect(labels.map(({ value }) => value)).toEqual([3, 0.25, -7]);
});

it('longer tuples lie between two whole numbers', () => {
  const { labels } = new PriorityLabels().acquire([
    [4, 1e300],
    [4, -1e300],
    [-3, 0, 2],
  ]);
  const [high, low, negative] = labels.map(({ value }) => value) as [number, number, number];
  expect([high < 5, low > 4, high > low, negative > -3, negative < -2]).toEqual(
    Array(5).fill(true),
  );
});

it('equal tuples share a label, which lives as long as its last use', () => {
  const order = new PriorityLabels();
  const [one, same] = order.acquire([
    [1, 2],
    [1, 2],
  ]).labels as [PriorityLabel, PriorityLabel];
  expect(same).toBe(one);
  order.release(one);
  expect(order.size).toBe(1);
  order.release(same);
  order.release(same);
  expect(order.size).toBe(0);
});

it('a minus before 0 makes no difference', () => {
  const order = new PriorityLabels();
  const { labels } = order.acquire([
    [0, -0],
    [-0, 0],
  ]);
  expect(labels[0]).toBe(labels[1]);
});

it('the reported moves are complete', () => {
  const element = fc.oneof(
    fc.integer({ min: -3, max: 3 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  );
  const tuple: fc.Arbitrary<PriorityTuple> = fc
    .tuple(fc.integer({ min: -2, max: 2 }), fc.array(element, { maxLength: 2 }))
    .map(([first, rest]) => [first, ...rest]);
  const step = fc.record({ add: fc.array(tuple, { maxLength: 60 }), remove: fc.nat(40) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const order = new PriorityLabels();
      const told = new Map<PriorityLabel, number>();
      const uses: PriorityLabel[] = [];
      for (const { add, remove } of steps) {
        const { labels, moved } = order.acquire(add);
        for (const label of [...labels, ...moved]) told.set(label, label.value);
        uses.push(...labels);
        for (const label of uses.splice(0, remove)) order.release(label);
        const inUse = new Set(uses);
        expect(order.size).toBe(inUse.size);
        for (const label of inUse) expect(told.get(label)).toBe(label.value);
        expectOrder(inUse);
      }
    }),
    { numRuns: 150 },
  );
});

it.each([
  ['upwards', (n: number) => n],
  ['downwards', (n: number) => -n],
  ['ever closer to one place', (n: number) => 1 / n],
  ['from both sides', (n: number) => (n % 2 === 0 ? 1 : -1) / n],
])('one by one, %s, room is made rarely', (_, nth) => {
  const order = new PriorityLabels();
  const labels: PriorityLabel[] = [];
  let moves = 0;
  for (let n = 1; n <= 2000; n++) {
    const { labels: added, moved } = order.acquire([[0, nth(n)]]);
    labels.push(...added);
    moves += moved.size;
  }
  expectOrder(labels);
  expect(moves).toBeLessThan(2000 * 100);
});

it('many at once are put between those that are there', () => {
  const order = new PriorityLabels();
  const { labels: ends } = order.acquire([
    [0, 0],
    [0, 1],
  ]);
  const tuples = Array.from({ length: 50_000 }, (_, n) => [0, n / 50_000]);
  const { labels } = order.acquire(tuples);
  expectOrder([...ends, ...labels]);
});

it.each([
  [[], 'must be a finite number, or a list of such, got []'],
  [[NaN], 'must be a finite number'],
  [[1, Infinity], 'must be a finite number'],
  [[0.5, 1], 'of several numbers must begin with a whole one'],
  [[2 ** 21, 1], 'of several numbers must begin with a whole one of at most 1048576'],
])('%j is refused', (tuple, message) => {
  const order = new PriorityLabels();
  expect(() => order.acquire([[1, 1], tuple])).toThrow(message);
  expect(order.size).toBe(0);
});
