import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { GraphTask } from '../../../core/api/index.ts';
import { connectedEnds } from '../../../policies/ordering/leaf-groups.ts';
import { GroupHeap, NumberHeap } from '../../../policies/ordering/number-heap.ts';
import {
  indexGraph,
  topologicalOrder,
  totalDependencies,
} from '../../../policies/ordering/graph-index.ts';
import { sortByName } from '../../../policies/ordering/sort-keys.ts';
import { randomGraphs } from '../../kit/orders.ts';

const names = fc.oneof(
  fc.string({ maxLength: 4 }),
  fc.nat(200_000).map((n) => `split-task-with-a-long-name-${n}`),
  fc.tuple(fc.nat(30), fc.nat(30)).map(([a, b]) => `('x-y', ${a}, ${b})`),
  fc.string({ unit: 'binary', maxLength: 3 }).map((end) => `ünï-${end}`),
);

it('names are sorted as strings compare', () => {
  fc.assert(
    fc.property(fc.array(names, { maxLength: 300 }), (list) => {
      const nodes = Int32Array.from(list.keys());
      sortByName(nodes, 0, nodes.length, list);
      const expected = list.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      expect(Array.from(nodes, (node) => list[node])).toEqual(expected);
    }),
  );
});

it('names that differ only beyond the first characters are sorted by these', () => {
  const list = Array.from({ length: 3000 }, (_, n) => `${'same-'.repeat(8)}${(n * 7919) % 3000}`);
  const nodes = Int32Array.from(list.keys());
  sortByName(nodes, 0, nodes.length, list);
  expect(Array.from(nodes, (node) => list[node])).toEqual(list.toSorted());
});

it('only the given part of a list is sorted', () => {
  const nodes = Int32Array.from([3, 2, 1, 0]);
  sortByName(nodes, 1, 3, ['a', 'b', 'c', 'd']);
  expect([...nodes]).toEqual([3, 1, 2, 0]);
});

it('many equal names come to an end', () => {
  const nodes = Int32Array.from({ length: 100 }, (_, n) => n);
  sortByName(nodes, 0, 100, new Array<string>(100).fill('twice'));
  expect(new Set(nodes).size).toBe(100);
});

it('each node knows the roots that it comes from', () => {
  fc.assert(
    fc.property(randomGraphs(), (tasks) => {
      const graph = indexGraph(tasks);
      const sequence = topologicalOrder(graph);
      const found = connectedEnds(graph.dependencies, sequence);
      const expected = new Map<number, Set<number>>();
      for (const node of sequence) {
        const { offsets, targets } = graph.dependencies;
        const row = [...targets.subarray(offsets[node], offsets[node + 1])];
        const roots = new Set(row.flatMap((other) => [...rootsOf(other)]));
        expected.set(node, roots);
        const visited: number[] = [];
        found.forEachOf(node, (end) => visited.push(end));
        expect(visited.sort((a, b) => a - b)).toEqual([...roots].sort((a, b) => a - b));
        expect(found.sizes[node]).toBe(roots.size);
      }
      function rootsOf(node: number): Set<number> {
        const roots = expected.get(node)!;
        return roots.size === 0 ? new Set([node]) : roots;
      }
    }),
  );
});

/** Layers in which each task needs its neighbours: totals grow threefold with each layer. */
function stencil(layers: number, width: number): GraphTask[] {
  return Array.from({ length: layers * width }, (_, n) => {
    const [layer, column] = [Math.floor(n / width), n % width];
    const near = [column - 1, column, column + 1].filter((c) => c >= 0 && c < width);
    const dependencies = layer === 0 ? [] : near.map((c) => `${layer - 1}-${c}`);
    return { key: `${layer}-${column}`, dependencies, runSpec: 0 };
  });
}

it.each([
  ['beyond the integers of a double', 40],
  ['beyond the range of a double', 700],
])('totals %s compare exactly', (_name, layers) => {
  const graph = indexGraph(stencil(layers, 7));
  const sequence = topologicalOrder(graph);
  const totals = totalDependencies(graph, sequence);
  const exact: bigint[] = [];
  for (const node of sequence) {
    const { offsets, targets } = graph.dependencies;
    const row = targets.subarray(offsets[node], offsets[node + 1]);
    exact[node] = row.reduce((sum, other) => sum + exact[other]!, 1n);
  }
  for (let a = 0; a < graph.nodeCount; a += 3) {
    for (let b = Math.max(0, a - 20); b < Math.min(graph.nodeCount, a + 20); b++) {
      const expected = exact[a]! < exact[b]! ? -1 : exact[a]! > exact[b]! ? 1 : 0;
      expect(Math.sign(totals.compare(a, b))).toBe(expected);
    }
  }
});

it('totals of graphs that are too deep for exact ones compare by their logarithms', () => {
  const doubling = Array.from({ length: 60_000 }, (_, n) => ({
    key: `k-${n}`,
    dependencies: n < 2 ? [] : [`k-${n - 1}`, `k-${n - 2}`],
    runSpec: 0,
  }));
  const graph = indexGraph(doubling);
  const totals = totalDependencies(graph, topologicalOrder(graph));
  expect(totals.compare(59_998, 59_999)).toBeLessThan(0);
  expect(totals.compare(100, 50_000)).toBeLessThan(0);
  expect(totals.compare(50_000, 50_000)).toBe(0);
});

it('numbers leave a heap in ascending order', () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (numbers) => {
      const heap = new NumberHeap();
      for (const number of numbers) heap.push(number);
      expect(numbers.map(() => heap.pop())).toEqual(numbers.toSorted((a, b) => a - b));
    }),
  );
});

it('groups leave their heap by weight, then by rank, whatever happened to them before', () => {
  const changes = fc.record({
    group: fc.nat(9),
    kind: fc.constantFrom('set', 'change', 'remove'),
    weight: fc.nat(9),
    rank: fc.nat(99),
  });
  fc.assert(
    fc.property(fc.array(changes, { maxLength: 40 }), (list) => {
      const heap = new GroupHeap(10);
      const expected = new Map<number, { weight: number; rank: number }>();
      for (const { group, kind, weight, rank } of list) {
        const known = expected.get(group);
        // Ranks are unique, as those of leaves are.
        const unique = 10 * rank + group;
        if (kind === 'set') {
          heap.set(group, weight, unique);
          expected.set(group, { weight, rank: unique });
        } else if (kind === 'remove') {
          heap.remove(group);
          expected.delete(group);
        } else {
          heap.change(group, -2);
          if (known !== undefined) expected.set(group, { ...known, weight: known.weight - 2 });
        }
      }
      const taken: number[] = [];
      while (!heap.isEmpty) {
        taken.push(heap.firstRank);
        heap.remove(heap.firstRank % 10);
      }
      const sorted = [...expected.values()].sort((a, b) => a.weight - b.weight || a.rank - b.rank);
      expect(taken).toEqual(sorted.map(({ rank }) => rank));
    }),
  );
});
