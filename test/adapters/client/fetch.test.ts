import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunningScheduler } from '../../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import { bytes, inc } from './tasks.ts';

/** Scheduler and worker share a network that the client does not know. */
let running: RunningScheduler;
let address: string;

beforeAll(async () => {
  const clock = new SystemClock();
  const hidden = new InMemoryTransport(clock);
  const config = { scheduler: { sendAlong: 0 } };
  running = await startScheduler({ config, clock, transports: [hidden] }, 'inmemory://scheduler');
  address = await running.scheduler.listen('tcp://127.0.0.1:0');
  await startWorker('inmemory://scheduler', {
    executor: 'inline',
    isGuest: true,
    clock,
    transports: [hidden],
  });
});
afterAll(() => running.close());

test('a client that cannot reach the workers gets results through the scheduler', async () => {
  await using client = await Client.connect(address);
  const futures = client.map(inc, [1, 2, 3]);
  expect(await client.gather(futures)).toEqual([2, 3, 4]);
  const [holders] = [...(await client.whoHas(futures)).values()];
  expect(holders![0]).toMatch(/^inmemory:/);
});

test('a client that cannot reach the workers cannot scatter, and says so', async () => {
  await using client = await Client.connect(address);
  await expect(client.scatter([1])).rejects.toMatchObject({
    code: 'ERR_CONNECT',
    message: expect.stringContaining('inmemory://') as string,
  });
});

test('megabytes come in one piece', async () => {
  await using client = await Client.connect(address);
  const [a, b] = await client.gather(client.map(bytes, [5_000_000, 7]));
  expect([a!.byteLength, b!.byteLength]).toEqual([5_000_000, 7]);
});
