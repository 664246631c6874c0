import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MinHeap } from '../../../../core/util/heaps.ts';

interface Item {
  key: number;
  readonly id: number;
}

const byKey = (a: Item, b: Item): number => a.key - b.key || a.id - b.id;

it('items come out in order, also when the first one moves back', () => {
  const command = fc.oneof(
    fc.record({ op: fc.constant('push' as const), key: fc.integer({ min: 0, max: 20 }) }),
    fc.record({ op: fc.constant('pop' as const), key: fc.constant(0) }),
    fc.record({ op: fc.constant('settle' as const), key: fc.integer({ min: 1, max: 9 }) }),
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      const heap = new MinHeap<Item>(byKey);
      const expected: Item[] = [];
      commands.forEach(({ op, key }, id) => {
        expected.sort(byKey);
        if (op === 'push') {
          const item = { key, id };
          heap.push(item);
          expected.push(item);
        } else if (op === 'pop') {
          expect(heap.pop()).toBe(expected.shift());
        } else if (expected[0] !== undefined) {
          expected[0].key += key;
          heap.settleTop();
        }
        expected.sort(byKey);
        expect(heap.peek()).toBe(expected[0]);
        expect(heap.size).toBe(expected.length);
      });
    }),
  );
});
