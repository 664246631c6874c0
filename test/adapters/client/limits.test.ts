import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ref, task } from '../../../adapters/client/index.ts';
import type { TaskOptions } from '../../../adapters/client/index.ts';
import { running, visit, watch } from './limit-tasks.ts';
import { calledMs, failsFor, watch as retryWatch } from './retry-tasks.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
beforeAll(async () => {
  cluster = await VirtualCluster.start(2);
  retryWatch.nowMs = () => cluster.clock.nowMs();
  watch.sleep = (ms) => new Promise((resolve) => cluster.clock.setTimer(ms, resolve));
});
afterAll(() => cluster.passing(cluster.local.close()));
beforeEach(() => running.clear());

const urls = (host: string): string[] =>
  Array.from({ length: 9 }, (_, page) => `http://${host}/${page}`);

test('of the tasks with a limit, at most so many run on all workers together', async () => {
  const limited = cluster.client.with({ limit: { name: 'visits', max: 3 } });
  const startMs = cluster.clock.nowMs();
  const all = limited.map(visit, [...urls('a'), ...urls('b')]);
  await cluster.passing(cluster.client.gather(all));
  expect([...running.values()].reduce((sum, { most }) => sum + most, 0)).toBeLessThanOrEqual(6);
  expect(cluster.clock.nowMs() - startMs).toBeGreaterThanOrEqual(600);
});

test('a function finds the limit of each call by its arguments', async () => {
  const polite = cluster.client.with({
    limit: (url: string) => {
      const { host } = new URL(url);
      return host === 'free' ? undefined : { name: host, max: host === 'one' ? 1 : 2 };
    },
  });
  const all = polite.map(visit, [...urls('one'), ...urls('two'), ...urls('free')]);
  await cluster.passing(cluster.client.gather(all));
  const most = [...running].map(([host, count]) => [host, count.most]);
  expect(Object.fromEntries(most)).toEqual({ one: 1, two: 2, free: 9 });
});

test('tasks of a graph have limits, too', async () => {
  const limit = { name: 'graph', max: 1 };
  const [a, b] = ['http://graph/a', 'http://graph/b'].map((url) =>
    task(visit, url).with({ limit }),
  );
  const graph = { a: a!, b: b!, c: task(visit, ref<string>('a')).with({ limit }) };
  await cluster.passing(cluster.client.gather(cluster.client.compute(graph, ['b', 'c'])));
  expect(running.get('graph')?.most).toBe(1);
});

test('a call for which there is no room in the queue of its limit fails at once, with a code', async () => {
  const limited = cluster.client.with({ limit: { name: 'short', max: 1, maxQueued: 2 } });
  const all = limited.map(visit, urls('short').slice(0, 5));
  const ends = await cluster.passing(Promise.allSettled(all.map((each) => each.result())));
  expect(ends.map(({ status }) => status === 'fulfilled')).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
  expect(ends.at(-1)).toMatchObject({
    reason: { code: 'ERR_QUEUE_FULL', data: { limit: 'short', queuedCount: 2, max: 1 } },
  });
});

test('a call that was refused is made when it is made again, also while its first future is held', async () => {
  const limited = cluster.client.with({ limit: { name: 'again', max: 1, maxQueued: 0 } });
  const [a, b] = urls('again') as [string, string];
  const first = limited.submit(visit, a);
  const refused = limited.submit(visit, b);
  const full = { code: 'ERR_QUEUE_FULL' };
  await expect(cluster.passing(refused.result())).rejects.toMatchObject(full);
  await expect(cluster.passing(limited.submit(visit, b).result())).rejects.toMatchObject(full);
  await cluster.passing(first.result());
  expect(await cluster.passing(limited.submit(visit, b).result())).toBe(b);
  expect(refused.status).toBe('finished');
});

test('no more tasks start than the rate of their limit allows, each as soon as it does', async () => {
  const limited = cluster.client.with({ limit: { name: 'rate', rate: '10/s', burst: 2 } });
  const startMs = cluster.clock.nowMs();
  const all = limited.map(visit, urls('rate').slice(0, 7));
  await cluster.passing(all[1]!.result());
  expect(cluster.clock.nowMs() - startMs).toBeLessThan(150);
  await cluster.passing(cluster.client.gather(all));
  const tookMs = cluster.clock.nowMs() - startMs;
  // Two at once, five in the time of five, and the run itself.
  expect([tookMs >= 600, tookMs < 700]).toEqual([true, true]);
});

test('no more calls are open than maxOpen says, of one `with` and what is derived from it', async () => {
  const web = cluster.client.with({ maxOpen: 3 });
  const [a, b, c, d] = urls('open') as [string, string, string, string];
  const first = web.submit(visit, a);
  expect(() => web.map(visit, [b, c, d])).toThrow(
    '3 calls beside 1 that are open would be more than maxOpen (3) allows',
  );
  const others = web.with({ priority: 1 }).map(visit, [b, c]);
  const full = expect.objectContaining({ code: 'ERR_QUEUE_FULL' }) as Error;
  expect(() => web.submit(visit, d)).toThrow(full);
  const elsewhere = web.with({ maxOpen: 1 }).submit(visit, d);
  others[0]?.cancel();
  await cluster.passing(cluster.client.gather([first, others[1], elsewhere]));
  await cluster.passing(cluster.client.gather(web.map(visit, [b, c, d])));
  expect(await cluster.passing(web.forEach(visit, urls('stream')))).toBe(9);
});

test.each<[unknown, string]>([
  ['visits', "limit must be an object such as { name: 'database', max: 4 }, or a function (got"],
  [{ name: '', max: 1 }, 'limit.name must be text without half of a surrogate pair, and not empty'],
  [{ name: 'a', max: 0 }, 'limit.max must be a whole number of at least 1 (got 0)'],
  [{ name: 'a' }, 'limit.max must be given, or limit.rate (got nothing)'],
  [{ name: 'a', rate: '10 a second' }, "limit.rate must be a number in a time, such as '100/s'"],
  [{ name: 'a', rate: '0/s' }, 'limit.rate must be between one in a day and a million in a second'],
  [{ name: 'a', max: 1, min: 0 }, 'limit.min is not known; did you mean'],
])('refuses the limit %o', (limit, message) => {
  expect(() => cluster.client.with({ limit } as TaskOptions)).toThrow(message);
  const found = cluster.client.with({ limit: () => limit as never });
  expect(() => found.submit(visit, 'http://a/')).toThrow(message);
});

test.each<[string, () => unknown]>([
  ['a promise', () => Promise.reject(new Error('no answer'))],
  ['a function', () => () => ({ name: 'a', max: 1 })],
])('says what to do when the function of a limit returns %s', (_what, limit) => {
  const found = cluster.client.with({ limit });
  expect(() => found.map(visit, urls('a'))).toThrow(
    'limit must be an object or undefined at once when its function is called; await what that needs before the call (got',
  );
});

test('a run that has failed by its time counts for its limit until its code has ended', async () => {
  const limit = { name: 'overdue', max: 1 };
  const limited = cluster.client.with({ pure: false, limit });
  const late = limited.with({ timeoutMs: 20 }).map(visit, urls('late').slice(0, 3));
  const ends = await cluster.passing(Promise.allSettled(late.map((each) => each.result())));
  expect(
    ends.map((end) => end.status === 'rejected' && (end.reason as { code: string }).code),
  ).toEqual(Array(3).fill('ERR_TASK_TIMEOUT'));
  expect(await cluster.passing(limited.submit(visit, 'http://late/last').result())).toBe(
    'http://late/last',
  );
  expect(running.get('late')).toEqual({ now: 0, most: 1 });
});

test('a task that waits for its next try leaves its place to others, and waits for one afterwards', async () => {
  const limited = cluster.client.with({ limit: { name: 'one', max: 1 } });
  const slow = limited.with({ retries: { times: 1, backoffMs: 150 } });
  const failing = slow.submit(failsFor, 'gives way', 1, 'E_BUSY');
  const others = limited.map(visit, urls('others').slice(0, 3));
  expect(await cluster.passing(failing.result())).toBe('after 2');
  await cluster.passing(cluster.client.gather(others));
  // Two visits of 100 ms began in its pause, and the third one after it.
  const [firstMs = 0, secondMs = 0] = calledMs.get('gives way') ?? [];
  expect(secondMs - firstMs).toBe(200);
  expect(running.get('others')?.most).toBe(1);
});

test('a task that is cancelled while it waits to go on holds up no other', async () => {
  const limited = cluster.client.with({ limit: { name: 'busy', max: 1 } });
  const slow = limited.with({ retries: { times: 1, backoffMs: 50 } });
  const failing = slow.submit(failsFor, 'leaves', 1, 'E_BUSY');
  const others = limited.map(visit, urls('later').slice(0, 2));
  const { clock } = cluster;
  const atMs = clock.nowMs() + 70;
  await cluster.passing(new Promise<void>((resolve) => clock.setTimer(70, resolve)));
  expect(clock.nowMs()).toBe(atMs);
  failing.cancel();
  await cluster.passing(cluster.client.gather(others));
  expect(calledMs.get('leaves')).toHaveLength(1);
});
