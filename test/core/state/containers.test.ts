import fc from 'fast-check';
import { expect, it } from 'vitest';
import { IndexedHeap, RankedHeap, RankedSet } from '../../../core/util/heaps.ts';
import { SmallSet } from '../../../core/util/collections.ts';

interface Item {
  readonly id: number;
  value: number;
  place: number;
}

const steps = fc.array(
  fc.record({
    what: fc.constantFrom('add', 'add', 'delete', 'update', 'pop'),
    id: fc.nat(20),
    value: fc.nat(9),
  }),
);

it('a heap gives its members in order, whatever was added, removed and changed', () => {
  const order = (a: Item, b: Item): number => a.value - b.value || a.id - b.id;
  fc.assert(
    fc.property(steps, (all) => {
      const items = Array.from({ length: 21 }, (_, id): Item => ({ id, value: 0, place: -1 }));
      const heap = new IndexedHeap<Item>(order);
      const model = new Set<Item>();
      for (const { what, id, value } of all) {
        const item = items[id]!;
        if (what === 'add') {
          if (!heap.has(item)) item.value = value;
          heap.add(item);
          model.add(item);
        } else if (what === 'delete') {
          expect(heap.delete(item)).toBe(model.delete(item));
        } else if (what === 'pop') {
          const [least] = [...model].sort(order);
          expect(heap.pop()).toBe(least);
          if (least !== undefined) model.delete(least);
        } else if (heap.has(item)) {
          item.value = value;
          heap.update(item);
        }
        expect(heap.size).toBe(model.size);
        expect(heap.peek()).toBe([...model].sort(order)[0]);
        const isLater = (each: Item): boolean => each.id > id;
        expect(heap.find(isLater)).toBe([...model].sort(order).find(isLater));
      }
      expect(heap.sorted()).toEqual([...model].sort(order));
    }),
  );
});

it('a heap by rank gives its members by their numbers, then by rank', () => {
  const members = Array.from({ length: 21 }, (_, rank) => ({ rank }));
  fc.assert(
    fc.property(steps, (all) => {
      const heap = new RankedHeap(members);
      const model = new Map<number, number>();
      for (const { what, id, value } of all) {
        const member = members[id]!;
        if (what === 'add' || what === 'update') {
          heap.put(member, value / 2);
          model.set(id, value / 2);
        } else expect(heap.delete(member)).toBe(model.delete(id));
        const expected = [...model].sort((a, b) => a[1] - b[1] || a[0] - b[0]);
        const first: { rank: number }[] = [];
        heap.smallestInto(first, 4);
        expect(heap.peek()?.rank).toBe(expected[0]?.[0]);
        expect(heap.sorted().map(({ rank }) => rank)).toEqual(expected.map(([rank]) => rank));
        expect(first).toEqual(heap.sorted().slice(0, 4));
        expect([...heap].length).toBe(model.size);
        expect([heap.size, heap.has(member)]).toEqual([model.size, model.has(id)]);
        expect(heap.keyOf(member)).toBe(model.get(id));
      }
    }),
  );
});

it('a ranked set gives its members by rank, whatever was added and removed', () => {
  const members = Array.from({ length: 3000 }, (_, rank) => ({ rank }));
  const changes = fc.array(fc.tuple(fc.boolean(), fc.nat(2999)));
  fc.assert(
    fc.property(changes, (all) => {
      const set = new RankedSet(members);
      const model = new Set<number>();
      for (const [isAddition, rank] of all) {
        if (isAddition) set.add(members[rank]!);
        else expect(set.delete(members[rank]!)).toBe(model.has(rank));
        if (isAddition) model.add(rank);
        else model.delete(rank);
      }
      const expected = [...model].sort((a, b) => a - b);
      expect([...set].map(({ rank }) => rank)).toEqual(expected);
      expect(expected.map((_, k) => set.at(k)?.rank)).toEqual(expected);
      expect(set.at(expected.length)).toBeUndefined();
      expect([set.size, set.has(members[99]!)]).toEqual([expected.length, model.has(99)]);
    }),
  );
});

it('a small set keeps the order of its members and has each once', () => {
  const set = SmallSet.of('b').with('a').with('b').with('c');
  expect([...set]).toEqual(['b', 'a', 'c']);
  expect([set.size, set.has('a'), set.items[0]]).toEqual([3, true, 'b']);
  expect([...set.without('a')]).toEqual(['b', 'c']);
});

it('a small set that does not change is the same one', () => {
  const set = SmallSet.of('a');
  expect(set.with('a')).toBe(set);
  expect(set.without('b')).toBe(set);
  expect(set.without('a')).toBe(SmallSet.empty());
});
