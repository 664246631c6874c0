import { describe, expect, test } from 'vitest';
import { packGraph } from '../../../adapters/client/graph.ts';
import { type Graph, ref, task } from '../../../adapters/client/index.ts';
import { add, inc, total } from './tasks.ts';

const alone = { keyOfFuture: () => undefined, isKnown: () => false, options: {} };

function pack(graph: Graph, ...keys: string[]) {
  return packGraph(graph, keys, alone).map((item) => item.task);
}

describe('a graph', () => {
  test('names the dependencies of each task, wherever they are in the arguments', () => {
    const tasks = pack(
      {
        a: task(inc, 1),
        b: task(inc, ref('a')),
        c: task(total, [ref<number>('a'), 5, ref<number>('b')]),
      },
      'c',
    );
    expect(tasks.map(({ key, dependencies }) => [key, dependencies])).toEqual([
      ['a', []],
      ['b', ['a']],
      ['c', ['a', 'b']],
    ]);
  });

  test('leaves out what the requested keys do not need', () => {
    const graph = { a: task(inc, 1), b: task(inc, ref('a')), unrelated: task(inc, 2) };
    expect(pack(graph, 'b').map(({ key }) => key)).toEqual(['a', 'b']);
  });

  test('waits for what it is to begin after, too, once', () => {
    const graph = {
      a: task(inc, 1),
      b: task(inc, 2),
      c: task(inc, ref('a')).after(ref('b'), ref('a')).with({ retries: 1 }),
    };
    const [, , c] = pack(graph, 'c');
    expect(c).toMatchObject({ dependencies: ['a', 'b'], retries: 1 });
    const wrong = { a: task(inc, 1).after('b' as never) };
    expect(() => pack(wrong, 'a')).toThrow('neither a ref nor a future');
  });

  test('in a namespace has separate keys, which begin with the names of its functions', () => {
    const graph = { a: task(inc, 1), b: task(add, ref('a'), 1).after(ref('a')) };
    const packed = packGraph(graph, ['run/b'], { ...alone, namespace: 'run/' });
    expect(packed.map((item) => item.task)).toMatchObject([
      { key: 'run/a', dependencies: [], prefix: 'inc', group: 'run/inc' },
      { key: 'run/b', dependencies: ['run/a'], prefix: 'add', group: 'run/add' },
    ]);
  });

  test('gives the options of a task precedence over those of the graph', () => {
    const graph = { a: task(inc, 1).with({ retries: 3 }), b: task(inc, ref('a')) };
    const packed = packGraph(graph, ['b'], { ...alone, options: { retries: 1, priority: 2 } });
    expect(packed.map((item) => [item.task.retries, item.task.userPriority])).toEqual([
      [3, 2],
      [1, 2],
    ]);
  });

  test('with a cycle is refused with the names on the cycle', () => {
    const graph = {
      start: task(inc, ref('a')),
      a: task(inc, ref('b')),
      b: task(add, ref('c'), 1),
      c: task(inc, ref('a')),
    };
    expect(() => pack(graph, 'start')).toThrow(
      expect.objectContaining({
        code: 'ERR_GRAPH_CYCLE',
        message: 'the graph has a cycle: a -> b -> c -> a',
        data: { cycle: ['a', 'b', 'c', 'a'] },
      }),
    );
  });

  test('with a task that depends on itself is refused', () => {
    expect(() => pack({ a: task(inc, ref('a')) }, 'a')).toThrow('a -> a');
  });

  test('with a chain longer than the call stack is packed', () => {
    const graph: Record<string, Graph[string]> = { 'step-0': task(inc, 0) };
    for (let step = 1; step < 20_000; step++) {
      graph[`step-${step}`] = task(inc, ref(`step-${step - 1}`));
    }
    expect(pack(graph, 'step-19999')).toHaveLength(20_000);
  });

  test('with a missing dependency is refused with the task and the key', () => {
    expect(() => pack({ a: task(inc, ref('nowhere')) }, 'a')).toThrow(
      expect.objectContaining({
        code: 'ERR_GRAPH_INVALID',
        data: { task: 'a', missing: 'nowhere' },
      }),
    );
  });

  test('may refer to a future that the client holds', () => {
    const packed = packGraph({ b: task(inc, ref('a')) }, ['b'], {
      ...alone,
      isKnown: (key) => key === 'a',
    });
    expect(packed.map((item) => item.task.dependencies)).toEqual([['a']]);
  });

  test('without the requested key is refused', () => {
    expect(() => pack({ a: task(inc, 1) }, 'b')).toThrow(
      'the requested key "b" is not in the graph',
    );
  });

  test('with something else than tasks is refused', () => {
    const graph = { a: 5 } as unknown as Graph;
    expect(() => pack(graph, 'a')).toThrow(expect.objectContaining({ code: 'ERR_GRAPH_INVALID' }));
  });

  test('with an argument that cannot be serialised is refused with task and path', () => {
    const graph = { a: task(total, [1, (() => 2) as unknown as number]) };
    expect(() => pack(graph, 'a')).toThrow(
      expect.objectContaining({
        code: 'ERR_NOT_SERIALISABLE',
        message: expect.stringMatching(/^task "a": arguments\[0\]\[1\] is a function/) as string,
      }),
    );
  });

  test('key of a wrong type is refused', () => {
    expect(() => ref(5 as unknown as string)).toThrow('a key must be a string, got number');
    expect(() => pack({ '': task(inc, 1) }, '')).toThrow('a key must have 1 to 8192 characters');
  });

  test('option that makes no sense is refused', () => {
    expect(() => task(inc, 1).with({ retries: -1 })).toThrow('retries must be a whole');
    expect(() => task(inc, 1).with({ resources: { GPU: NaN } })).toThrow('resources.GPU');
    expect(() => task(inc, 1).with({ workers: [] })).toThrow('workers must be a list');
    const misspelt = { retrys: 3 } as object;
    expect(() => task(inc, 1).with(misspelt)).toThrow(
      'retrys is not known; did you mean "retries"?',
    );
  });
});
