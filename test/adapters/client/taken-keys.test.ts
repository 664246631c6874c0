import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Client, ref, task } from '../../../adapters/client/index.ts';
import { add, inc, total } from './tasks.ts';
import { inc as incOfAnotherBuild } from './fixtures/another-build.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
let one: Client;
let two: Client;
beforeEach(async () => {
  cluster = await VirtualCluster.start(2);
  one = cluster.client;
  two = await cluster.passing(cluster.local.client());
});
afterEach(() => cluster.close());

const passing = <T>(promise: Promise<T>): Promise<T> => cluster.passing(promise);

describe('a key that another client has given another meaning is refused', () => {
  test('with other arguments, and what needs it; the rest of the graph is computed', async () => {
    const first = one.compute({ a: task(inc, 1), b: task(inc, ref<number>('a')) }, 'b');
    expect(await passing(first.result())).toBe(3);
    const graph = {
      a: task(inc, 10),
      c: task(inc, ref<number>('a')),
      d: task(inc, 100),
    };
    const [a, c, d] = two.compute(graph, ['a', 'c', 'd']);
    await expect(passing(a.result())).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    await expect(passing(a.result())).rejects.toThrow(
      /^the key "a" is taken by a value, or by a task with another function or other arguments, of another client; choose another key or a namespace/,
    );
    await expect(passing(c.result())).rejects.toThrow(
      /^"c" was not submitted: the key "a" is taken/,
    );
    expect(await passing(d.result())).toBe(101);
    expect(await passing(first.result())).toBe(3);
    first.release();
    a.release();
    await cluster.until(() => !cluster.local.scheduler.cluster.tasks.has('a'));
    expect(await passing(two.compute(graph, 'c').result())).toBe(12);
  });

  test('of another build of the program, which has another function under the name', async () => {
    const [old] = one.compute({ report: task(inc, 1) }, ['report']);
    const [young] = two.compute({ report: task(incOfAnotherBuild, 1) }, ['report']);
    expect(await passing(old.result())).toBe(2);
    await expect(passing(young.result())).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    const apart = two
      .with({ namespace: 'two/' })
      .compute({ report: task(incOfAnotherBuild, 1) }, 'report');
    expect(await passing(apart.result())).toBe(1001);
  });

  test('that has the same definition, and inputs under the same names with another', async () => {
    const graphOf = (x: number) => ({
      input: task(inc, x),
      sum: task(total, [ref<number>('input'), 5]),
      top: task(inc, ref<number>('sum')),
    });
    expect(await passing(one.compute(graphOf(1), 'top').result())).toBe(8);
    const known = one.compute(graphOf(1), 'top');
    await passing(known.settled());
    const other = two.compute(graphOf(2), 'top');
    await expect(passing(other.result())).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    expect(await passing(two.compute(graphOf(1), 'top').result())).toBe(8);
    expect(await passing(known.result())).toBe(8);
  });

  test('also given to submit, and where data is under the key', async () => {
    const first = one.with({ key: 'mine' }).submit(inc, 1);
    await passing(first.result());
    const second = two.with({ key: 'mine' }).submit(inc, 2);
    await expect(passing(second.result())).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    const data = await passing(one.scatter({ table: [1, 2, 3] }));
    const third = two.compute({ table: task(inc, 2) }, 'table');
    await expect(passing(third.result())).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    expect(Object.keys(data)).toEqual(['table']);
  });

  test('in large graphs that both submit at once', async () => {
    const names = Array.from({ length: 1010 }, (_, n) => `n${n}`);
    const graphOf = (first: number) => ({
      ...Object.fromEntries(names.map((name, n) => [name, task(add, first, n)] as const)),
      all: task(
        total,
        names.map((name) => ref<number>(name)),
      ),
    });
    const futures = [one, two].map((client, n) => client.compute(graphOf(n), 'all'));
    const settled = await passing(Promise.allSettled(futures.map((future) => future.result())));
    const results = settled.map((end) => (end.status === 'fulfilled' ? end.value : 'refused'));
    const sum = (1010 * 1009) / 2;
    expect([
      [sum, 'refused'],
      ['refused', sum + 1010],
    ]).toContainEqual(results);
    const refused = settled.find(({ status }) => status === 'rejected') as PromiseRejectedResult;
    expect(refused.reason).toMatchObject({ code: 'ERR_KEY_TAKEN' });
    const { tasks } = cluster.local.scheduler.cluster;
    await cluster.until(() => tasks.size === 1011);
    for (const future of futures) future.release();
    await cluster.until(() => tasks.size === 0);
  });
});

describe('a key with the same meaning is shared', () => {
  test('by names, by calls, and whatever the options of the task are', async () => {
    const graph = { a: task(inc, 1), b: task(total, [ref<number>('a'), 3]) };
    const first = one.compute(graph, 'b');
    const second = two.with({ priority: 3, retries: 2 }).compute(graph, 'b');
    expect(await passing(Promise.all([first.result(), second.result()]))).toEqual([5, 5]);
    const calls = [one, two.with({ retries: 5 })].map((client) => client.submit(inc, 7));
    expect(calls[0]?.key).toBe(calls[1]?.key);
    expect(await passing(Promise.all(calls.map((call) => call.result())))).toEqual([8, 8]);
  });

  test('when a number is written in another way', async () => {
    const half = 0.5;
    const first = one.compute({ a: task(add, 3, 4) }, 'a');
    const second = two.compute({ a: task(add, 6 * half, 8 * half) }, 'a');
    expect(await passing(Promise.all([first.result(), second.result()]))).toEqual([7, 7]);
  });
});
