import { expect, it } from 'vitest';
import { openScheduler } from '../../../adapters/app/start-scheduler.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { BRIDGE, definePlugin } from '../../../core/api/index.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';

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
