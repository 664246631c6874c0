import { describe, expect, test } from 'vitest';
import { type ClusterMode, LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { VirtualCluster } from '../../../adapters/testing/index.ts';
import { add } from '../cli/fixtures/tasks.js';
import { inc } from '../client/tasks.ts';
import { Counter } from './fixtures/actors.mjs';

const MODES: readonly ClusterMode[] = ['inline', 'threads', 'processes'];

describe.each(MODES)('a cluster with fewer workers (%s)', (mode) => {
  test('keeps data that was scattered, and actors', async () => {
    await using cluster = await LocalCluster.start({ mode, workers: 4, threads: 1 });
    const client = await cluster.client();
    const counter = await client.submitActor(Counter, 10).result();
    const scattered = await client.scatter([1, 2, 3, 4, 5, 6, 7, 8].map((n) => [n, 10]));
    const holders = await client.whoHas(scattered);
    expect(new Set([...holders.values()].flat()).size).toBe(4);
    await cluster.scaleTo(1);
    expect(cluster.workerCount).toBe(1);
    expect(cluster.scheduler.cluster.workers.size).toBe(1);
    expect(await client.gather(client.map(add, scattered))).toEqual([
      11, 12, 13, 14, 15, 16, 17, 18,
    ]);
    expect(await counter.increment()).toBe(11);
  });

  test('has more than it was asked to have when each holds an actor', async () => {
    await using cluster = await LocalCluster.start({ mode, workers: 2, threads: 1 });
    const client = await cluster.client();
    const actors = await client.gather([1, 2].map((n) => client.submitActor(Counter, n)));
    await expect(cluster.scaleTo(1)).rejects.toMatchObject({
      code: 'ERR_RETIRE',
      message:
        'the cluster was not scaled to 1: worker worker-1 holds an actor; release that first, or leave more workers',
      data: { count: 1, kept: [{ worker: 'worker-1', reason: 'holds an actor' }] },
    });
    expect(cluster.workerCount).toBe(2);
    expect(await Promise.all(actors.map((actor) => actor.increment()))).toEqual([2, 3]);
  });
});

describe('a cluster without workers', () => {
  test('computes results again that it had', async () => {
    await using cluster = await VirtualCluster.start({ workers: 2 });
    const client = await cluster.client();
    const futures = client.map(inc, [1, 2, 3]);
    await cluster.drive(client.gather(futures));
    await cluster.drive(cluster.cluster.scaleTo(0));
    expect(cluster.cluster.workerCount).toBe(0);
    await cluster.drive(cluster.cluster.scaleTo(1));
    expect(await cluster.drive(client.gather(client.map(inc, futures)))).toEqual([3, 4, 5]);
  });

  test('cannot be had while data was scattered to one', async () => {
    await using cluster = await VirtualCluster.start({ workers: 2 });
    const client = await cluster.client();
    const { kept: future } = await cluster.drive(client.scatter({ kept: 7 }, { broadcast: true }));
    await expect(cluster.drive(cluster.cluster.scaleTo(0))).rejects.toMatchObject({
      code: 'ERR_RETIRE',
      message: expect.stringContaining(
        'holds data that cannot be computed again ("kept")',
      ) as string,
    });
    expect(await cluster.drive(client.submit(inc, future).result())).toBe(8);
  });
});

test('a cluster closes while it is being scaled', async () => {
  const cluster = await VirtualCluster.start({ workers: 2 });
  const scaling = cluster.cluster.scaleTo(1);
  const outcome = expect(cluster.drive(scaling)).rejects.toMatchObject({ code: 'ERR_CLOSED' });
  await cluster.close();
  await outcome;
});
