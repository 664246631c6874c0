import { expect, test } from 'vitest';
import { inParts } from '../../../adapters/client/message-limit.ts';

function graphOf(count: number) {
  const keys = Array.from({ length: count }, (_, index) => `x-${index}`);
  const tasks = keys.map((key) => ({ key, dependencies: [], runSpec: 'compute' }));
  return { op: 'update-graph' as const, stimulusId: 'update-graph-1', tasks, keys };
}

test('a small graph is one message', () => {
  const graph = graphOf(1000);
  expect(inParts(graph)).toEqual([graph]);
});

test('a large graph is several, which together are the graph', () => {
  const graph = graphOf(2001);
  const parts = inParts({ ...graph, fifoTimeoutMs: 100 });
  expect(parts.map(({ op, tasks }) => [op, tasks.length])).toEqual([
    ['graph-part', 1000],
    ['graph-part', 1000],
    ['update-graph', 1],
  ]);
  expect(parts.flatMap(({ tasks }) => tasks)).toEqual(graph.tasks);
  expect(parts.flatMap(({ keys }) => keys)).toEqual(graph.keys);
  expect(parts.at(-1)).toMatchObject({ parts: 2, fifoTimeoutMs: 100 });
});
