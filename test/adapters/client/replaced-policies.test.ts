import { expect, it } from 'vitest';
import type { WorkerSelection } from '../../../core/api/policies.ts';
import { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { inc } from './tasks.ts';

const refusing: WorkerSelection = { admits: () => false, score: () => 0 };

it('tasks that a policy refused are placed at once when another one replaces it', async () => {
  const cluster = await VirtualCluster.start(2);
  const { scheduler } = cluster.local;
  await cluster.passing(scheduler.replacePolicy('workerSelection', refusing));
  const futures = cluster.client.map(inc, [1, 2, 3]);
  const { queued, unrunnable } = scheduler.cluster;
  await cluster.until(() => queued.size + unrunnable.size === 3);
  await cluster.passing(scheduler.replacePolicy('workerSelection', 'earliest-start'));
  expect(queued.size + unrunnable.size).toBe(0);
  expect(await cluster.passing(cluster.client.gather(futures))).toEqual([2, 3, 4]);
  await cluster.close();
});

it('queued tasks are placed at once when a policy takes charge that holds none back', async () => {
  const cluster = await VirtualCluster.start(1);
  const { scheduler } = cluster.local;
  const tasks = Array.from({ length: 20 }, (_, index) => {
    return { key: `root-${index}`, dependencies: [], runSpec: '' };
  });
  // The tasks do not run: what counts is where they are.
  scheduler.enqueue({ op: 'worker-status-change', worker: addressOf(cluster), status: 'paused' });
  scheduler.enqueue({ op: 'update-graph', client: 'c', tasks, keys: tasks.map(({ key }) => key) });
  expect(scheduler.cluster.queued.size).toBe(20);
  await cluster.passing(scheduler.replacePolicy('queuing', 'direct'));
  expect(scheduler.cluster.queued.size).toBe(0);
  await cluster.close();
});

function addressOf(cluster: VirtualCluster): string {
  return cluster.worker(cluster.names[0]!).address;
}
