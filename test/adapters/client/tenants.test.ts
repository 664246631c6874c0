import { expect, test } from 'vitest';
import { startCluster } from '../../kit/virtual-cluster.ts';
import { visit, watch } from './limit-tasks.ts';

test('the calls of one tenant do not wait for the many of another', async () => {
  const fairness = { use: 'weighted-fair-share', options: { by: 'tenant', cost: 'tasks' } };
  const cluster = await startCluster(1, { scheduler: { policies: { fairness } } });
  watch.sleep = (ms) => new Promise((resolve) => cluster.clock.setTimer(ms, resolve));
  const one = cluster.client.with({ limit: { name: 'one', max: 1 } });
  const ends: string[] = [];
  const call = (tenant: string, count: number): Promise<unknown>[] =>
    Array.from({ length: count }, async (_, page) => {
      await one.with({ tenant }).submit(visit, `http://${tenant}/${page}`).result();
      ends.push(tenant);
    });
  const all = [...call('busy', 20), ...call('small', 3)];
  await cluster.passing(Promise.all(all));
  expect(ends.lastIndexOf('small')).toBeLessThan(8);
});
