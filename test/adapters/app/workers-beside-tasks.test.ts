import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { threadId } from 'node:worker_threads';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClusterMode, LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { aside } from './fixtures/aside-tasks.mjs';
import { eventually } from '../../kit/eventually.ts';

const MODES: readonly ClusterMode[] = ['inline', 'threads', 'processes'];
const config = { scheduler: { validate: true } };

describe.each(MODES)('beside the tasks of workers (%s)', (mode) => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    cluster = await LocalCluster.start({ mode, workers: 2, threads: 2, config });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());
  const addresses = (): string[] => [...cluster.scheduler.cluster.workers.keys()].sort();

  test('a function runs once on each, in the process of the worker', async () => {
    const places = await client.run(aside.place);
    expect([...places.keys()].sort()).toEqual(addresses());
    const pids = new Set([...places.values()].map(([pid]) => pid));
    if (mode === 'processes') expect([...pids].sort()).toEqual([...cluster.pids].sort());
    else expect([...places.values()]).toEqual(Array(2).fill([process.pid, threadId]));
  });

  test('or on some, by name', async () => {
    const keys = await client.on({ workers: ['worker-1'] }).run(aside.key);
    expect([...keys.values()]).toEqual([expect.stringMatching(/^key-/)]);
    await expect(client.on({ workers: ['worker-7'] }).run(aside.key)).rejects.toMatchObject({
      code: 'ERR_NO_WORKER',
      message: expect.stringContaining('did you mean "worker-') as string,
    });
  });

  test('or in each of its threads, where tasks find what it left', async () => {
    if (mode === 'inline') return; // The thread of the worker is the only one.
    const left = await client.on({ place: 'threads' }).run(aside.mark, mode);
    expect([...left.values()]).toEqual(Array(2).fill([[mode], [mode]]));
    const seen = client.with({ pure: false }).map(aside.mark, Array(6).fill('task') as string[]);
    for (const marks of await client.gather(seen)) expect(marks[0]).toBe(mode);
  });

  test('what it throws is thrown here, or returned in its place', async () => {
    await expect(client.run(aside.fails, 'no')).rejects.toMatchObject({
      name: 'RangeError',
      message: 'no',
      data: { worker: expect.any(String) as string },
    });
    const told = await client.on({ errors: 'return' }).run(aside.fails, 'told');
    expect([...told.values()]).toEqual(Array(2).fill(expect.objectContaining({ message: 'told' })));
  });

  test('it can have a client, and tasks', async () => {
    const doubled = await client.run(aside.twiceByTask, 21);
    expect([...doubled.values()]).toEqual([42, 42]);
  });

  test('a worker that does not end in time is reported', async () => {
    await expect(client.on({ timeoutMs: 100 }).run(aside.hangs)).rejects.toMatchObject({
      message: expect.stringContaining('within 100 ms') as string,
    });
  });

  test('requests go to all of them, or to one', async () => {
    const all = await client.broadcast('inspect', { what: 'identity' });
    expect([...all.keys()].sort()).toEqual(addresses());
    expect(await client.proxy('worker-0', 'inspect', { what: 'identity' })).toMatchObject({
      name: 'worker-0',
    });
    await expect(client.proxy('worker-0', 'inspect', { what: 'secrets' })).rejects.toMatchObject({
      code: 'ERR_PROTOCOL',
    });
    await expect(client.broadcast('close', {})).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
  });

  test('connections are counted', async () => {
    const { scheduler, workers } = await client.connectionCounters();
    expect(scheduler.workers).toBe(2);
    expect(scheduler.clients).toBeGreaterThanOrEqual(1);
    expect(scheduler.all).toBeGreaterThanOrEqual(3);
    expect([...workers.keys()].sort()).toEqual(addresses());
    expect([...workers.values()]).toEqual(
      Array(2).fill({
        incoming: expect.any(Number) as number,
        outgoing: expect.any(Number) as number,
        sending: expect.any(Number) as number,
      }),
    );
  });

  test('a task that waits is listed, without calls', async () => {
    const waiting = client.submit(aside.waits, 1500);
    await eventually(async () => {
      const { running, silent } = await client.callStack(waiting);
      expect(silent.size).toBe(0);
      expect(running).toMatchObject([
        { key: waiting.key, hasSeceded: false, isCancelled: false, frames: [] },
      ]);
    });
    expect((await client.callStack([])).running).toEqual([]);
    await waiting.result();
  });
});

describe.each<ClusterMode>(['threads', 'processes'])('a look into threads (%s)', (mode) => {
  test('shows where a task computes whose worker does not answer, and lets it continue', async () => {
    await using cluster = await LocalCluster.start({ mode, workers: 1, threads: 2, config });
    const client = await cluster.client();
    const computing = client.submit(aside.computes, 4000);
    await eventually(async () => {
      const { running } = await client.callStack();
      expect(running[0]?.frames[0]?.name).toBe('innermost');
      const [stack] = running;
      expect(stack).toMatchObject({ key: computing.key, worker: expect.any(String) as string });
      expect(stack?.frames.map(({ name }) => name)).toEqual(['innermost', 'computes']);
      expect(stack?.frames[0]?.url).toMatch(/aside-tasks\.mjs$/);
      expect(stack?.frames[0]?.line).toBe(11);
    });
    expect(await computing.result()).toBe(true);
  });
});

test('hardware is measured: memory, disk and the way between workers', async () => {
  await using cluster = await LocalCluster.start({ mode: 'inline', workers: 3 });
  const client = await cluster.client();
  const sizes = [1024, 100_000];
  const { memory, disk, network } = await client.benchmarkHardware({ sizes, durationMs: 20 });
  for (const figures of [memory, disk, network]) {
    expect([...figures.keys()]).toEqual(sizes);
    for (const rate of figures.values()) expect(rate).toBeGreaterThan(1000);
  }
  expect(memory.get(100_000)).toBeGreaterThan(disk.get(100_000)!);
});

test('a restart replaces processes, and the earlier tasks are unknown afterwards', async () => {
  const log = new MemoryLog();
  await using cluster = await LocalCluster.start({ mode: 'processes', workers: 2, config, log });
  const client = await cluster.client();
  const other = await cluster.client();
  const before = new Set(cluster.pids);
  const done = client.submit(aside.twice, 1);
  await done.result();
  const waiting = other.submit(aside.waits, 1_000_000);
  await eventually(async () => expect((await other.callStack(waiting)).running).toHaveLength(1));
  const { restarted, kept, missing } = await client.restart();
  expect(restarted.map(({ name }) => name).sort()).toEqual(['worker-0', 'worker-1']);
  expect([kept, missing]).toEqual([[], []]);
  await expect(done.result()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  await expect(waiting.result()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  expect(cluster.scheduler.cluster.tasks.size).toBe(0);
  expect(cluster.pids.filter((pid) => before.has(pid))).toEqual([]);
  expect(await client.submit(aside.twice, 1).result()).toBe(2);
});

test('a restart of workers without nannies leaves them, without tasks and data', async () => {
  await using cluster = await LocalCluster.start({ workers: 1, config });
  const client = await cluster.client();
  const waiting = client.submit(aside.waits, 1_000_000);
  await eventually(async () => expect((await client.callStack(waiting)).running).toHaveLength(1));
  const { restarted, kept } = await client.restart();
  expect([restarted, kept.map(({ name }) => name)]).toEqual([[], ['worker-0']]);
  await expect(waiting.result()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  await sleep(0);
  expect(cluster.scheduler.cluster.tasks.size).toBe(0);
});

test('on a busy machine every thread that computes shows its calls', async () => {
  await using cluster = await LocalCluster.start({ workers: 1, threads: 3, config });
  const client = await cluster.client();
  const burn = `const end = Date.now() + 20_000; while (Date.now() < end);`;
  const burning = Array.from({ length: 4 }, () => spawn(process.execPath, ['-e', burn]));
  try {
    const computing = client.with({ pure: false }).map(aside.computes, [20_000, 20_000, 20_000]);
    // Every one has begun to compute when each was seen at it once.
    const seen = new Set<string>();
    await eventually(async () => {
      const { running } = await client.callStack(computing);
      for (const { key, frames } of running) if (frames[0]?.name === 'innermost') seen.add(key);
      expect(seen.size).toBe(3);
    });
    const { running } = await client.callStack(computing);
    expect(running.map(({ frames }) => frames[0]?.name)).toEqual(Array(3).fill('innermost'));
    client.cancel(computing, { killTimeoutMs: 1 });
  } finally {
    for (const child of burning) child.kill();
  }
});
