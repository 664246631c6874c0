import { describe, expect, it, onTestFinished } from 'vitest';
import { drive } from '../../../adapters/testing/virtual-cluster.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import {
  FaultyTransport,
  type MessageFate,
  InMemoryTransport,
  transportConformance,
  VirtualClock,
  VirtualCluster,
  type VirtualClusterOptions,
} from '../../../adapters/testing/index.ts';
import {
  type Connection,
  definePlugin,
  definePolicy,
  defineRule,
} from '../../../core/api/index.ts';
import type { ClusterState } from '../../../core/state/cluster.ts';
import { never, slow } from '../client/tasks.ts';
import { bad } from '../../bad-input/fixtures/bad-tasks.js';

async function start(options: VirtualClusterOptions = {}): Promise<VirtualCluster> {
  const cluster = await VirtualCluster.start(options);
  onTestFinished(() => cluster.close());
  return cluster;
}

describe('a cluster in virtual time', () => {
  it('computes when it is driven, and an hour takes a moment', async () => {
    let ticks = 0;
    const plugin = definePlugin({
      name: 'hourly',
      apiVersion: 1,
      setup: ({ every }) => {
        every(60_000, () => {
          ticks++;
        });
      },
    });
    const cluster = await start({ workers: 3, config: { scheduler: { plugins: [plugin] } } });
    const client = await cluster.client();
    const futures = client.map(bad.echo, [1, 2, 3]);
    expect(await cluster.drive(client.gather(futures))).toEqual([1, 2, 3]);
    const startMs = cluster.clock.nowMs();
    await cluster.pass(3_600_000);
    expect(cluster.clock.nowMs()).toBe(startMs + 3_600_000);
    expect(ticks).toBeGreaterThanOrEqual(60);
    expect(cluster.scheduler.cluster.workers.size).toBe(3);
    // On a busy machine anything may block the scheduler for a while.
    const logged = cluster.logged.filter((line) => !line.includes('blocked the scheduler for'));
    expect(logged).toEqual([]);
  });

  it('stands still while tasks take real time', async () => {
    const cluster = await start({ workers: 2 });
    const client = await cluster.client();
    const startMs = cluster.clock.nowMs();
    const futures = client.map(slow, [600, 300], [1, 2]);
    expect(await cluster.drive(client.gather(futures))).toEqual([1, 2]);
    expect(cluster.clock.nowMs() - startMs).toBeLessThan(1000);
  });

  it('stands still while the phases of plugins take real time', async () => {
    const ended: string[] = [];
    const slowly = async (phase: string): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      ended.push(phase);
    };
    const plugin = definePlugin({
      name: 'slow',
      apiVersion: 1,
      setup: async () => {
        await slowly('setup');
        return { start: () => slowly('start'), close: () => slowly('close') };
      },
    });
    const cluster = await VirtualCluster.start({ config: { scheduler: { plugins: [plugin] } } });
    await cluster.close();
    expect(ended).toEqual(['setup', 'start', 'close']);
    expect(cluster.logged).toEqual([]);
  });

  it('logs what policies and rules say, under their names', async () => {
    const policy = definePolicy('fairness', {
      name: 'chatty',
      apiVersion: 1,
      create: (_options, { log }) => {
        log.warn({ weights: 0 }, 'no weights');
        return { generations: ({ generation }) => generation };
      },
    });
    const rule = defineRule({
      name: 'shy',
      apiVersion: 1,
      create: (_options, { log }) => {
        log.warn({}, 'nothing to refuse');
        return { filter: () => true };
      },
    });
    const policies = { fairness: policy, rules: [rule] };
    const said: unknown[] = [];
    const warn = (fields: object, message?: string): void => void said.push({ ...fields, message });
    const log = { debug: () => undefined, info: () => undefined, warn, error: warn };
    await start({ log, config: { scheduler: { policies } } });
    expect(said).toEqual([
      { policy: 'chatty', weights: 0, message: 'no weights' },
      { policy: 'shy', message: 'nothing to refuse' },
    ]);
  });

  it('says which tasks take too much real time', async () => {
    const cluster = await start({ workers: 1 });
    const client = await cluster.client();
    const future = client.submit(slow, 1500, 1);
    const waiting = cluster.drive(future.result(), { idleMs: 10, maxMs: 2000 });
    await expect(waiting).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
      message: expect.stringContaining(
        'a task waits for a timer, file or connection for more than 10 ms',
      ) as string,
    });
    expect(await cluster.drive(future.result())).toBe(1);
  });

  it('gives up a task that waits for nothing real without waiting for real time', async () => {
    const cluster = await start({ workers: 1 });
    const client = await cluster.client();
    const future = client.with({ deadlineMs: 60_000 }).submit(never, 'in virtual time');
    await expect(cluster.drive(future.result())).rejects.toMatchObject({
      code: 'ERR_TASK_TIMEOUT',
    });
  });

  it('is the same run every time', async () => {
    const run = async (): Promise<string> => {
      const cluster = await start({ workers: 2, delayMs: 3 });
      const client = await cluster.client({ name: 'me' });
      const keyed = client.map(bad.echo, [1, 2, 3, 4, 5, 6]);
      await cluster.drive(client.gather(keyed));
      const places = keyed.map(({ key }) => {
        const holders = cluster.scheduler.cluster.tasks.get(key)?.whoHas.items ?? [];
        return `${key} ${holders.map(({ name }) => name).join()}`;
      });
      return [...places, cluster.clock.nowMs()].join('\n');
    };
    expect(await run()).toBe(await run());
  });

  it('starts further workers', async () => {
    const cluster = await start({ workers: 0 });
    const worker = await cluster.startWorker({ name: 'gpu', resources: { GPU: 1 } });
    expect(worker.name).toBe('gpu');
    const client = await cluster.client();
    const future = client.with({ resources: { GPU: 1 } }).submit(bad.echo, 7);
    expect(await cluster.drive(future.result())).toBe(7);
  });

  it('asks the rules of its configuration', async () => {
    const pinned = defineRule({
      name: 'pinned',
      apiVersion: 1,
      create: () => ({
        concerns: ({ annotations }) => annotations?.['pinned'] === true,
        filter: (_task, { rank }) => rank === 1 || { refuse: 'it is not the second worker' },
      }),
    });
    const config = { scheduler: { policies: { rules: [pinned] } } };
    const cluster = await start({ workers: 3, config });
    const client = await cluster.client();
    const futures = client.with({ annotations: { pinned: true } }).map(
      bad.echo,
      Array.from({ length: 12 }, (_, index) => index),
    );
    await cluster.drive(client.gather(futures));
    const { tasks, workersByRank } = cluster.scheduler.cluster as unknown as ClusterState;
    const holders = new Set(futures.flatMap(({ key }) => tasks.get(key)!.whoHas.items));
    expect([...holders]).toEqual([workersByRank[1]]);
  });

  it('says what a test waited for in vain', async () => {
    const cluster = await start({ workers: 0 });
    const client = await cluster.client();
    const result = client.submit(bad.echo, 1).result();
    result.catch(() => undefined);
    await expect(cluster.drive(result, { maxMs: 10_000 })).rejects.toThrow(
      '10000 ms of virtual time are over; the virtual clock stands at',
    );
    await expect(
      drive(new VirtualClock(), new Promise(() => undefined), { idleMs: 20 }),
    ).rejects.toThrow('no timer is left; the virtual clock stands at 0 ms');
  });
});

describe('a network that fails on demand', () => {
  it('cut: a worker whose connection breaks is replaced by the others', async () => {
    const cluster = await start({ workers: 1 });
    await cluster.startWorker({ name: 'second' });
    const client = await cluster.client();
    const before = client.map(bad.echo, [1, 2, 3, 4]);
    await cluster.drive(client.gather(before));
    cluster.transport.cut((address) => address !== cluster.address);
    const after = client.with({ pure: false }).map(bad.echo, [5, 6]);
    expect(await cluster.drive(client.gather([...before, ...after]))).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('refuse: nothing new is reached until it is restored', async () => {
    const cluster = await start();
    cluster.transport.refuse();
    await expect(cluster.client()).rejects.toMatchObject({ code: 'ERR_CONNECT' });
    cluster.transport.restore();
    const client = await cluster.client();
    expect(await cluster.drive(client.submit(bad.echo, 1).result())).toBe(1);
  });

  it('stall: messages that were held arrive in order, and nothing is lost', async () => {
    const cluster = await start({ workers: 2 });
    const client = await cluster.client();
    cluster.transport.stall();
    const futures = client.map(bad.echo, [1, 2, 3]);
    await cluster.pass(1000);
    expect(cluster.scheduler.cluster.tasks.size).toBe(0);
    cluster.transport.restore();
    expect(await cluster.drive(client.gather(futures))).toEqual([1, 2, 3]);
  });

  it('stall for longer than the time to live: the scheduler gives the workers up', async () => {
    const scheduler = { workerTtl: '5s' };
    const cluster = await start({ workers: 2, config: { scheduler } });
    cluster.transport.stall();
    await cluster.until(() => cluster.scheduler.cluster.workers.size < 2);
    expect(cluster.scheduler.cluster.workers.size).toBeLessThan(2);
  });

  it('tamper: a connection breaks at one message', async () => {
    const cluster = await start({ workers: 1 });
    await cluster.startWorker({ name: 'second' });
    const client = await cluster.client();
    cluster.transport.tamper(({ message: { op } }) => op === 'task-finished', 'cut');
    expect(await cluster.drive(client.submit(bad.echo, 3).result())).toBe(3);
    expect(cluster.scheduler.cluster.workers.size).toBe(1);
  });

  it('tamper: a result that is reported twice counts once', async () => {
    const cluster = await start({ workers: 1 });
    const client = await cluster.client();
    cluster.transport.tamper(
      ({ message: { op } }) => op === 'task-finished',
      'duplicate',
      Infinity,
    );
    const futures = client.map(bad.echo, [1, 2, 3]);
    expect(await cluster.drive(client.gather(futures))).toEqual([1, 2, 3]);
    expect(cluster.logged).toEqual([]);
  });

  it.each<[MessageFate, number[]]>([
    ['drop', [1, 3]],
    ['duplicate', [1, 2, 2, 3]],
    [{ delayMs: 5 }, [1, 3, 2]],
    ['cut', [1]],
  ])('tamper: %j of the second of three messages, either way', async (fate, expected) => {
    const clock = new VirtualClock();
    const transport = new FaultyTransport(new InMemoryTransport(clock), clock);
    const got: Record<string, unknown[]> = { connecting: [], listening: [] };
    const ends: Connection[] = [];
    const serve = (end: string) => (connection: Connection) => {
      ends.push(connection);
      return {
        onMessages: (batch: readonly { n?: unknown }[]) =>
          void got[end]!.push(...batch.map(({ n }) => n)),
        onClose: () => undefined,
      };
    };
    const { address } = await transport.listen('inmemory://node:0', serve('listening'));
    await drive(clock, transport.connect(address, serve('connecting')));
    for (const from of ['connecting', 'listening']) {
      transport.tamper((sent) => sent.from === from && sent.message['n'] === 2, fate);
    }
    for (const n of [1, 2, 3]) {
      for (const end of ends) end.send({ op: 'test', n });
      await clock.advanceAsync(1);
    }
    await clock.advanceAsync(10);
    expect(got['listening']).toEqual(expected);
    // The connection is cut in both directions at once.
    expect(got['connecting']).toEqual(expected);
  });
});

describe('a cluster in virtual time over a transport of its author', () => {
  it('computes over sockets, and an hour takes a moment', async () => {
    const transport = new TcpTransport(new SystemClock());
    const cluster = await start({ workers: 2, transport });
    expect(cluster.address).toMatch(/^tcp:/);
    const client = await cluster.client();
    expect(await cluster.drive(client.gather(client.map(bad.echo, [1, 2, 3])))).toEqual([1, 2, 3]);
    await cluster.pass(3_600_000);
    expect(await cluster.drive(client.submit(bad.echo, 4).result())).toBe(4);
  });
});

transportConformance(
  'a faulty transport without faults',
  () => {
    const clock = new VirtualClock();
    return {
      transport: new FaultyTransport(new InMemoryTransport(clock)),
      listenAddress: 'inmemory://node:0',
      vacantAddress: 'inmemory://vacant',
      until: (holds) => clock.runUntil(holds),
    };
  },
  { describe, it },
);

it('a connection that stands still when its peer dies ends when it is cut, once', async () => {
  const clock = new VirtualClock();
  const transport = new FaultyTransport(new InMemoryTransport(clock));
  const accepted: Connection[] = [];
  const ends: (Error | undefined)[] = [];
  const listener = await transport.listen('inmemory://node:0', (connection) => {
    accepted.push(connection);
    return { onMessages: () => undefined, onClose: () => undefined };
  });
  const open = () => ({
    onMessages: () => undefined,
    onClose: (error?: Error) => void ends.push(error),
  });
  await drive(clock, transport.connect(listener.address, open));
  transport.stall();
  accepted[0]!.abort(new Error('killed'));
  await clock.advanceAsync(10);
  expect(ends).toEqual([]);
  transport.cut();
  await clock.advanceAsync(10);
  expect(ends.map(String)).toEqual([expect.stringContaining('the network failed')]);
  transport.restore();
  await clock.advanceAsync(10);
  expect(ends).toHaveLength(1);
  expect(transport.connectionCount).toBe(0);
});
