import { expect, it } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { openScheduler } from '../../../adapters/app/start-scheduler.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { BRIDGE, definePlugin } from '../../../core/api/index.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { square } from '../cli/fixtures/tasks.js';

/** What is logged when a task has no worker. */
async function warnings(isEnding: boolean): Promise<string[]> {
  const log = new MemoryLog();
  const { scheduler, expectEnd, close } = await openScheduler({ log, clock: new VirtualClock() });
  if (isEnding) expectEnd();
  const tasks = [{ key: 'a', dependencies: [], runSpec: '' }];
  scheduler.enqueue({ op: 'update-graph', client: 'c', tasks, keys: ['a'] });
  await close();
  return log.lines;
}

it('a task without a worker is warned of', async () => {
  expect(await warnings(false)).toEqual([expect.stringContaining('there is no worker for 1 task')]);
});

it('a task without a worker is no news when the workers leave on purpose', async () => {
  expect(await warnings(true)).toEqual([]);
});

it('a task without a worker is no news while workers are started for it, and is when that ends', async () => {
  const log = new MemoryLog();
  const open = await openScheduler({ log, clock: new VirtualClock() });
  open.expectWorkers(true);
  const tasks = [{ key: 'a', dependencies: [], runSpec: '' }];
  open.scheduler.enqueue({ op: 'update-graph', client: 'c', tasks, keys: ['a'] });
  await new Promise((resolve) => setImmediate(resolve));
  expect(log.lines).toEqual([]);
  open.expectWorkers(false);
  expect(log.lines).toEqual([expect.stringContaining('there is no worker for 1 task')]);
  await open.close();
});

it('a task that no worker may run is warned of, also at the head of so many that it is placed after they were taken in', async () => {
  const log = new MemoryLog();
  const cluster = await LocalCluster.start({ mode: 'inline', log });
  const client = await cluster.client();
  const licensed = client.with({ resources: { LICENSE: 1 } });
  const keep = [licensed.submit(square, 1)];
  for (let n = 0; n < 1600; n++) keep.push(client.submit(square, n));
  const text = expect.stringContaining(' waits: no running worker satisfies') as string;
  await expect.poll(() => log.lines, { timeout: 10_000 }).toContainEqual(text);
  for (const future of keep) future.release();
  await cluster.close();
});

it('a task whose language no worker speaks is warned of with that reason', async () => {
  const log = new MemoryLog();
  const plugin = definePlugin({
    name: 'languages',
    apiVersion: 1,
    setup: (context) => context.get(BRIDGE).tellLanguages(() => 'javascript'),
  });
  const config = { scheduler: { plugins: [{ use: plugin }] } };
  const { scheduler, close } = await openScheduler({ log, config, clock: new VirtualClock() });
  const identity = {
    address: 'tcp://w:1',
    serverId: 's',
    name: 'w',
    host: 'w',
    threadCount: 1,
    memoryLimitBytes: 0,
    resources: {},
    language: 'python',
  };
  scheduler.enqueue({ op: 'register-worker', identity, status: 'running' });
  const tasks = [{ key: 'a', dependencies: [], runSpec: 'a' }];
  scheduler.enqueue({ op: 'update-graph', client: 'c', tasks, keys: ['a'] });
  await close();
  expect(log.lines).toContainEqual(
    expect.stringMatching(
      /a waits: no running worker satisfies its restrictions: a worker whose language is javascript; start/,
    ),
  );
});
