import { describe, expect, it } from 'vitest';
import {
  durationMs,
  type GraphContext,
  isMaterialized,
  unpackMaterialized,
} from '../../../../adapters/dask/graph/materialized.ts';
import { cpuMsOf } from '../../../kit/cpu.ts';

const context: GraphContext = {
  keyOf: (wire) => (typeof wire === 'string' ? wire : `(${JSON.stringify(wire)})`),
  isWorkerName: (name) => name === 'alice' || name === '7',
};

const bytes = (text: string) => new TextEncoder().encode(text);
const call = (name: string) => ({ function: bytes(name), args: bytes('()') });

function layer(
  dsk: unknown,
  dependencies: unknown,
  annotations: unknown = null,
  name = 'MaterializedLayer',
) {
  const state = { dsk, dependencies };
  return { __module__: 'dask.highlevelgraph', __name__: name, state, annotations };
}

function message(layers: unknown[], fields: Record<string, unknown> = {}) {
  return {
    op: 'update-graph-hlg',
    hlg: { layers },
    keys: ['c'],
    priority: null,
    submitting_task: null,
    fifo_timeout: '100 ms',
    actors: null,
    ...fields,
  };
}

const unpack = (layers: unknown[], fields?: Record<string, unknown>) =>
  unpackMaterialized(message(layers, fields), context);

describe('graphs that list their tasks', () => {
  it('layers merge, and dependencies from several layers add up', () => {
    const graph = unpack([
      layer({ a: call('a'), b: call('b') }, { a: [], b: new Set(['a']) }),
      layer({ c: call('c') }, { b: new Set(['z']), c: new Set(['a', 'b']) }),
    ]);
    expect(graph.tasks).toEqual([
      { key: 'a', dependencies: [], runSpec: call('a') },
      { key: 'b', dependencies: ['a', 'z'], runSpec: call('b') },
      { key: 'c', dependencies: ['a', 'b'], runSpec: call('c') },
    ]);
    expect(graph).toMatchObject({ keys: ['c'], fifoTimeoutMs: 100 });
    expect(graph).not.toHaveProperty('submittingTask');
  });

  it('many layers may give dependencies to one task', () => {
    const layers = Array.from({ length: 60_000 }, (_, index) => {
      return layer({ c: call('c') }, { c: new Set([`in-${index}`, 'in-0']) });
    });
    let unpacked: ReturnType<typeof unpack> | undefined;
    expect(cpuMsOf(() => (unpacked = unpack(layers)))).toBeLessThan(3000);
    expect(unpacked?.tasks[0]?.dependencies).toHaveLength(60_000);
  });

  it('an alias of itself and a dependency on itself fall away', () => {
    const { tasks } = unpack([
      layer({ a: 'a', c: call('c') }, { a: new Set(), c: new Set(['c', 'a']) }),
    ]);
    expect(tasks).toEqual([{ key: 'c', dependencies: ['a'], runSpec: call('c') }]);
  });

  it('keys may be tuples', () => {
    const dsk = new Map<unknown, unknown>([[['x', 0], call('x')]]);
    const links = new Map<unknown, unknown>([[['x', 0], new Set([['y', 1]])]]);
    const { tasks, keys } = unpack([layer(dsk, links)], { keys: new Set([['x', 0]]) });
    expect(tasks).toEqual([{ key: '(["x",0])', dependencies: ['(["y",1])'], runSpec: call('x') }]);
    expect(keys).toEqual(['(["x",0])']);
  });

  it('the priorities of the client are the ranks', () => {
    const { tasks } = unpack([layer({ a: call('a'), c: call('c') }, {})], {
      priority: { a: 1, c: 0 },
    });
    expect(tasks.map(({ rank }) => rank)).toEqual([1, 0]);
  });

  it('annotations hold for all tasks of a layer, or for each key its own', () => {
    const { tasks } = unpack([
      layer(
        { a: call('a'), b: call('b') },
        {},
        {
          retries: 2,
          priority: { a: 5, __expanded_annotations__: true },
          workers: ['alice', '127.0.0.1:3000', 'tcp://h:1', 'somehost', 7],
          allow_other_workers: true,
          resources: { GPU: new Number(1) },
        },
      ),
    ]);
    expect(tasks[0]).toMatchObject({
      retries: 2,
      userPriority: 5,
      workers: ['alice', 'tcp://127.0.0.1:3000', 'tcp://h:1', '7'],
      hosts: ['somehost'],
      allowOtherWorkers: true,
      resources: { GPU: 1 },
    });
    expect(tasks[1]).not.toHaveProperty('userPriority');
    expect(tasks[1]?.annotations).not.toHaveProperty('priority');
    expect(tasks[1]).toMatchObject({ retries: 2 });
  });

  it('the first layer that annotates a key counts', () => {
    const { tasks } = unpack([
      layer({ a: call('a') }, {}, { retries: 1 }),
      layer({ a: call('b') }, {}, { retries: 2, priority: 3 }),
    ]);
    expect(tasks).toEqual([
      {
        key: 'a',
        dependencies: [],
        runSpec: call('b'),
        annotations: { retries: 1, priority: 3 },
        retries: 1,
        userPriority: 3,
      },
    ]);
  });

  it('actors are the listed keys, or all wanted ones', () => {
    const layers = [layer({ a: call('a'), c: call('c') }, {})];
    expect(unpack(layers, { actors: true }).tasks.map(({ actor }) => actor)).toEqual([
      undefined,
      true,
    ]);
    expect(unpack(layers, { actors: ['a'] }).tasks.map(({ actor }) => actor)).toEqual([
      true,
      undefined,
    ]);
  });

  it('a graph with a symbolic layer is left to Python', () => {
    expect(isMaterialized(message([layer({}, {})]))).toBe(true);
    expect(isMaterialized(message([{ ...layer({}, {}), __module__: null }]))).toBe(true);
    expect(isMaterialized(message([layer({}, {}), layer({}, {}, null, 'Blockwise')]))).toBe(false);
    expect(isMaterialized({ op: 'update-graph', keys: [] })).toBe(false);
  });
});

describe('durations of Dask', () => {
  it.each([
    ['60s', 60_000],
    ['100 ms', 100],
    [0, 0],
    [1.5, 1500],
    ['2 hours', 7_200_000],
    ['0', 0],
    ['1us', 0.001],
    [null, 0],
    ['soon', 0],
    ['5 constructor', 0],
    ['5 s!', 0],
    [' 5 s ', 5000],
    ['', 1000],
    [`${' '.repeat(100_000)}!`, 0],
    [`5${' '.repeat(100_000)}!`, 0],
  ])('%.20j is %d ms', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });
});
