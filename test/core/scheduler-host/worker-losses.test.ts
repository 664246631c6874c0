import { expect, it } from 'vitest';
import { startHost } from '../../kit/test-host.ts';

const spec = { module: 'm', name: 'f', version: '1', args: new Uint8Array() };

it('workers whose connections break in the same turn leave together, so that a task does not hop among them', async () => {
  const host = await startHost({ allowedFailures: 1 });
  const addresses = ['w1', 'w2', 'w3', 'w4'].map((name) => `inmemory://${name}`);
  const workers = await Promise.all(addresses.map((address) => host.worker(address)));
  const client = await host.client();
  await client.send({
    op: 'update-graph',
    tasks: [{ key: 'x', dependencies: [], runSpec: spec }],
    keys: ['x'],
  });
  for (const worker of workers) worker.channel.abort(new Error('the network is down'));
  await host.settle();
  const { cluster } = host.scheduler;
  expect([cluster.workers.size, cluster.tasks.get('x')?.suspicious]).toEqual([0, 1]);
  await host.worker('inmemory://w5');
  expect(cluster.tasks.get('x')?.state).toBe('processing');
});

it('a worker whose connection broke can take its seat again at once', async () => {
  const host = await startHost({ allowedFailures: 1 });
  const worker = await host.worker('inmemory://w1');
  const next = await host.peer();
  await next.hello('worker');
  worker.channel.abort(new Error('the network is down'));
  await expect(
    next.request('register-worker', {
      identity: {
        address: 'inmemory://w1',
        serverId: 'another',
        name: 'inmemory://w1',
        host: 'localhost',
        threadCount: 1,
        memoryLimitBytes: 0,
        resources: {},
      },
      status: 'running',
    }),
  ).resolves.toMatchObject({ heartbeatIntervalMs: 500 });
});
