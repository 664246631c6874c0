import { describe, expect, test } from 'vitest';
import { type Client, Future } from '../../../adapters/client/index.ts';
import { fail, inc, slow, total } from './tasks.ts';
import type { VirtualCluster } from '../../kit/virtual-cluster.ts';
import { startCluster } from '../../kit/virtual-cluster.ts';

interface Pair {
  readonly cluster: VirtualCluster;
  readonly a: Client;
  readonly b: Client;
  passing<T>(promise: Promise<T>): Promise<T>;
  /** Lets messages arrive, and no timer come. */
  soon(): Promise<void>;
}

async function start(scheduler: object = {}, workers = 1): Promise<Pair> {
  const cluster = await startCluster(workers, { scheduler });
  const b = await cluster.passing(cluster.local.client({ name: 'b' }));
  return {
    cluster,
    a: cluster.client,
    b,
    passing: (promise) => cluster.passing(promise),
    soon: async () => {
      for (let turn = 0; turn < 10; turn++) await cluster.clock.advanceAsync(0);
    },
  };
}

/** What becomes of a promise, to be looked at without waiting for it. */
function watched<T>(promise: Promise<T>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'open' };
  promise.then(
    (value) => (seen.outcome = value),
    (error: unknown) => (seen.outcome = (error as { code?: unknown }).code ?? error),
  );
  return seen;
}

const owners = ({ cluster }: Pair, key: string): string[] =>
  [...(cluster.local.scheduler.cluster.tasks.get(key)?.whoWants.items ?? [])].map(
    ({ key: k }) => k,
  );

describe('a variable', () => {
  test('is what was set last, for every client', async () => {
    const { a, b, passing } = await start();
    await passing(a.variable('model').set({ size: 1, when: new Date(5) }));
    await passing(a.variable('model').set({ size: 2, when: new Date(7) }));
    expect(await passing(b.variable('model').get())).toEqual({ size: 2, when: new Date(7) });
  });

  test('is waited for, and a wait that times out is rejected', async () => {
    const { a, b, passing, cluster } = await start();
    const waiting = b.variable<number>('x').get();
    await expect(passing(b.variable('x').get({ timeoutMs: 0 }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    const startMs = cluster.clock.nowMs();
    await expect(passing(b.variable('x').get({ timeoutMs: 300 }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
      message: 'the variable "x" did not come within 300 ms',
    });
    expect(cluster.clock.nowMs() - startMs).toBeGreaterThanOrEqual(300);
    await passing(a.variable('x').set(undefined as never));
    expect(await passing(waiting)).toBeUndefined();
  });

  test('that was deleted is waited for again', async () => {
    const { a, b, passing, soon } = await start();
    await passing(a.variable('x').set(1));
    await passing(a.variable('x').delete());
    await passing(a.variable('x').delete());
    const waiting = watched(b.variable('x').get());
    await soon();
    expect(waiting.outcome).toBe('open');
    await passing(a.variable('x').set(2));
    await soon();
    expect(waiting.outcome).toBe(2);
  });

  test('keeps the result of a future alive, also when its client goes', async () => {
    const pair = await start();
    const { a, b, passing, soon } = pair;
    const future = b.submit(inc, 1);
    await passing(future.result());
    await passing(b.variable('answer').set({ deep: [future] }));
    await passing(b.close());
    await soon();
    expect(owners(pair, future.key)).toEqual(['service:variable-answer']);
    const { deep } = await passing(a.variable<{ deep: [Future<number>] }>('answer').get());
    expect(deep[0]).toBeInstanceOf(Future);
    expect(await passing(deep[0].result())).toBe(2);
    await soon();
    expect(owners(pair, future.key).sort()).toEqual([a.id, 'service:variable-answer'].sort());
    await passing(a.variable('answer').set('something else'));
    expect(owners(pair, future.key)).toEqual([a.id]);
    deep[0].release();
    await soon();
    expect(pair.cluster.local.scheduler.cluster.tasks.has(future.key)).toBe(false);
    expect([...pair.cluster.local.scheduler.cluster.clients.keys()]).not.toContain(
      'service:variable-answer',
    );
  });

  test('gives a future that its reader released in the same moment', async () => {
    const { a, b, passing } = await start();
    const mine = a.submit(inc, 1);
    await passing(mine.result());
    await passing(a.variable('x').set(mine));
    const reading = a.variable<Future<number>>('x').get();
    mine.release(); // On its way to the scheduler while the answer is on its way here.
    const deleting = b.variable('x').delete();
    const again = await passing(reading);
    await passing(deleting);
    expect(await passing(again.result())).toBe(2);
  });

  test('carries a future of a task that has failed, or is still to run', async () => {
    const { a, b, passing } = await start();
    const late = a.submit(slow, 20, 3);
    const failed = a.submit(fail, 'no');
    await passing(
      a.variable('both').set(
        new Map([
          ['late', late],
          ['failed', failed],
        ]),
      ),
    );
    const both = await passing(b.variable<Map<string, Future<number>>>('both').get());
    expect(await passing(both.get('late')!.result())).toBe(3);
    await expect(passing(both.get('failed')!.result())).rejects.toThrow('no');
  });

  test('refuses a future that was cancelled, and a value that cannot travel', async () => {
    const { a, passing } = await start();
    const future = a.submit(slow, 1000, 1);
    future.cancel();
    await expect(passing(a.variable('x').set(future))).rejects.toMatchObject({
      code: 'ERR_CANCELLED',
    });
    await expect(passing(a.variable('x').set({ f: [() => 1] }))).rejects.toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
    });
    await expect(passing(a.variable('x').get({ timeoutMs: 10 }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
  });
});

describe('a queue', () => {
  test('is first in, first out, among items and among those who wait', async () => {
    const { a, b, passing, soon } = await start();
    const [first, second] = [watched(a.queue('q').get()), watched(b.queue('q').get())];
    await soon();
    for (const item of [1, 2, 3, 4]) await passing(b.queue('q').put(item));
    await soon();
    expect([first.outcome, second.outcome]).toEqual([1, 2]);
    expect(await passing(a.queue('q').size())).toBe(2);
    expect(await passing(a.queue('q').getAll())).toEqual([3, 4]);
    expect(await passing(a.queue('q').getAll())).toEqual([]);
  });

  test('makes who puts wait while it is full, in turn', async () => {
    const { a, b, passing, soon } = await start();
    const queue = a.queue<number>('q', { maxSize: 1 });
    await passing(queue.put(1));
    const second = watched(queue.put(2));
    const third = watched(b.queue('q').put(3));
    await expect(passing(b.queue('q').put(4, { timeoutMs: 50 }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    expect([second.outcome, third.outcome]).toEqual(['open', 'open']);
    expect(await passing(queue.get())).toBe(1);
    await soon();
    expect([second.outcome, third.outcome]).toEqual([undefined, 'open']);
    expect(await passing(queue.getAll(1))).toEqual([2]);
    expect(await passing(queue.get())).toBe(3);
  });

  test('has one size, and no useless one', async () => {
    const { a, b, passing } = await start();
    await passing(a.queue('q', { maxSize: 2 }).put(1));
    await expect(passing(b.queue('q', { maxSize: 3 }).put(1))).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
      data: { reason: 'mismatch', maxSize: 2, asked: 3 },
    });
    await expect(passing(b.queue('p', { maxSize: 0 }).put(1))).rejects.toThrow(/maxSize/);
  });

  test('keeps futures alive while they are in it, the same one twice', async () => {
    const pair = await start();
    const { a, b, passing, soon } = pair;
    const future = a.submit(inc, 4);
    await passing(a.queue('q').put(future));
    await passing(a.queue('q').put(future));
    future.release();
    const mine = await passing(b.queue<Future<number>>('q').get());
    await soon();
    expect(owners(pair, future.key).sort()).toEqual([b.id, 'service:queue-q']);
    expect(await passing(mine.result())).toBe(5);
    mine.release();
    await soon();
    expect(owners(pair, future.key)).toEqual(['service:queue-q']);
    await passing(b.queue('q').delete());
    expect(pair.cluster.local.scheduler.cluster.tasks.has(future.key)).toBe(false);
  });

  test('that is deleted fails the waiting calls', async () => {
    const { a, b, passing, soon } = await start();
    const waiting = watched(a.queue('q').get());
    await soon();
    await passing(b.queue('q').delete());
    await soon();
    expect(waiting.outcome).toBe('ERR_COORDINATION');
  });

  test('gives nothing to a client that is gone', async () => {
    const { a, b, passing, soon } = await start();
    const gone = watched(b.queue('q').get());
    await soon();
    await passing(b.close());
    await passing(a.queue('q').put('precious'));
    expect(gone.outcome).toBe('ERR_CLOSED');
    expect(await passing(a.queue('q').get())).toBe('precious');
  });
});

describe('a lock', () => {
  test('is held by one at a time, in the order of coming', async () => {
    const { a, b, passing, soon } = await start();
    const order: string[] = [];
    const use = async (client: Client, label: string): Promise<void> => {
      await using lease = await client.lock('l').acquire();
      order.push(`${label} has it: ${lease.isHeld}`);
      await client.submit(inc, 0).result();
      order.push(`${label} lets go`);
    };
    const all: Promise<void>[] = [];
    for (const [client, label] of [
      [a, 'first'],
      [b, 'second'],
      [a, 'third'],
    ] as const) {
      all.push(use(client, label));
      await soon();
    }
    await passing(Promise.all(all));
    expect(order).toEqual(
      ['first', 'second', 'third'].flatMap((label) => [
        `${label} has it: true`,
        `${label} lets go`,
      ]),
    );
    expect(await passing(a.lock('l').isLocked())).toBe(false);
  });

  test('that runs a function is held while it runs, and free when it has ended or failed', async () => {
    const { a, b, passing } = await start();
    const isLocked = (): Promise<boolean> => b.lock('l').isLocked();
    expect(await passing(a.lock('l').run(isLocked))).toBe(true);
    expect(await passing(isLocked())).toBe(false);
    const failing = a.lock('l').run((lease) => {
      expect(lease.isHeld).toBe(true);
      throw new Error('failed');
    });
    await expect(passing(failing)).rejects.toThrow('failed');
    expect(await passing(isLocked())).toBe(false);
    const held = await passing(b.lock('l').acquire());
    const late = a.lock('l').run(() => 'never', { timeoutMs: 100 });
    await expect(passing(late)).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
    await passing(held.release());
  });

  test('is not given to who comes too late or may not wait', async () => {
    const { a, b, passing } = await start();
    const held = await passing(a.lock('l').acquire());
    expect(await passing(b.lock('l').isLocked())).toBe(true);
    for (const timeoutMs of [0, 200]) {
      await expect(passing(b.lock('l').acquire({ timeoutMs }))).rejects.toMatchObject({
        code: 'ERR_TIMEOUT',
      });
    }
    await passing(held.release());
    await passing(held.release());
    await passing((await passing(b.lock('l').acquire({ timeoutMs: 0 }))).release());
  });

  test('cannot be released by who does not hold it', async () => {
    const { a, b, passing } = await start();
    await passing(a.lock('l').acquire());
    await expect(passing(b.lock('l').release())).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
    });
    await expect(passing(b.command('coordination.release', { lease: 1 }))).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
      data: { reason: 'not-held' },
    });
    expect(await passing(b.lock('l').isLocked())).toBe(true);
  });

  test('is renewed for as long as it is held', async () => {
    const { a, b, passing, cluster } = await start({ coordination: { leaseTimeout: '1s' } });
    const held = await passing(a.lock('l').acquire());
    await expect(passing(b.lock('l').acquire({ timeoutMs: 20_000 }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    expect(held.isHeld).toBe(true);
    await passing(held.release());
    expect(cluster.clock.nowMs()).toBeGreaterThanOrEqual(1_020_000);
  });

  test('goes to the next when its holder goes', async () => {
    const { a, b, passing, soon } = await start();
    await passing(b.lock('l').acquire());
    const next = watched(a.lock('l').acquire());
    await soon();
    expect(next.outcome).toBe('open');
    await passing(b.close());
    await soon();
    expect(next.outcome).toMatchObject({ name: 'l', isHeld: true });
  });

  test('goes to the next when its holder does not renew it, and the holder is notified', async () => {
    const { a, b, passing, soon } = await start({ coordination: { leaseTimeout: '1s' } });
    // A lease of which the client knows nothing is never renewed: as if it were stuck.
    await passing(b.command('coordination.acquireLock', { name: 'l' }));
    const next = watched(a.lock('l').acquire());
    await soon();
    expect(next.outcome).toBe('open');
    await passing(a.variable('never').get({ timeoutMs: 1_000 })).catch(() => undefined);
    expect(next.outcome).toMatchObject({ isHeld: true });
    expect(await passing(b.command('coordination.renew', { leases: [1] }))).toEqual([1]);
  });

  test('that was lost says so to its holder', async () => {
    const { a, passing, soon } = await start();
    const held = await passing(a.lock('l').acquire());
    await passing(a.command('coordination.release', { lease: 1 })); // Behind its back.
    await passing(a.variable('never').get({ timeoutMs: 11_000 })).catch(() => undefined);
    await soon();
    expect(held.signal.aborted).toBe(true);
    expect(held.isHeld).toBe(false);
    await expect(passing(held.release())).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
      data: { reason: 'lost' },
    });
  });
});

describe('a semaphore', () => {
  test('has a number of leases, and the next waiting call gets a free one', async () => {
    const { a, b, passing, soon } = await start();
    const [mine, its] = [a.semaphore('s', { leases: 2 }), b.semaphore('s', { leases: 2 })];
    const first = await passing(mine.acquire());
    await passing(its.acquire());
    const third = watched(mine.acquire());
    await soon();
    expect(await passing(mine.state())).toEqual({ held: 2, waiting: 1, leases: 2 });
    await passing(first.release());
    await soon();
    expect(third.outcome).toMatchObject({ isHeld: true });
    await passing(its.release());
    await expect(passing(its.release())).rejects.toMatchObject({ code: 'ERR_COORDINATION' });
  });

  test('has the same number of leases for all clients', async () => {
    const { a, b, passing } = await start();
    await passing(a.semaphore('s', { leases: 2 }).acquire());
    await expect(passing(b.semaphore('s', { leases: 3 }).acquire())).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
      data: { reason: 'mismatch', leases: 2, asked: 3 },
    });
    for (const leases of [0, 1.5, 'two', undefined]) {
      await expect(
        passing(b.semaphore('t', { leases: leases as number }).acquire()),
      ).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
    }
  });

  test('is disposed of with all that was acquired through it', async () => {
    const { a, b, passing } = await start();
    {
      await using mine = a.semaphore('s', { leases: 2 });
      await passing(mine.acquire());
      await passing(mine.acquire());
      const disposing = mine[Symbol.asyncDispose]();
      await passing(disposing);
    }
    expect(await passing(b.semaphore('s', { leases: 2 }).state())).toMatchObject({ held: 0 });
  });
});

describe('an event', () => {
  test('lets all waiting calls continue, until it is cleared', async () => {
    const { a, b, passing, soon } = await start();
    const waiting = [watched(a.event('e').wait()), watched(b.event('e').wait())];
    await soon();
    expect(await passing(a.event('e').isSet())).toBe(false);
    await passing(b.event('e').set());
    await soon();
    expect(waiting.map(({ outcome }) => outcome)).toEqual([undefined, undefined]);
    await passing(a.event('e').wait({ timeoutMs: 0 }));
    expect(await passing(a.event('e').isSet())).toBe(true);
    await passing(a.event('e').clear());
    await expect(passing(b.event('e').wait({ timeoutMs: 10 }))).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
  });
});

describe('a published data set', () => {
  test('outlives its client, and its tasks can be used by another', async () => {
    const pair = await start({}, 2);
    const { a, b, passing } = pair;
    const parts = b.map(inc, [1, 2, 3]);
    await passing(b.publish('parts', { parts, note: 'three' }));
    await passing(b.close());
    expect(await passing(a.listPublished())).toEqual(['parts']);
    const { parts: mine, note } = await passing(
      a.getPublished<{ parts: Future<number>[]; note: string }>('parts'),
    );
    expect(note).toBe('three');
    expect(await passing(a.submit(total, mine).result())).toBe(9);
    await passing(a.unpublish('parts'));
    expect(owners(pair, mine[0]!.key)).toEqual([a.id]);
  });

  test('has a unique name', async () => {
    const { a, b, passing } = await start();
    await passing(a.publish('x', 1));
    await expect(passing(b.publish('x', 2))).rejects.toMatchObject({ data: { reason: 'exists' } });
    await passing(b.publish('x', 3, { override: true }));
    expect(await passing(a.getPublished('x'))).toBe(3);
    await passing(a.unpublish('x'));
    await expect(passing(a.getPublished('x'))).rejects.toThrow('there is no data set "x"');
    await expect(passing(a.unpublish('x'))).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
      data: { reason: 'unknown' },
    });
  });
});

describe('a topic', () => {
  test('reaches its subscribers in order, and no other client', async () => {
    const { a, b, passing, soon } = await start();
    const seen: unknown[] = [];
    const handler = (message: unknown, { topic }: { topic: string }): void =>
      void seen.push([topic, message]);
    await passing(b.subscribeTopic('steps', handler));
    await passing(b.subscribeTopic('other', handler));
    for (const n of [1, 2]) await passing(a.logEvent('steps', { n }));
    await passing(a.logEvent(['other', 'unheard'], 'x'));
    await soon();
    expect(seen).toEqual([
      ['steps', { n: 1 }],
      ['steps', { n: 2 }],
      ['other', 'x'],
    ]);
    await passing(b.unsubscribeTopic('steps'));
    await passing(a.logEvent('steps', { n: 3 }));
    await soon();
    expect(seen).toHaveLength(3);
    const kept = await passing(a.getEvents('steps'));
    expect(kept.map(({ message }) => message)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect((await passing(a.getEvents())).get('unheard')).toBe(1);
  });

  test('can be left and entered again, each handler by itself', async () => {
    const { a, passing, soon } = await start();
    const seen: unknown[] = [];
    const [one, two] = ['one', 'two'].map(
      (label) =>
        (message: unknown): void =>
          void seen.push(`${label} ${String(message)}`),
    ) as [() => void, () => void];
    await passing(a.subscribeTopic('t', one));
    await passing(a.subscribeTopic('t', two));
    await passing(a.unsubscribeTopic('t', one));
    await passing(a.logEvent('t', 1));
    const leaving = a.unsubscribeTopic('t');
    const entering = a.subscribeTopic('t', one);
    await passing(Promise.all([leaving, entering]));
    await passing(a.logEvent('t', 2));
    await soon();
    expect(seen).toEqual(['two 1', 'one 2']);
    await expect(passing(a.unsubscribeTopic('t', two))).rejects.toMatchObject({
      code: 'ERR_COORDINATION',
    });
  });

  test('does not fill the scheduler on account of a slow client', async () => {
    const { cluster, a, b, passing } = await start();
    await passing(b.command('coordination.subscribe', { name: 't' })); // And fetches nothing.
    const { scheduler } = cluster.local;
    for (let n = 0; n < 10_005; n++) {
      scheduler.enqueue({ op: 'log-event', topics: ['t'], message: n });
    }
    const batch = await passing(
      b.command<{ events: { message: number }[]; missed: number }>('coordination.nextEvents'),
    );
    expect(batch.missed).toBe(5);
    expect(batch.events[0]?.message).toBe(5);
    await passing(a.logEvent('t', 'on it goes'));
  });
});

describe('coordination', () => {
  test('fails all who wait when the scheduler closes', async () => {
    const { a, passing, soon, cluster } = await start();
    await passing(a.lock('held').acquire());
    const waiting = [
      watched(a.variable('x').get()),
      watched(a.queue('x').get()),
      watched(a.lock('held').acquire()),
      watched(a.event('x').wait()),
    ];
    await soon();
    await passing(cluster.local.scheduler.close());
    await soon();
    expect(waiting.map(({ outcome }) => outcome)).toEqual(Array(4).fill('ERR_CLOSED'));
  });

  test('can be switched off', async () => {
    const { a, passing } = await start({ coordination: { enabled: false } });
    await expect(passing(a.variable('x').set(1))).rejects.toThrow(
      'there is no command "coordination.setVariable"',
    );
  });

  test('has a limit for its memory, and gives back what it does not need any more', async () => {
    const { a, passing } = await start({ coordination: { memoryLimit: '10 kB' } });
    const big = new Uint8Array(6_000);
    for (let round = 0; round < 5; round++) {
      await passing(a.variable('x').set(big));
      await expect(passing(a.queue('q').put(big))).rejects.toMatchObject({
        code: 'ERR_COORDINATION',
        data: { reason: 'full' },
      });
      await expect(passing(a.publish('d', big))).rejects.toMatchObject({
        data: { reason: 'full' },
      });
      await passing(a.variable('x').delete());
    }
    await passing(a.variable('x').set(big));
  });

  test('refuses malformed messages, and continues', async () => {
    const { a, passing, cluster } = await start();
    const wrong: readonly (readonly [command: string, parameters: unknown])[] = [
      ['setVariable', { name: 5, value: new Uint8Array(1) }],
      ['setVariable', { name: 'x' }],
      ['setVariable', { name: 'x', value: 'text' }],
      ['setVariable', { name: '', value: new Uint8Array(1) }],
      ['getVariable', { name: 'x'.repeat(2000) }],
      ['getVariable', { name: 'x', timeoutMs: -1 }],
      ['putQueue', { name: 'x', value: new Uint8Array(1), keys: [1] }],
      ['acquireLock', undefined],
      ['acquireLease', { name: 'x' }],
      ['release', {}],
      ['renew', { leases: ['a'] }],
      ['subscribe', { nam: 'x' }],
      ['received', { handover: -1 }],
    ];
    for (const [command, parameters] of wrong) {
      await expect(
        passing(a.command(`coordination.${command}`, parameters)),
        command,
      ).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
    }
    const local = cluster.local.scheduler;
    expect(() => local.command('coordination.acquireLock', { name: 'x' })).toThrow(/only a client/);
    await passing(a.variable('x').set(1));
    expect(await passing(a.variable('x').get())).toBe(1);
  });

  test('leaves nothing behind when all clients have left', async () => {
    const { a, b, passing, soon, cluster } = await start();
    const future = b.submit(inc, 1);
    await passing(b.lock('l').acquire());
    await passing(b.semaphore('s', { leases: 1 }).acquire());
    await passing(b.queue('q', { maxSize: 1 }).put(future));
    void watched(b.queue('q').put(future));
    void watched(b.variable('v').get());
    void watched(b.event('e').wait());
    await passing(b.subscribeTopic('t', () => undefined));
    await soon();
    await passing(b.close());
    await soon();
    expect((await passing(a.queue<Future<number>>('q').getAll())).length).toBe(1);
    await soon();
    const { clients } = cluster.local.scheduler.cluster;
    expect([...clients.keys()].filter((key) => /^(queue|handover|variable)/.test(key))).toEqual([]);
    expect(await passing(a.lock('l').isLocked())).toBe(false);
  });
});
