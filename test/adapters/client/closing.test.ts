import { beforeEach, expect, test } from 'vitest';
import { startCluster, type VirtualCluster } from '../../kit/virtual-cluster.ts';
import { visit, watch } from './limit-tasks.ts';

const [a, b, c] = ['http://a/', 'http://b/', 'http://c/'] as const;
/** Results are not sent along, so each is fetched after its task has ended. */
let cluster: VirtualCluster;
beforeEach(async () => {
  cluster = await startCluster(1);
  watch.sleep = (ms) => new Promise((resolve) => cluster.clock.setTimer(ms, resolve));
});

test('a client that closes with a grace takes nothing new, and what is open ends', async () => {
  const { client, clock } = cluster;
  const startMs = clock.nowMs();
  const first = client.submit(visit, a).result();
  const both = client.gather(client.map(visit, [b, c]));
  const closing = client.close({ graceMs: 10_000 });
  expect(() => client.submit(visit, c)).toThrow('the client is closing, and takes nothing new');
  expect(client.isClosed).toBe(false);
  await cluster.passing(closing);
  expect([await first, await both]).toEqual([a, [b, c]]);
  expect([client.isClosed, clock.nowMs() - startMs < 5000]).toEqual([true, true]);
});

test('what is open when the grace is over fails, and its task is given up', async () => {
  const { client, clock, local } = cluster;
  watch.sleep = () => new Promise(() => undefined);
  const startMs = clock.nowMs();
  const result = client.submit(visit, a).result();
  result.catch(() => undefined);
  await cluster.passing(client.close({ graceMs: 300 }));
  await expect(result).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(300);
  await cluster.until(() => local.scheduler.cluster.tasks.size === 0);
});

test('a second close ends the wait of the first', async () => {
  const { client, clock } = cluster;
  watch.sleep = () => new Promise(() => undefined);
  const startMs = clock.nowMs();
  const result = client.submit(visit, a).result();
  result.catch(() => undefined);
  const closing = client.close({ graceMs: 60_000 });
  await cluster.passing(client.close());
  await cluster.passing(closing);
  expect(clock.nowMs() - startMs).toBeLessThan(30_000);
});

test('a cluster that closes with a grace lets all its clients end', async () => {
  const { client, local } = cluster;
  const other = await cluster.passing(local.client());
  const results = [client.submit(visit, a).result(), other.submit(visit, b).result()];
  const closing = local.close({ graceMs: 10_000 });
  await expect(local.client()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await cluster.passing(closing);
  expect(await Promise.all(results)).toEqual([a, b]);
});

test('wrong options are refused, and close nothing', async () => {
  const { client, local } = cluster;
  await expect(client.close({ graceMs: -1 })).rejects.toThrow('graceMs must be');
  await expect(local.close({ graceMs: -1 })).rejects.toThrow('graceMs must be');
  expect(await cluster.passing(client.submit(visit, a).result())).toBe(a);
});
