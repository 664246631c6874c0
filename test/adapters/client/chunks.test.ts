import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { all, type Client } from '../../../adapters/client/index.ts';
import { ChunkSize } from '../../../adapters/client/chunks.ts';
import { eventually } from '../../kit/eventually.ts';
import { add, calls, count, failOdd, flaky, functionOfOdd, inc, never, slow } from './tasks.ts';

async function listOf<T>(results: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const result of results) list.push(result);
  return list;
}

const numbers = (length: number): number[] => Array.from({ length }, (_, index) => index);

describe('calls in chunks', () => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());
  // Files of tests share the module, and the labels of others are not to be counted.
  beforeEach(() => calls.clear());
  const chunks = (): string[] =>
    [...cluster.scheduler.cluster.tasks.keys()].filter((key) => key.includes('-chunk-'));
  const forgotten = (): Promise<void> =>
    eventually(() => {
      expect(chunks()).toEqual([]);
    });

  test('a map in chunks gives single results in the order of the items', async () => {
    const made = new Set<string>();
    const results: number[] = [];
    for await (const result of client.map(inc, numbers(1000), { chunk: 100 })) {
      for (const key of chunks()) made.add(key);
      results.push(result);
    }
    expect(results).toEqual(numbers(1000).map((value) => value + 1));
    expect(made.size).toBe(10);
    await forgotten();
  });

  test('several columns, constants, futures and promises are arguments as without chunks', async () => {
    const three = client.submit(inc, 2);
    expect(await listOf(client.map(add, [1, three, 5], all(10), { chunk: 2 }))).toEqual([
      11, 13, 15,
    ]);
    expect(await listOf(client.map(slow, all(1), [1, 2, 3], { chunk: 3 }))).toEqual([1, 2, 3]);
  });

  test('a chunk and a call with the same arguments are different tasks', async () => {
    const results = client.map(count, [['a', 'b'] as unknown as string], { chunk: 1 });
    expect(await listOf(results)).toEqual([1]);
    expect(await listOf(client.map(count, ['a', 'b'], { chunk: 2 }))).toEqual([1, 1]);
  });

  test('the error of an item has its place, and comes after the results before it', async () => {
    const results: number[] = [];
    const read = async (): Promise<void> => {
      for await (const each of client.map(failOdd, [0, 2, 4, 6, 7, 8], { chunk: 2 })) {
        results.push(each);
      }
    };
    await expect(read()).rejects.toMatchObject({ message: '7 is odd', data: { index: 4 } });
    expect(results).toEqual([0, 2, 4, 6]);
    await forgotten();
  });

  test('errors can come in the place of results, and other items of the chunk are not concerned', async () => {
    const results = await listOf(client.map(failOdd, numbers(4), { chunk: 4, errors: 'return' }));
    expect(results).toMatchObject([0, { message: '1 is odd' }, 2, { data: { index: 3 } }]);
    const single = async function* (): AsyncGenerator<number> {
      yield* await Promise.resolve(numbers(2));
    };
    const streamed = await listOf(client.map(failOdd, single(), { errors: 'return' }));
    expect(streamed).toMatchObject([0, { message: '1 is odd' }]);
  });

  test.each([3, 'auto'] as const)(
    'with chunk %s a future that fails does so for its item alone',
    async (chunk) => {
      const failed = client.submit(failOdd, 1);
      const results = client.map(inc, [0, failed, 2, 3], { chunk, errors: 'return' });
      expect(await listOf(results)).toMatchObject([1, { message: '1 is odd' }, 3, 4]);
    },
  );

  test('a future that is cancelled ends its item alone', async () => {
    const left = client.submit(never, 'left');
    const results = client.map(count, ['x', left, 'z'], { chunk: 3, errors: 'return' });
    const all = listOf(results);
    await eventually(() => {
      expect(cluster.scheduler.cluster.tasks.get(left.key)?.dependents).toHaveLength(1);
    });
    left.cancel();
    expect(await all).toMatchObject([1, { code: 'ERR_CANCELLED' }, 1]);
  });

  test('a future that all items share is an input of their chunk', async () => {
    const shared = client.submit(inc, 9);
    const made = new Set<string>();
    for await (const sum of client.map(add, numbers(6), all(shared), { chunk: 3 })) {
      expect(sum).toBeGreaterThan(9);
      for (const key of chunks()) made.add(key);
    }
    expect(made.size).toBe(2);
  });

  test('a result that cannot be serialised fails its item alone', async () => {
    const results = client.map(functionOfOdd, numbers(4), { chunk: 4, errors: 'return' });
    expect(await listOf(results)).toMatchObject([
      0,
      { message: expect.stringContaining('cannot be serialised') as string, data: { index: 1 } },
      2,
      { data: { index: 3 } },
    ]);
  });

  test('an item that fails is tried again by itself', async () => {
    const careful = client.with({ retries: 2 });
    const labels = ['retried-a', 'retried-b'];
    expect(await listOf(careful.map(flaky, labels, all(2), { chunk: 2 }))).toEqual([3, 3]);
    expect(labels.map((label) => calls.get(label))).toEqual([3, 3]);
    const once = client.with({ retries: 1 }).map(flaky, ['retried-c'], all(2), { chunk: 'auto' });
    await expect(listOf(once)).rejects.toThrow('attempt 2 of retried-c');
  });

  test('forEach in chunks counts the items', async () => {
    expect(await client.forEach(inc, numbers(5000), { chunk: 'auto' })).toBe(5000);
    await expect(client.forEach(failOdd, [0, 1], { chunk: 2 })).rejects.toThrow('1 is odd');
  });

  test('chunks of automatic size do not wait for a source that waits for its results', async () => {
    let answer: (value: number) => void = () => undefined;
    const source = async function* (): AsyncGenerator<number> {
      for (let value = 0; value < 300;) {
        const next = new Promise<number>((resolve) => (answer = resolve));
        yield value;
        value = await next;
      }
    };
    const results: number[] = [];
    for await (const result of client.map(inc, source(), { chunk: 'auto' })) {
      results.push(result);
      answer(result);
    }
    expect(results).toHaveLength(300);
  });

  test('a chunk that is left is cancelled, and its source closed', async () => {
    for await (const result of client.map(inc, numbers(1000), { chunk: 10, inFlight: 3 })) {
      if (result === 5) break;
    }
    await forgotten();
  });

  test('options that a chunk cannot have are refused', () => {
    const kept = client.with({ persist: true, resultStore: './kept' });
    expect(() => kept.map(inc, [1], { chunk: 'auto' })).toThrow(
      /chunk must be a number with persist/,
    );
    const limited = client.with({ limit: () => ({ name: 'host', max: 2 }) });
    expect(() => limited.map(inc, [1], { chunk: 2 })).toThrow(/a function finds the limit/);
    expect(() => client.map(inc, [1], { chunk: 0 })).toThrow(
      /chunk must be a whole number above 0/,
    );
  });
});

describe('the automatic size of chunks', () => {
  const measured = (itemMs: number, itemBytes = 8, turns = 8): number => {
    const size = new ChunkSize('auto');
    for (let turn = 0; turn < turns; turn++) {
      const items = size.count;
      const result = { durationMs: items * itemMs, nbytes: items * itemBytes };
      size.note(items, { values: [], failures: [], ...result });
    }
    return size.count;
  };

  test('is that of tasks of about ten milliseconds', () => {
    expect(measured(1)).toBe(10);
    expect(measured(0.01)).toBe(1000);
    expect(measured(50)).toBe(1);
  });

  test('is bounded by the bytes of the items', () => {
    expect(measured(0.001, 100_000)).toBe(10);
  });

  test('grows by steps, because the first measurement is rarely right', () => {
    expect(measured(0.001, 8, 1)).toBe(32);
  });
});
