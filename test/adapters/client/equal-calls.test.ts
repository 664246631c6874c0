import { getEventListeners } from 'node:events';
import { beforeEach, expect, test } from 'vitest';
import { asCompleted, type Future, task } from '../../../adapters/client/index.ts';
import type { TaskView } from '../../../core/api/index.ts';
import { failsFor, watch } from './retry-tasks.ts';
import { calls, count, deaf, gates } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

// Each future is its own want: what ends one of them leaves the others of its key alone.

let cluster: VirtualCluster;
beforeEach(async () => {
  calls.clear();
  gates.clear();
  cluster = await startCluster(1);
});
const known = (key: string): boolean => cluster.local.scheduler.cluster.tasks.has(key);

test('cancel() of one future leaves an equal one its result', async () => {
  const [first, second] = [cluster.client.submit(count, 'a'), cluster.client.submit(count, 'a')];
  second.cancel();
  expect(second.status).toBe('cancelled');
  expect(first.status).toBe('pending');
  await cluster.passing(first.result());
  expect(calls.size).toBe(1);
});

test('the first future may be cancelled as well as the second', async () => {
  const [first, second] = [cluster.client.submit(count, 'a'), cluster.client.submit(count, 'a')];
  first.cancel();
  await cluster.passing(second.result());
  expect(first.status).toBe('cancelled');
  expect(cluster.client.submit(count, 'a').status).toBe('finished');
});

test('a signal ends the call that it was given to', async () => {
  const { client } = cluster;
  const request = new AbortController();
  const first = client.submit(deaf, 'a');
  const second = client.with({ signal: request.signal }).submit(deaf, 'a');
  await cluster.until(() => gates.has('a'));
  request.abort();
  await expect(cluster.passing(second.result())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  gates.get('a')!();
  expect(await cluster.passing(first.result())).toBe('done');
});

test.each(['before', 'after'])('a signal that is aborted %s a call is its cause', async (when) => {
  const request = new AbortController();
  const reason = new Error('the visitor left');
  if (when === 'before') request.abort(reason);
  const call = cluster.client.with({ signal: request.signal }).call(deaf, 'abandoned');
  request.abort(reason);
  await expect(call).rejects.toMatchObject({ code: 'ERR_CANCELLED', cause: reason });
});

test('a signal that is aborted while a call is made ends that call', async () => {
  const request = new AbortController();
  const limit = () => {
    request.abort();
    return { name: 'left', max: 1 };
  };
  const call = cluster.client.with({ signal: request.signal, limit }).submit(deaf, 'left');
  await expect(cluster.passing(call.result())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
});

test('a signal has one listener for all of its calls, and none when they are over', async () => {
  const { client } = cluster;
  const { signal } = new AbortController();
  const bound = client.with({ signal });
  const futures = Array.from({ length: 20 }, (_, at) => bound.submit(deaf, `call-${at}`));
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  client.cancel(futures);
  await Promise.allSettled(futures.map((future) => future.result()));
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test.each(['a deadline', 'a signal'])(
  '%s leaves alone what depends on the task in another call',
  async (limit) => {
    const { client } = cluster;
    const request = new AbortController();
    const limits = limit === 'a signal' ? { signal: request.signal } : { deadlineMs: 50 };
    const first = client.with(limits).submit(deaf, 'a');
    const second = client.submit(count, first);
    await cluster.until(() => gates.has('a'));
    request.abort();
    await expect(cluster.passing(first.result())).rejects.toThrow();
    gates.get('a')!();
    await expect(cluster.passing(second.result())).resolves.toBeDefined();
  },
);

test('a deadline ends the call that it was given to', async () => {
  const { client } = cluster;
  const first = client.submit(deaf, 'a');
  const second = client.with({ deadlineMs: 50 }).submit(deaf, 'a');
  await expect(cluster.passing(second.result())).rejects.toMatchObject({
    code: 'ERR_TASK_TIMEOUT',
  });
  expect(first.status).toBe('pending');
  gates.get('a')!();
  expect(await cluster.passing(first.result())).toBe('done');
});

test('a graph and a clone are wants of their own', async () => {
  const { client } = cluster;
  const first = client.submit(deaf, 'a');
  const copy = first.clone();
  first.cancel();
  await cluster.until(() => gates.has('a'));
  expect(copy.status).toBe('pending');
  const both = cluster.client.gather([copy, copy.clone()]);
  gates.get('a')!();
  expect(await cluster.passing(both)).toEqual(['done', 'done']);
  expect(first.clone().status).toBe('cancelled');
});

test('the task ends when its last want does, and when one is cancelled by force', async () => {
  const { client } = cluster;
  const [first, second] = [client.submit(deaf, 'a'), client.submit(deaf, 'a')];
  await cluster.until(() => gates.has('a'));
  first.cancel();
  second.release();
  await cluster.until(() => !known(first.key));
  const [third, fourth] = [client.submit(deaf, 'b'), client.submit(deaf, 'b')];
  third.cancel({ force: true });
  expect([third.status, fourth.status]).toEqual(['cancelled', 'cancelled']);
  gates.get('a')!();
  await cluster.until(() => !known(third.key));
});

test('the priority that a call has raised outlives it', async () => {
  const { client } = cluster;
  const labels = 'abcdefgh'.split('');
  const futures = client.map(count, labels);
  client.with({ priority: 2 }).submit(count, 'g').cancel();
  futures[6]!.clone().release();
  await cluster.passing(client.gather(futures));
  expect([...calls.keys()].join('')).toMatch(/^(gab|agb|abg)cdefh$/);
});

test('a graph that names a task again makes its time limit more patient, never stricter', async () => {
  const { client } = cluster;
  const submit = (options: { timeoutMs?: number }): void => {
    futures.push(client.compute({ late: task(deaf, 'late').with(options) }, 'late'));
  };
  const futures: unknown[] = [client.submit(deaf, 'first')];
  const seen: unknown[] = [];
  for (const timeoutMs of [100, 300, 200, undefined, 50]) {
    submit(timeoutMs === undefined ? {} : { timeoutMs });
    await cluster.passing(client.whoHas(futures));
    seen.push(cluster.local.scheduler.cluster.tasks.get('late')?.annotations?.['timeoutMs']);
  }
  expect(seen).toEqual([100, 300, 300, undefined, undefined]);
  client.cancel(futures);
  for (const open of gates.values()) open();
});

test('an equal call makes the time limit of a run more patient while it runs, never stricter', async () => {
  const { client, clock } = cluster;
  const late = (ms: number): Promise<void> =>
    cluster.passing(clock.advanceToAsync(clock.nowMs() + ms));
  const first = client.with({ timeoutMs: 100 }).submit(deaf, 'a');
  await cluster.until(() => gates.has('a'));
  const second = client.with({ timeoutMs: 1000 }).submit(deaf, 'a');
  const third = client.with({ timeoutMs: 50 }).submit(deaf, 'a');
  await late(150);
  expect([first.status, second.status, third.status]).toEqual(['pending', 'pending', 'pending']);
  client.submit(deaf, 'a').release();
  await cluster.passing(client.whoHas([first]));
  await late(5000);
  expect(first.status).toBe('pending');
  gates.get('a')!();
  expect(await cluster.passing(first.result())).toBe('done');
});

test('another client makes a task more patient and more urgent as well', async () => {
  const { client, local } = cluster;
  const other = await cluster.passing(cluster.local.client());
  const task = (): TaskView | undefined => local.scheduler.cluster.tasks.get(future.key);
  client.submit(deaf, 'before');
  client.submit(deaf, 'beside');
  const future = client.with({ timeoutMs: 100, priority: -1 }).submit(count, 'a');
  await cluster.until(() => task() !== undefined);
  other.with({ timeoutMs: 300, priority: 3 }).submit(count, 'a');
  other.with({ priority: 1 }).submit(count, 'a');
  await cluster.until(() => task()?.annotations?.['timeoutMs'] === undefined);
  expect(task()?.negatedUserPriority).toBe(-3);
  for (const open of gates.values()) open();
  client.cancel(future, { force: true });
});

test('an equal call that crosses a forced cancellation is cancelled with the others, once', async () => {
  const { client } = cluster;
  const other = await cluster.passing(cluster.local.client());
  const first = client.with({ timeoutMs: 100 }).submit(deaf, 'a');
  await cluster.until(() => gates.has('a'));
  const foreign = other.submit(deaf, 'a');
  await cluster.passing(other.whoHas([foreign]));
  foreign.cancel({ force: true });
  const second = client.with({ timeoutMs: 500 }).submit(deaf, 'a');
  for (const future of [first, second]) {
    await expect(cluster.passing(future.result())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  }
  const third = client.submit(deaf, 'a');
  gates.get('a')!();
  await cluster.passing(client.whoHas([third]));
  expect(third.status).not.toBe('cancelled');
  gates.get('a')!();
  expect(await cluster.passing(third.result())).toBe('done');
});

test('asCompleted gives each of several futures of one key, also after one was cancelled', async () => {
  const { client } = cluster;
  const [first, second, third] = [1, 2, 3].map(() => client.submit(count, 'a')) as [
    Future<number>,
    Future<number>,
    Future<number>,
  ];
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const future of asCompleted([first, second, third, first])) seen.push(future);
  })();
  second.cancel();
  await cluster.passing(reading);
  expect(seen[0]).toBe(second);
  expect(new Set(seen)).toEqual(new Set([first, second, third]));
  expect(seen).toHaveLength(3);
});

test('a failure and a retry reach every future of the key', async () => {
  const { client } = cluster;
  watch.nowMs = () => cluster.clock.nowMs();
  const futures = [1, 2].map(() => client.submit(failsFor, 'equal', 1, 'E_BUSY'));
  const statuses = (): string[] => futures.map(({ status }) => status);
  await cluster.passing(Promise.all(futures.map((future) => future.settled())));
  expect(statuses()).toEqual(['error', 'error']);
  client.retry(futures);
  expect(statuses()).toEqual(['pending', 'pending']);
  expect(await cluster.passing(client.gather(futures))).toEqual(['after 2', 'after 2']);
});

test('whatever ends equal calls, each settles on its own and nothing is held at the end', async () => {
  const { client } = cluster;
  let seed = 27;
  const draw = (n: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 16) % n;
  };
  for (let round = 0; round < 60; round++) {
    const wants = Array.from({ length: 8 }, () => {
      const request = new AbortController();
      const future = client.with({ signal: request.signal }).submit(count, `k${draw(3)}`);
      return { future, request, isKept: true };
    });
    for (const want of wants) {
      const way = draw(5);
      if (way > 2) continue;
      want.isKept = false;
      if (way === 0) want.future.cancel();
      else if (way === 1) want.request.abort();
      else want.future.release();
      if (draw(4) === 0) await cluster.passing(Promise.resolve());
    }
    for (const { future, isKept } of wants) {
      if (isKept) await cluster.passing(future.result());
      else expect(future.done).toBe(true);
      future.release();
    }
  }
  await cluster.until(() => cluster.local.scheduler.cluster.tasks.size === 0);
});
