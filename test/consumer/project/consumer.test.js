import { expect, it } from 'vitest';
import { Client, LocalCluster, ref, task } from 'yardmaster';
import { InMemoryTransport, SystemClock } from 'yardmaster/testing';
import { workload } from 'yardmaster/simulator';
import { square, sum } from './tasks.js';

it('runs a policy of the Active Memory Manager that the config file names', async () => {
  const cluster = await LocalCluster.start({ workers: 3, config: './cluster.yaml' });
  const client = await cluster.client();
  const future = client.with({ key: 'everywhere' }).submit(square, 7);
  expect(await future.result()).toBe(49);
  await client.amm.runOnce();
  const task = () => cluster.scheduler.cluster.tasks.get('everywhere');
  await expect.poll(() => task()?.whoHas.size).toBe(3);
  await cluster.close();
});

it('registers a SchedulerPlugin with hooks', async () => {
  const seen = [];
  const cluster = await LocalCluster.start({ workers: 1 });
  await cluster.scheduler.addPlugin({
    name: 'watcher',
    taskTransition: (task, start, finish) => seen.push(`${task.key}: ${start} -> ${finish}`),
    workerAdded: (worker) => seen.push(worker.name),
  });
  const client = await cluster.client();
  await client.with({ key: 'seven' }).submit(square, 7).result();
  expect(seen).toContain('seven: waiting -> processing');
  expect(seen).toContain('seven: processing -> memory');
  await cluster.scheduler.removePlugin('watcher');
  const count = seen.length;
  await client.submit(square, 8).result();
  expect(seen).toHaveLength(count);
  await cluster.close();
});

it('swaps the transport for the in-memory one', async () => {
  const clock = new SystemClock();
  const transport = new InMemoryTransport(clock, { delayMs: 1 });
  const cluster = await LocalCluster.start({ workers: 2, transport, clock });
  expect(cluster.address).toMatch(/^inmemory:/);
  const client = await Client.connect(cluster.address, { transports: [transport], clock });
  const squares = client.map(square, [1, 2, 3, 4]);
  expect(await client.submit(sum, squares).result()).toBe(30);
  await client.close();
  await cluster.close();
});

it('runs a recorded graph of the literature', async () => {
  const { tasks, keys } = workload('bag-25K-10');
  const cluster = await LocalCluster.start({ workers: 2 });
  const client = await cluster.client();
  const graph = Object.fromEntries(
    tasks.map(({ key, dependencies }) => {
      const needs = dependencies.map((need) => ref(need));
      return [key, task(square, needs.length).after(...needs)];
    }),
  );
  const [last] = tasks.slice(-1);
  expect(keys).toEqual([last.key]);
  expect(await client.compute(graph, last.key).result()).toBe(last.dependencies.length ** 2);
  expect(cluster.scheduler.cluster.tasks.size).toBe(tasks.length);
  await cluster.close();
});
