import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import {
  asCompleted,
  type Client,
  type Future,
  ref,
  task,
  wait,
} from '../../../adapters/client/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import type { YardmasterError } from '../../../core/api/index.ts';
import {
  add,
  bytes,
  calls,
  count,
  describe as describeOrder,
  fail,
  flaky,
  giveFunction,
  concat,
  nothing,
  inc,
  never,
  slow,
  throwText,
  total,
} from './tasks.ts';
import type { TaskFunctionOf } from '../../../adapters/tasks/index.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

let cluster: LocalCluster;
let client: Client;

beforeAll(async () => {
  cluster = await LocalCluster.start({
    mode: 'inline',
    workers: 2,
    config: { scheduler: { validate: true } },
  });
  client = await cluster.client();
});
afterAll(() => cluster.close());

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe('results', () => {
  test('come from tasks that take the results of others', async () => {
    const one = client.submit(inc, 0);
    const two = client.submit(add, one, 1);
    expect(await client.submit(total, [one, two, 3]).result()).toBe(6);
  });

  test('may be used inside objects and Maps of arguments', async () => {
    const amounts = new Map([
      ['apples', client.submit(inc, 4)],
      ['pears', client.submit(inc, 1)],
    ]);
    const text = client.submit(describeOrder, {
      name: client.submit(concat, 'or', 'der'),
      amounts,
    });
    expect(await text.result()).toBe('order: apples,5 pears,2');
  });

  test('of a map come in the order of the items', async () => {
    const futures = client.map(add, [1, 2, 3], [10, 20, 30]);
    expect(await client.gather(futures)).toEqual([11, 22, 33]);
  });

  test('are gathered in any structure', async () => {
    const [a, b] = [client.submit(inc, 1), client.submit(inc, 2)];
    const gathered = await client.gather({ a, list: [b, 'text'], map: new Map([['a', a]]) });
    expect(gathered).toEqual({ a: 2, list: [3, 'text'], map: new Map([['a', 2]]) });
  });

  test('can be fetched through the scheduler', async () => {
    expect(await client.gather([client.submit(bytes, 3)], { direct: false })).toEqual([
      new Uint8Array(3),
    ]);
  });

  test('of functions that return nothing are undefined', async () => {
    expect(await client.gather([client.submit(nothing)])).toEqual([undefined]);
  });

  test('of equal calls are computed once while one of them is held', async () => {
    calls.clear();
    const [first, second] = [client.submit(count, 'shared'), client.submit(count, 'shared')];
    expect(await client.gather([first, second])).toEqual([1, 1]);
    const impure = client.with({ pure: false });
    expect(await impure.submit(count, 'shared').result()).toBe(2);
  });

  test('of hundreds of tasks can be inputs of one', async () => {
    const futures = client.map(
      inc,
      Array.from({ length: 300 }, (_, index) => index),
    );
    expect(await client.submit(total, futures).result()).toBe(45_150);
  });
});

describe('graphs', () => {
  test('give the requested results in their order', async () => {
    const graph = {
      a: task(inc, 1),
      b: task(add, ref('a'), 10),
      c: task(total, [ref('a'), ref('b')]),
    };
    const [c, a] = client.compute(graph, ['c', 'a']);
    expect(await client.gather([c, a])).toEqual([14, 2]);
    expect(await client.compute(graph, 'b').result()).toBe(12);
  });

  test('refuse a key that means something else in a graph that is still held', async () => {
    const held = client.compute({ inner: task(inc, 1), outer: task(inc, ref('inner')) }, 'outer');
    const other = { inner: task(inc, 2), outer2: task(inc, ref('inner')) };
    expect(() => client.compute(other, 'outer2')).toThrow('the key "inner" is taken');
    expect(await held.result()).toBe(3);
    held.release();
    expect(await client.compute(other, 'outer2').result()).toBe(4);
  });

  test('may use futures that exist', async () => {
    const future = client.submit(inc, 1);
    expect(await client.compute({ x: task(inc, future) }, 'x').result()).toBe(3);
  });
});

describe('failures', () => {
  test('arrive as the worker threw them', async () => {
    const future = client.submit(fail, 'no such shelf');
    const error = await future.result().catch((thrown: unknown) => thrown as YardmasterError);
    expect(error).toMatchObject({
      name: 'RangeError',
      message: 'no such shelf',
      code: 'E_TEST',
      data: { shelf: 7, key: future.key, blame: future.key },
      cause: { message: 'the deeper reason' },
    });
    expect((error as Error).stack).toContain('tasks.ts');
    expect(future.status).toBe('error');
  });

  test('spread to dependents, with the task to blame', async () => {
    const culprit = client.submit(fail, 'spreading');
    const dependent = client.submit(inc, culprit);
    await expect(dependent.result()).rejects.toMatchObject({
      message: 'spreading',
      data: { key: dependent.key, blame: culprit.key },
    });
  });

  test('that are not errors are distinguished', async () => {
    await expect(client.submit(throwText, 'just text').result()).rejects.toMatchObject({
      name: 'NonError',
      data: { thrown: 'just text' },
    });
  });

  test('of a result that cannot be serialised name the place', async () => {
    await expect(client.submit(giveFunction).result()).rejects.toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
      message: expect.stringContaining('result.deep[0]') as string,
    });
  });

  test('of a function that the module lacks name it', async () => {
    const { double } = tasks;
    const gone = Object.assign(() => 1, {}) as unknown as TaskFunctionOf<(x: number) => number>;
    Object.defineProperties(gone, {
      ...Object.getOwnPropertyDescriptors(double),
      name: { value: 'doubel' },
    });
    for (const symbol of Object.getOwnPropertySymbols(double)) {
      Object.defineProperty(gone, symbol, { value: true });
    }
    await expect(client.submit(gone, 1).result()).rejects.toMatchObject({
      code: 'ERR_FUNCTION_MISSING',
      message: expect.stringContaining('did you mean "double"?') as string,
    });
  });

  test('are left out of what is gathered when that is asked for', async () => {
    const futures = [client.submit(inc, 1), client.submit(fail, 'left out'), client.submit(inc, 2)];
    expect(await client.gather(futures, { errors: 'skip' })).toEqual([2, 3]);
    await expect(client.gather(futures)).rejects.toThrow('left out');
  });

  test('are tried again as often as it is allowed', async () => {
    calls.clear();
    const patient = client.with({ retries: 2 });
    expect(await patient.submit(flaky, 'patient', 2).result()).toBe(3);
    await expect(patient.submit(flaky, 'hopeless', 5).result()).rejects.toThrow('attempt 3');
  });

  test('can be retried by hand', async () => {
    calls.clear();
    const future = client.submit(flaky, 'by hand', 1);
    const dependent = client.submit(inc, future);
    expect(await dependent.error()).toMatchObject({ message: 'attempt 1 of by hand' });
    client.retry(dependent);
    expect(await dependent.result()).toBe(3);
    expect(await future.error()).toBeUndefined();
  });
});

describe('waiting', () => {
  test('for the first leaves the others alone', async () => {
    const futures = [client.submit(never, 'first'), client.submit(inc, 41)];
    const { done, notDone } = await wait(futures, { returnWhen: 'first' });
    expect([done, notDone]).toEqual([[futures[1]], [futures[0]]]);
    client.cancel(futures);
  });

  test('takes futures as they get done, each once', async () => {
    const slowest = client.submit(slow, 60, 1);
    const failing = client.submit(fail, 'counts as done');
    const order: Future<number>[] = [];
    for await (const future of asCompleted([slowest, failing, slowest])) order.push(future);
    expect(order).toEqual([failing, slowest]);
  });
});

describe('cancelling', () => {
  test('aborts a running task', async () => {
    calls.clear();
    const future = client.submit(never, 'told');
    await until(() => calls.get('told') === 1);
    future.cancel({ reason: 'no time' });
    await expect(future.result()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    // The worker is free again.
    expect(await client.gather(client.map(inc, [100, 101, 102, 103]))).toHaveLength(4);
  });
});

describe('scattered values', () => {
  test('go to workers in turn, and can be arguments', async () => {
    const futures = await client.scatter([1, 2, 3, 4]);
    // Asked first: one of them has all when they have been arguments.
    const holders = await client.whoHas(futures);
    expect(new Set([...holders.values()].flat()).size).toBe(2);
    expect([...holders.values()].every((workers) => workers.length >= 1)).toBe(true);
    expect(await client.submit(total, futures).result()).toBe(10);
  });

  test('have the names they are given', async () => {
    const named = await client.scatter({ 'my-table': { rows: 3 } }, { broadcast: true });
    expect(named['my-table'].key).toBe('my-table');
    expect(await named['my-table'].result()).toEqual({ rows: 3 });
    expect((await client.whoHas(named)).get('my-table')).toHaveLength(2);
  });

  test('go to the requested workers', async () => {
    const [address] = [...cluster.scheduler.cluster.workers.keys()];
    const [future] = await client.scatter([new Float64Array(5)], { workers: [address!] });
    expect((await client.whoHas(future)).get(future!.key)).toEqual([address]);
    await expect(
      client.scatter([0], { workers: ['tcp://nobody:1'], timeoutMs: 1 }),
    ).rejects.toMatchObject({ code: 'ERR_NO_WORKER' });
  });

  test('of the same content are one', async () => {
    const [one] = await client.scatter(['same']);
    const [two] = await client.scatter(['same']);
    const [three] = await client.scatter(['same'], { hash: false });
    expect(two!.key).toBe(one!.key);
    expect(three!.key).not.toBe(one!.key);
  });
});

describe('memory', () => {
  test('is freed on the workers when futures are released', async () => {
    const future = client.with({ key: 'large' }).submit(bytes, 10_000);
    await future.settled();
    expect(cluster.scheduler.cluster.tasks.has('large')).toBe(true);
    future.release();
    await until(() => !cluster.scheduler.cluster.tasks.has('large'));
    const held = [...cluster.scheduler.cluster.workers.values()].flatMap(({ hasWhat }) => [
      ...hasWhat,
    ]);
    expect(held.map(({ key }) => key)).not.toContain('large');
  });

  test('is freed when futures become garbage', async () => {
    const { setFlagsFromString } = await import('node:v8');
    const { runInNewContext } = await import('node:vm');
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const forgetful = async (): Promise<void> => {
      // Releasing one explicitly leaves the other one watched.
      const released = client.with({ key: 'by-hand' }).submit(bytes, 10_000);
      await client.with({ key: 'garbage' }).submit(bytes, 10_000).result();
      released.release();
    };
    await forgetful();
    await until(() => {
      collect();
      return !cluster.scheduler.cluster.tasks.has('garbage');
    });
    expect(cluster.scheduler.cluster.tasks.has('garbage')).toBe(false);
  });
});

describe('workers', () => {
  test('that leave take results along, which are computed again', async () => {
    const clock = new SystemClock();
    const own = await LocalCluster.start({
      mode: 'inline',
      workers: 2,
      clock,
      transport: new InMemoryTransport(clock),
      config: { scheduler: { validate: true } },
    });
    try {
      const itsClient = await own.client();
      const futures = itsClient.map(inc, [1, 2, 3, 4, 5, 6]);
      await wait(futures);
      await own.scaleTo(1);
      expect(own.workerCount).toBe(1);
      expect(await itsClient.gather(futures)).toEqual([2, 3, 4, 5, 6, 7]);
      await own.scaleTo(0);
      const waiting = itsClient.submit(inc, 100);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(waiting.status).toBe('pending');
      await own.scaleTo(1);
      expect(await waiting.result()).toBe(101);
    } finally {
      await own.close();
    }
  });
});
