import { describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { type Client, ref, task } from '../../../adapters/client/index.ts';
import type { TaskFunction } from '../../../adapters/tasks/index.ts';
import { eachInKeptFolder } from './kept.ts';

const { double, sum } = (await import(
  new URL('./fixtures/kept-tasks.mjs', import.meta.url).href
)) as {
  readonly double: TaskFunction<[log: string, value: number], number>;
  readonly sum: TaskFunction<[log: string, ...values: number[]], number>;
};

let log: string;
let store: string;
eachInKeptFolder((kept) => ({ log, store } = kept));

/** Runs with two clients of a new cluster. */
async function inCluster<T>(run: (one: Client, two: Client) => Promise<T>): Promise<T> {
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
  const [one, two] = [await cluster.client(), await cluster.client()];
  return await run(one, two);
}

const persist = (): { persist: true; resultStore: string } => ({
  persist: true,
  resultStore: store,
});
const top = (client: Pick<Client, 'compute'>, x: number) => {
  const graph = {
    input: task(double, log, x),
    middle: task(sum, log, ref<number>('input')),
    top: task(sum, log, ref<number>('middle'), 1),
  };
  return client.compute(graph, 'top');
};
const keep = (...values: number[]) =>
  inCluster(async (one) => {
    for (const x of values) {
      const future = top(one.with(persist()), x);
      await future.result();
      future.release();
      // The key is free when the scheduler has heard of it.
      await one.identity();
    }
  });
const taken = { code: 'ERR_KEY_TAKEN' };

describe('a result that was read, whose inputs are not in the cluster', () => {
  test('is not taken for that of a graph of another client with other inputs under the same names', async () => {
    await keep(1);
    await inCluster(async (one, two) => {
      expect(await top(one.with(persist()), 1).result()).toBe(3);
      await expect(top(two.with(persist()), 5).result()).rejects.toMatchObject(taken);
      await expect(top(two, 5).result()).rejects.toMatchObject(taken);
    });
  });

  test('is not taken for another one that was kept', async () => {
    await keep(1, 5);
    await inCluster(async (one, two) => {
      expect(await top(one.with(persist()), 1).result()).toBe(3);
      await expect(top(two.with(persist()), 5).result()).rejects.toMatchObject(taken);
    });
  });

  test('is not found in one that was computed without a store', async () => {
    await keep(5);
    await inCluster(async (one, two) => {
      expect(await top(one, 1).result()).toBe(3);
      await expect(top(two.with(persist()), 5).result()).rejects.toMatchObject(taken);
    });
  });

  test('is shared with the same graph, with a store and without one', async () => {
    await keep(1);
    await inCluster(async (one, two) => {
      const futures = [top(one.with(persist()), 1), top(two.with(persist()), 1), top(two, 1)];
      expect(await Promise.all(futures.map((future) => future.result()))).toEqual([3, 3, 3]);
    });
  });

  test('is shared with the same graph that was computed before', async () => {
    await keep(1);
    await inCluster(async (one, two) => {
      const computed = top(one, 1);
      await computed.result();
      expect(await top(two.with(persist()), 1).result()).toBe(3);
    });
  });
});

describe('a call with an input of a name that stands for something else by now', () => {
  const call = (client: Client, x: number, key?: string) => {
    const input = client.with({ key: 'input', ...persist() }).submit(double, log, x);
    try {
      return client
        .with({ ...persist(), ...(key === undefined ? {} : { key }) })
        .submit(sum, log, input);
    } finally {
      input.release();
    }
  };
  const again = (key?: string) => async (client: Client) => {
    const first = call(client, 1, key);
    expect(await first.result()).toBe(2);
    await client.identity();
    expect(() => call(client, 5, key)).toThrow(expect.objectContaining(taken));
    first.release();
    await client.identity();
    expect(await call(client, 5, key).result()).toBe(10);
  };

  test.each([['named'], [undefined]])('is refused while a result is held: %s', async (key) => {
    await inCluster(async (client) => {
      await call(client, 1, key).result();
    });
    await inCluster(again(key));
  });

  test('is refused with data of another value, too', async () => {
    const submit = async (client: Client, x: number) => {
      const { data } = await client.scatter({ data: x });
      try {
        return client.with(persist()).submit(sum, log, data);
      } finally {
        data.release();
      }
    };
    await inCluster(async (client) => {
      await (await submit(client, 1)).result();
    });
    await inCluster(async (client) => {
      const first = await submit(client, 1);
      expect(await first.result()).toBe(1);
      await client.identity();
      await expect(submit(client, 5)).rejects.toMatchObject(taken);
    });
  });
});
