/** Real processes that stand still for longer than the time to live, as when a machine swaps or sleeps. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { Client } from '../../../adapters/client/index.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { add, slowSquare } from '../cli/fixtures/tasks.js';
import { useLive } from '../../kit/live.ts';

/** The kernel forgives the silence of ten heartbeats, which is five seconds with few workers. */
const TTL_MS = 5000;

const { folder, runs, stops } = useLive('stalls');

const inputs = Array.from({ length: 12 }, (_, index) => index);
const squares = inputs.map((x) => x * x);

test('a scheduler that stands still for longer than a time to live loses no worker, no data and no task', async () => {
  const config = join(folder, 'scheduler.yaml');
  writeFileSync(config, 'scheduler: { workerTtl: 1s, allowedFailures: 0, noWorkersTimeout: 1s }');
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--config', config);
  const address = await scheduler.firstLine();
  for (let worker = 0; worker < 2; worker++) {
    await runs.yardmaster('worker', address, '--threads', '1', '--no-nanny').firstLine();
  }
  const client = await Client.connect(address);
  stops.push(() => client.close());
  const pid = scheduler.child.pid!;
  stops.push(() => process.kill(pid, 'SIGCONT'));
  const data = await client.scatter({ one: [1, 2], two: [3, 4] });
  const lease = await client.lock('l').acquire();
  const futures = inputs.map((x) => client.submit(slowSquare, 500, x));
  await futures[0]!.result();
  process.kill(pid, 'SIGSTOP');
  await passed(1.5 * TTL_MS);
  process.kill(pid, 'SIGCONT');
  expect(await client.gather(futures)).toEqual(squares);
  expect(await client.gather([data.one, data.two])).toEqual([
    [1, 2],
    [3, 4],
  ]);
  expect(await client.submit(add, data.one as never).result()).toBe(3);
  await passed(TTL_MS); // Checks of the time to live that come after the stall.
  const actions = (await client.getEvents('scheduler')).map(
    ({ message }) => (message as { action?: unknown }).action,
  );
  expect(actions).not.toContain('worker-ttl-timed-out');
  const left = (await client.getEvents('all')).map(
    ({ message }) => (message as { action?: unknown }).action,
  );
  expect(left).not.toContain('remove-worker');
  expect(lease.isHeld).toBe(true);
  await lease.release();
});

test('a client and a worker notice a scheduler that does not answer, and do as they are configured', async () => {
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
  const address = await scheduler.firstLine();
  const config = join(folder, 'worker.yaml');
  writeFileSync(config, 'worker: { schedulerTtl: 3s, nanny: false, threads: 1 }');
  const worker = runs.yardmaster('worker', address, '--config', config);
  await worker.firstLine();
  const silent: number[] = [];
  const patient = await Client.connect(address, {
    onSchedulerLost: 'reconnect',
    schedulerTtlMs: 2000,
    onSchedulerSilent: (silentMs) => silent.push(silentMs),
  });
  stops.push(() => patient.close());
  const client = await Client.connect(address, { schedulerTtlMs: 3000 });
  expect(await patient.submit(slowSquare, 1, 3).result()).toBe(9);
  const open = client.submit(slowSquare, 60_000, 1);
  const pid = scheduler.child.pid!;
  stops.push(() => process.kill(pid, 'SIGCONT'));
  process.kill(pid, 'SIGSTOP');
  await expect(open.result()).rejects.toMatchObject({
    code: 'ERR_CLOSED',
    message: expect.stringContaining('has not answered for 3 s') as string,
  });
  expect(await worker.exit).toBe(1);
  expect(worker.stderr).toContain('has not answered for 1 s; after 3 s (worker.schedulerTtl)');
  const isConnected = (): boolean => patient.isConnected;
  while (isConnected()) await passed(20);
  expect(silent.length).toBeGreaterThan(0);
  process.kill(pid, 'SIGCONT');
  while (!isConnected()) await passed(20);
  expect((await patient.identity()).workers).toEqual([]);
});

test('workers that all stand still for several times to live come back, and their tasks count one death', async () => {
  const config = { scheduler: { workerTtl: '1s', allowedFailures: 1 } };
  const log = new MemoryLog();
  const cluster = await LocalCluster.start({
    mode: 'processes',
    workers: 3,
    threads: 1,
    config,
    log,
  });
  stops.push(() => cluster.close());
  const client = await cluster.client();
  const { scheduler } = cluster;
  await client.scatter({ held: [5, 6] });
  const futures = inputs.map((x) => client.submit(slowSquare, 500, x));
  await futures[0]!.result();
  const stopped = [...cluster.pids];
  for (const pid of stopped) process.kill(pid, 'SIGSTOP');
  while (scheduler.cluster.workers.size > 0) await passed(50);
  const deaths = [...scheduler.cluster.tasks.values()].map(({ suspicious }) => suspicious);
  expect(Math.max(...deaths)).toBe(1);
  await passed(TTL_MS);
  for (const pid of stopped) process.kill(pid, 'SIGCONT');
  expect(await client.gather(futures)).toEqual(squares);
  while (scheduler.cluster.workers.size < 3) await passed(50);
  expect([...scheduler.cluster.workers.values()].map(({ name }) => name).sort()).toEqual([
    'worker-0',
    'worker-1',
    'worker-2',
  ]);
  expect(
    Math.max(...futures.map(({ key }) => scheduler.cluster.tasks.get(key)!.suspicious)),
  ).toBeLessThan(2);
});
