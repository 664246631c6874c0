import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClusterMode, LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { type Client, workerClient } from '../../../adapters/client/index.ts';
import { nested } from './fixtures/nested-tasks.mjs';
import { eventually } from '../../kit/eventually.ts';

const MODES: readonly ClusterMode[] = ['inline', 'threads', 'processes'];

describe.each(MODES)('a task with a client (%s)', (mode) => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    // One thread: a task that waits without releasing it waits for ever.
    const config = { scheduler: { validate: true } };
    cluster = await LocalCluster.start({ mode, workers: 1, threads: 1, config });
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  test('submits tasks and waits for them, at any depth', async () => {
    expect(await client.submit(nested.fib, 6).result()).toBe(8);
  });

  test('waits in every way that a client can', async () => {
    expect(await client.submit(nested.waits).result()).toEqual([
      'result',
      'finished',
      1,
      'finished',
      'finished',
      'scattered',
      ['p', 'q'],
    ]);
  });

  test('lets others run while it waits for what they do', async () => {
    const name = `items-${mode}`;
    const takers = [1, 2, 3].map(() => client.with({ pure: false }).submit(nested.takeFrom, name));
    const putters = client.map(nested.putInto, [name, name, name], ['a', 'b', 'c']);
    await client.gather(putters);
    expect((await client.gather(takers)).sort()).toEqual(['a', 'b', 'c']);
  });

  test('fails with what its task failed with, if it lets it', async () => {
    await expect(client.submit(nested.failing).result()).rejects.toMatchObject({
      name: 'RangeError',
      message: 'inside',
    });
  });

  test('gets large results', async () => {
    expect(await client.submit(nested.large, 3_000_000).result()).toBe(3_000_000);
  });

  test('releases its futures at its end, and its connection serves the next task', async () => {
    const { cluster: state } = cluster.scheduler;
    const before = state.clients.size;
    const first = await client.submit(nested.forgets, mode).result();
    await eventually(() => {
      const keys = [...state.tasks.keys()];
      expect(keys.filter((key) => /^(one|later)-/.test(key))).toEqual([]);
      expect(state.clients.get(first)?.wantsWhat.size).toBe(0);
    });
    // A cancelled run continues for a while; another task has another client meanwhile.
    await client.submit(nested.idOfClient).result();
    expect(state.clients.size).toBeLessThanOrEqual(before + 2);
  });

  test('that holds a lock at its end loses it, and the lock is free', async () => {
    const holder = await client.submit(nested.locks, `door-${mode}`).result();
    await using lease = await client.lock(`door-${mode}`).acquire({ timeoutMs: 10_000 });
    expect(lease).toBeDefined();
    expect(cluster.scheduler.cluster.clients.has(holder)).toBe(false);
  });

  test('that gives its lock back leaves its connection to the next task, and what it shared is forgotten', async () => {
    const door = `free-${mode}`;
    const impure = client.with({ pure: false });
    const ids = new Set<string>();
    for (let run = 0; run < 4; run++) {
      ids.add(await impure.submit(nested.locksAndReleases, door).result());
    }
    expect(ids.size).toBeLessThan(4);
    const gate = `gate-${mode}`;
    await impure.submit(nested.passes, gate, 2).result();
    await eventually(async () => {
      const { leases } = (await client.semaphore(gate, { leases: 3 }).state()) as {
        leases?: number;
      };
      expect(leases).toBeUndefined();
    });
  });

  test('that is cancelled takes what it submitted along', async () => {
    const future = client.submit(nested.waitsForEver);
    const { tasks } = cluster.scheduler.cluster;
    const runsInside = (): boolean => [...tasks.keys()].some((key) => key.startsWith('later-'));
    await eventually(() => expect(runsInside()).toBe(true));
    future.cancel();
    await eventually(() => expect(runsInside()).toBe(false));
  });
});

test('outside of a task there is no such client', () => {
  expect(() => workerClient()).toThrow(/outside of a running task/);
});

test('many tasks that each wait for their own do not block each other', async () => {
  await using cluster = await LocalCluster.start({ workers: 2, threads: 2 });
  const client = await cluster.client();
  const many = client.with({ pure: false }).map(nested.fib, Array(8).fill(4) as number[]);
  expect(await client.gather(many)).toEqual(Array(8).fill(3));
});
