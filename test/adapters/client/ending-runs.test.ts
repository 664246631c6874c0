import { beforeEach, expect, test } from 'vitest';
import { calls, count, deaf, gates } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

let cluster: VirtualCluster;
beforeEach(async () => {
  calls.clear();
  gates.clear();
  cluster = await startCluster(1);
});
test('a cancelled run that continues keeps its slot, and gives it back at its end', async () => {
  const { client } = cluster;
  const stubborn = client.submit(deaf, 'stubborn');
  await cluster.until(() => gates.has('stubborn'));
  const worker = cluster.worker('worker-0');
  const openBefore = worker.openSlots;
  stubborn.cancel();
  await cluster.until(() => !cluster.local.scheduler.cluster.tasks.has(stubborn.key));
  expect(worker.endingRuns.size).toBe(1);
  expect(worker.openSlots).toBe(openBefore);
  gates.get('stubborn')!();
  await cluster.until(() => worker.endingRuns.size === 0);
  expect(worker.openSlots).toBe(openBefore + 1);
});

test('what was cancelled before it began is over at once', async () => {
  const { client } = cluster;
  const first = client.submit(deaf, 'first');
  await cluster.until(() => gates.has('first'));
  const second = client.submit(count, 'second');
  const worker = cluster.worker('worker-0');
  await cluster.until(() => worker.processing.size === 2);
  second.cancel();
  await cluster.until(() => worker.processing.size === 1 && worker.endingRuns.size === 0);
  gates.get('first')!();
  expect(await cluster.passing(first.result())).toBe('done');
  expect(calls.size).toBe(0);
});
