import { expect, it } from 'vitest';
import { openScheduler } from '../../../adapters/app/start-scheduler.ts';
import { VirtualClock } from '../../../adapters/clocks/index.ts';
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
