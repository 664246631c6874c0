import { expect, test, onTestFinished } from 'vitest';
import type { RunningScheduler } from '../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../kit/start-scheduler.ts';
import { Client, wait } from '../../adapters/client/index.ts';
import { startZeroWorkers, type ZeroWorkers } from './zero-workers.ts';
import { inc, total } from '../adapters/client/tasks.ts';

async function start(workers: number): Promise<[RunningScheduler, ZeroWorkers, Client]> {
  const config = { scheduler: { validate: true } };
  const scheduler = await startScheduler({ config }, 'tcp://127.0.0.1:0');
  onTestFinished(() => scheduler.close());
  const zero = await startZeroWorkers(scheduler.address, { workers, threads: 2 });
  onTestFinished(() => zero.close());
  const client = await Client.connect(scheduler.address);
  onTestFinished(() => client.close());
  return [scheduler, zero, client];
}

test('zero workers finish every task of a graph', async () => {
  const [, zero, client] = await start(3);
  const numbers = Array.from({ length: 100 }, (_, index) => index);
  const sum = client.submit(total, client.map(inc, numbers));
  const { done } = await wait([sum]);
  expect(done).toHaveLength(1);
  expect(zero.finishedCount).toBe(101);
});

test('a zero worker claims the replicas that it is asked to fetch', async () => {
  const [scheduler, , client] = await start(4);
  const future = client.submit(inc, 1);
  await wait([future]);
  await client.replicate([future], { n: 3 });
  const found = scheduler.scheduler.cluster.tasks.get(future.key);
  expect([...(found?.whoHas ?? [])]).toHaveLength(3);
});

test('zero workers close when the scheduler does', async () => {
  const [scheduler, zero] = await start(2);
  await scheduler.close();
  await expect(zero.closed).resolves.toBeUndefined();
});
