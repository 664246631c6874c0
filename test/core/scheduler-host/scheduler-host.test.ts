import { describe, expect, it } from 'vitest';
import { definePlugin, PROTOCOL, type YardmasterError } from '../../../core/api/index.ts';
import { VERSION } from '../../../core/api/plugin.ts';
import manifest from '../../../package.json' with { type: 'json' };
import type { TestHost } from '../../kit/test-host.ts';
import { identityOf, type RawPeer, startHost } from '../../kit/test-host.ts';

const spec = { module: 'm', name: 'f', version: '1', args: new Uint8Array() };
const graphOf = (key: string, dependencies: string[] = []) => ({
  op: 'update-graph',
  tasks: [{ key, dependencies, runSpec: spec }],
  keys: [key],
});

/** Answers every compute-task with a result of eight bytes. */
async function finishAll(worker: RawPeer): Promise<void> {
  const orders = worker.received.splice(0).filter(({ op }) => op === 'compute-task');
  for (const { key, runId } of orders) {
    await worker.send({ op: 'task-finished', key, runId, nbytes: 8, type: 'number', timings: [] });
  }
}

describe('the conversation', () => {
  it('a task goes to the worker, and its result is reported to the client', async () => {
    const host = await startHost();
    const worker = await host.worker('inmemory://w1');
    const client = await host.client();
    await client.send(graphOf('x'));
    expect(worker.ops()).toEqual(['compute-task']);
    await finishAll(worker);
    expect(client.received).toEqual([
      { op: 'key-in-memory', key: 'x', type: 'number', nbytes: 8, workers: ['inmemory://w1'] },
    ]);
    const story = host.scheduler.story('x');
    expect(story.map(({ finish }) => finish)).toEqual(['waiting', 'processing', 'memory']);
  });

  it('a small result is asked for, and reaches the client with the news of it', async () => {
    const host = await startHost({ sendAlong: '2 KiB' });
    const worker = await host.worker('inmemory://w1');
    const client = await host.client();
    await client.send(graphOf('x'));
    const [order] = worker.received as { key?: string; runId?: number }[];
    expect(order).toMatchObject({ op: 'compute-task', key: 'x', sendAlongBytes: 2048 });
    const value = new Uint8Array([1, 2, 3]);
    const message = { op: 'task-finished', key: 'x', nbytes: 3, type: 'number', timings: [] };
    await worker.send({ ...message, runId: order?.runId, value });
    expect(client.received).toMatchObject([{ op: 'key-in-memory', key: 'x', nbytes: 3, value }]);
  });

  it('no result is asked for that no client waits for, and none at all with a limit of 0', async () => {
    const host = await startHost();
    const none = await startHost({ sendAlong: 0 });
    const orders: object[] = [];
    for (const { scheduler } of [host, none].map((each) => ({ scheduler: each }))) {
      const worker = await scheduler.worker('inmemory://w1');
      const client = await scheduler.client();
      const tasks = [
        { key: 'inner', dependencies: [], runSpec: spec },
        { key: 'outer', dependencies: ['inner'], runSpec: spec },
      ];
      await client.send({ op: 'update-graph', tasks, keys: ['outer'] });
      orders.push(...worker.received);
      await finishAll(worker);
      orders.push(...worker.received);
    }
    expect(orders.map((order) => 'sendAlongBytes' in order)).toEqual([false, true, false, false]);
  });

  it('says who it is, and how often to report', async () => {
    const host = await startHost();
    const worker = await host.peer();
    expect(await worker.hello('worker')).toEqual({
      protocol: PROTOCOL,
      version: manifest.version,
      serverId: expect.stringMatching(/^scheduler-/) as string,
    });
    const identity = identityOf('inmemory://w1');
    expect(await worker.request('register-worker', { identity, status: 'running' })).toEqual({
      heartbeatIntervalMs: 500,
      nowMs: host.clock.nowMs(),
    });
    const client = await host.peer();
    await client.hello('client');
    expect(await client.request('register-client', { client: 'c' })).toEqual({
      heartbeatIntervalMs: 5000,
      messageBytesMax: expect.any(Number) as number,
    });
  });

  it('the version is that of the package', () => expect(VERSION).toBe(manifest.version));

  it('a worker gets the answer to its registration before its first task', async () => {
    const host = await startHost();
    const client = await host.client();
    await client.send(graphOf('x'));
    const worker = await host.peer();
    await worker.hello('worker');
    const identity = identityOf('inmemory://w1');
    await worker.request('register-worker', { identity, status: 'running' });
    expect(worker.wire).toEqual(['reply', 'reply', 'compute-task']);
  });

  it('a worker that is lost costs its tasks suspicion, one that says goodbye does not', async () => {
    const host = await startHost({ workerTtl: 'inf' });
    const client = await host.client();
    const first = await host.worker('inmemory://w1');
    await client.send(graphOf('x'));
    const events: unknown[] = [];
    host.scheduler.events.on('worker-removed', ({ address }) => events.push(address));
    first.channel.abort(new Error('power cut'));
    await host.settle();
    expect(events).toEqual(['inmemory://w1']);
    const task = host.scheduler.cluster.tasks.get('x');
    expect(task?.suspicious).toBe(1);
    const second = await host.worker('inmemory://w2');
    expect(second.ops()).toEqual(['compute-task']);
    await second.send({ op: 'worker-status-change', status: 'closing' });
    await second.close();
    expect(host.scheduler.cluster.workers.size).toBe(0);
    expect(task?.suspicious).toBe(1);
  });

  it('a client that leaves stops wanting its keys', async () => {
    const host = await startHost();
    const client = await host.client('c');
    await client.send(graphOf('x'));
    expect(host.scheduler.cluster.tasks.size).toBe(1);
    await client.close();
    expect(host.scheduler.cluster.tasks.size).toBe(0);
    expect(host.scheduler.cluster.clients.has('c')).toBe(false);
  });

  it('a worker that has connected anew takes the place of its lost connection', async () => {
    const host = await startHost();
    const secret = 'a secret of one worker';
    const lost = await host.worker('inmemory://w1', { name: 'one' }, { secret });
    const client = await host.client('c');
    await client.send(graphOf('x'));
    const again = await host.worker('inmemory://w1', { name: 'one' }, { secret });
    expect(lost.closedWith).toBeInstanceOf(Error);
    expect([...host.scheduler.cluster.workers.keys()]).toEqual(['inmemory://w1']);
    expect(again.ops()).toEqual(['compute-task']);
    // It has not died.
    expect(host.scheduler.cluster.tasks.get('x')?.suspicious).toBe(0);
  });

  it('address and name of a worker, and the name of a client, are taken once', async () => {
    const host = await startHost();
    await host.worker('inmemory://w1', { name: 'one' });
    await host.client('c');
    const refused = async (role: string, method: string, parameters: object): Promise<unknown> => {
      const peer = await host.peer();
      await peer.hello(role);
      const error: unknown = await peer
        .request(method, { ...parameters })
        .catch((thrown: unknown) => thrown);
      return `${(error as YardmasterError).code} ${(error as Error).message}`;
    };
    const register = (identity: object): object => ({ identity, status: 'running' });
    expect(
      await refused(
        'worker',
        'register-worker',
        register(identityOf('inmemory://w1', { name: 'x', serverId: 'another process' })),
      ),
    ).toBe(
      'ERR_REGISTRATION there is a worker with the address "inmemory://w1" already; stop it, or choose another address',
    );
    expect(
      await refused(
        'worker',
        'register-worker',
        register(identityOf('inmemory://w2', { name: 'one' })),
      ),
    ).toBe(
      'ERR_REGISTRATION there is a worker with the name "one" already; stop it, or choose another name',
    );
    expect(await refused('client', 'register-client', { client: 'c' })).toBe(
      'ERR_REGISTRATION there is a client "c" already; choose another name',
    );
    expect(host.scheduler.cluster.workers.size).toBe(1);
  });

  it('no peer can send in the name of another', async () => {
    const host = await startHost();
    const first = await host.worker('inmemory://w1');
    const second = await host.worker('inmemory://w2');
    const client = await host.client();
    await client.send(graphOf('x'));
    const { runId } = [...first.received, ...second.received][0] as { runId?: number };
    const liar = first.received.length > 0 ? second : first;
    const worker = liar === first ? 'inmemory://w2' : 'inmemory://w1';
    await liar.send({
      ...{ op: 'task-finished', key: 'x', runId, nbytes: 1, type: 't', timings: [] },
      worker,
      stimulusId: 'the-lie',
    });
    expect(host.scheduler.cluster.tasks.get('x')?.state).not.toBe('memory');
  });
});

describe('a peer that breaks the protocol', () => {
  const message = { op: 'task-finished', key: 'x', runId: 1, nbytes: 1, type: 't', timings: [] };

  it.each<[what: string, broken: object, says: string, field: string]>([
    [
      'a key that is a number',
      { ...message, key: 17 },
      'worker message task-finished: key must be string (got 17)',
      'key',
    ],
    ['a missing field', { op: 'add-keys' }, 'worker message add-keys: keys is missing', 'keys'],
    [
      'a wrong item',
      { op: 'add-keys', keys: ['a', null] },
      'worker message add-keys: keys[1] must be string (got null)',
      'keys[1]',
    ],
    [
      'a negative size',
      { ...message, nbytes: -5 },
      'worker message task-finished: nbytes must be >= 0 (got -5)',
      'nbytes',
    ],
    [
      'a result that is no bytes',
      { ...message, value: 'three' },
      'worker message task-finished: value must be bytes (got "three")',
      'value',
    ],
    [
      'an unknown op',
      { op: 'task-finnished' },
      '"task-finnished" is not a message of a worker; did you mean "task-finished"?',
      'op',
    ],
    [
      'a message of a client',
      { op: 'cancel-keys', keys: ['x'], force: true },
      '"cancel-keys" is not a message of a worker',
      'op',
    ],
    [
      'a name of a method of objects',
      { op: 'constructor' },
      '"constructor" is not a message of a worker',
      'op',
    ],
    [
      'an unknown status',
      { op: 'worker-status-change', status: 'asleep' },
      'worker message worker-status-change: status must be one of running, paused, closing-gracefully, closing, closed (got "asleep")',
      'status',
    ],
    [
      'a heartbeat without metrics',
      { op: 'heartbeat-worker', executing: [], workerNowMs: 0, metrics: { memoryBytes: 'a lot' } },
      'worker message heartbeat-worker: metrics.spilledMemoryBytes is missing',
      'metrics.spilledMemoryBytes',
    ],
    [
      'an id that is no text',
      { op: 'keep-alive', stimulusId: 5 },
      'worker message keep-alive: stimulusId must be string (got 5)',
      'stimulusId',
    ],
  ])('%s closes the connection and names the field', async (_what, broken, says, field) => {
    const host = await startHost();
    const errors: YardmasterError[] = [];
    host.scheduler.events.on('error', (error) => errors.push(error));
    const good = await host.worker('inmemory://good');
    const bad = await host.worker('inmemory://bad');
    await bad.send(broken as never);
    expect(errors.map(({ code, message: text }) => [code, text])).toEqual([
      ['ERR_PROTOCOL', `closed the connection to inmemory://bad: ${says}`],
    ]);
    expect(errors[0]?.data).toMatchObject({ field, peer: 'inmemory://bad' });
    expect(bad.received.at(-1)).toMatchObject({ op: 'close', reason: errors[0]?.message });
    expect(bad.closedWith).toBeDefined();
    expect([...host.scheduler.cluster.workers.keys()]).toEqual(['inmemory://good']);
    const client = await host.client();
    await client.send(graphOf('still-works'));
    expect(good.ops()).toContain('compute-task');
  });

  it('a graph with a wrong task is refused as a whole', async () => {
    const host = await startHost();
    const errors: string[] = [];
    host.scheduler.events.on('error', (error) => errors.push(error.message));
    const client = await host.client('c');
    await client.send({
      op: 'update-graph',
      tasks: [
        { key: 'a', dependencies: [] },
        { key: 'b', dependencies: 'a' },
      ],
      keys: ['b'],
    });
    expect(errors).toEqual([
      'closed the connection to c: client message update-graph: tasks[1].dependencies must be array (got "a")',
    ]);
    expect(host.scheduler.cluster.tasks.size).toBe(0);
    expect(client.closedWith).toBeDefined();
  });

  it.each<[what: string, act: (peer: RawPeer) => Promise<unknown>, says: string]>([
    [
      'a message before hello',
      (peer) => peer.send({ op: 'add-keys', keys: [] }),
      'the peer sent "add-keys" before registration',
    ],
    [
      'a request before hello',
      (peer) => peer.request('register-client', { client: 'c' }),
      'the peer sent the request "register-client" before hello',
    ],
    [
      'another protocol',
      (peer) =>
        peer.request('hello', { protocol: 'yardmaster/9', role: 'client', version: '9.0.0' }),
      `speaks yardmaster/9 (version 9.0.0), this scheduler ${PROTOCOL} (version ${VERSION}); install the same version on both sides`,
    ],
    [
      'an unknown role',
      (peer) => peer.hello('boss'),
      'request hello: role must be one of worker, client, peer (got "boss")',
    ],
    ['an unknown request', (peer) => peer.request('shutdown'), '"shutdown" is not a request'],
    [
      'a worker that registers as a client',
      async (peer) => {
        await peer.hello('worker');
        return peer.request('register-client', { client: 'c' });
      },
      'the peer sent "register-client" from a worker',
    ],
    [
      'a worker without threads',
      async (peer) => {
        await peer.hello('worker');
        const identity = identityOf('inmemory://w', { threadCount: 0 });
        return peer.request('register-worker', { identity, status: 'running' });
      },
      'request register-worker: identity.threadCount must be >= 1 (got 0)',
    ],
    [
      'a message without op',
      (peer) => peer.send({ key: 'x' }),
      'the peer sent a message without op',
    ],
  ])('%s is told and closed', async (_what, act, says) => {
    const host = await startHost();
    const errors: YardmasterError[] = [];
    host.scheduler.events.on('error', (error) => errors.push(error));
    const peer = await host.peer();
    const answer = await act(peer).catch((thrown: unknown) => thrown);
    if (answer instanceof Error) expect(answer.message).toContain(says);
    await host.settle();
    expect(errors.map(({ code }) => code)).toEqual(['ERR_PROTOCOL']);
    expect(errors[0]?.message).toContain(says);
    expect(peer.closedWith).toBeDefined();
  });
});

describe('commands', () => {
  it('identity, processing, has-what, nbytes and story are plain data', async () => {
    const host = await startHost();
    const worker = await host.worker('inmemory://w1', { name: 'one' });
    const client = await host.client('c');
    await client.send(graphOf('x'));
    const ask = (command: string, parameters?: unknown): Promise<unknown> =>
      client.request('command', { command, parameters });
    expect(await ask('processing')).toEqual([['inmemory://w1', ['x']]]);
    await finishAll(worker);
    expect(await ask('has-what')).toEqual([['inmemory://w1', ['x']]]);
    expect(await ask('nbytes')).toEqual([['x', 8]]);
    expect(await ask('nbytes', { keys: ['x', 'unknown'] })).toEqual([['x', 8]]);
    expect(await ask('identity')).toMatchObject({
      type: 'scheduler',
      addresses: ['inmemory://scheduler'],
      taskCount: 1,
      threadCount: 1,
      workers: [{ address: 'inmemory://w1', name: 'one', status: 'running', nbytes: 8 }],
    });
    const story = (await ask('story', { keys: ['x'] })) as { finish: string }[];
    expect(story.at(-1)?.finish).toBe('memory');
    await expect(ask('story', { keys: 'x' })).rejects.toThrow(
      'the command "story": keys must be a list (got "x")',
    );
    await expect(ask('stroy')).rejects.toThrow(
      'there is no command "stroy"; did you mean "story"?',
    );
    expect(client.closedWith).toBeUndefined();
  });

  it('of plugins are called by name, also by clients, and what they throw comes back', async () => {
    const plugin = definePlugin({
      name: 'math',
      apiVersion: 1,
      setup: ({ command }) => {
        command('double', (x) => 2 * (x as number));
        command('later', () => Promise.resolve('later'));
        command('fail', () => {
          throw new RangeError('too much');
        });
      },
    });
    const host = await startHost({ plugins: [plugin] });
    const client = await host.client();
    const ask = (command: string, parameters?: unknown): Promise<unknown> =>
      client.request('command', { command, parameters });
    expect(await ask('math.double', 21)).toBe(42);
    expect(await ask('math.later')).toBe('later');
    await expect(ask('math.fail')).rejects.toThrow('too much');
    expect(await ask('amm.running')).toBe(true);
    expect(await ask('amm.stop')).toBe(false);
    expect(await ask('amm.running')).toBe(false);
  });

  it('events keep the latest thousand messages of a topic', async () => {
    const seen: unknown[] = [];
    const plugin = { name: 'listener', eventLogged: (topic: string) => void seen.push(topic) };
    const host = await startHost({ plugins: [plugin] });
    const worker = await host.worker('inmemory://w1');
    await worker.send(
      ...Array.from({ length: 1005 }, (_item, index) => ({
        op: 'log-event',
        topics: ['noise'],
        message: index,
      })),
    );
    const kept = host.scheduler.command('events', { topic: 'noise' }) as { message: unknown }[];
    expect(kept).toHaveLength(1000);
    expect(kept[0]?.message).toBe(5);
    expect(kept.at(-1)?.message).toBe(1004);
    expect(host.scheduler.command('events')).toContainEqual(['noise', 1005]);
    expect(seen.filter((topic) => topic === 'noise')).toHaveLength(1005);
  });
});

describe('who-has and gather', () => {
  const value = new Uint8Array([1, 2, 3]);

  async function cluster(): Promise<{ host: TestHost; client: RawPeer; workers: RawPeer[] }> {
    const host = await startHost();
    const workers: RawPeer[] = [];
    for (const address of ['inmemory://w1', 'inmemory://w2']) {
      const worker = await host.worker(address);
      await worker.serve(address);
      workers.push(worker);
    }
    const client = await host.client();
    await client.send({
      op: 'update-data',
      items: [{ key: 'x', nbytes: 3, workers: ['inmemory://w1', 'inmemory://w2'] }],
    });
    return { host, client, workers };
  }

  it('say where results are, and fetch them', async () => {
    const { client, workers } = await cluster();
    workers[0]!.answers.set('get-data', () => ({ keys: ['x'], values: [value] }));
    expect(await client.request('who-has', { keys: ['x', 'y'] })).toEqual({
      keys: ['x', 'y'],
      whoHas: [['inmemory://w1', 'inmemory://w2'], []],
    });
    expect(await client.request('gather', { keys: ['x', 'y'] })).toEqual({
      keys: ['x'],
      values: [value],
    });
  });

  it('another holder is asked when the first fails', async () => {
    const { client, workers } = await cluster();
    workers[0]!.answers.set('get-data', () => ({ keys: [], values: [] }));
    workers[1]!.answers.set('get-data', () => ({ keys: ['x'], values: [value] }));
    expect(await client.request('gather', { keys: ['x'] })).toEqual({
      keys: ['x'],
      values: [value],
    });
  });

  it('a holder that speaks another protocol is not asked', async () => {
    const { client, workers } = await cluster();
    const other = { protocol: 'yardmaster/9', version: '9.0.0', serverId: 'raw' };
    workers[0]!.answers.set('hello', () => other);
    workers[0]!.answers.set('get-data', () => ({ keys: ['x'], values: [new Uint8Array([9])] }));
    workers[1]!.answers.set('get-data', () => ({ keys: ['x'], values: [value] }));
    expect(await client.request('gather', { keys: ['x'] })).toEqual({
      keys: ['x'],
      values: [value],
    });
  });

  it('a holder that leaves while it is asked does not keep the client waiting', async () => {
    const { host, client, workers } = await cluster();
    for (const worker of workers)
      worker.answers.set('get-data', () => new Promise(() => undefined));
    const asking = client.channel.request('gather', { keys: ['x'] });
    await host.settle();
    for (const worker of workers) {
      worker.channel.abort(new Error('gone'));
      await host.settle();
    }
    await host.settle();
    expect(await asking).toEqual({ keys: [], values: [] });
  });
});

describe('timers', () => {
  it('a silent worker is asked to close and removed', async () => {
    const host = await startHost({ workerTtl: '10s' });
    const worker = await host.worker('inmemory://w1');
    await host.clock.advanceAsync(21_000);
    expect(worker.received.at(-1)).toMatchObject({
      op: 'close',
      reason: 'scheduler-remove-worker',
    });
    expect(worker.closedWith).toBeDefined();
    expect(host.scheduler.cluster.workers.size).toBe(0);
  });

  it('a task that no worker comes for fails in time', async () => {
    const host = await startHost({ noWorkersTimeout: '3s' });
    const client = await host.client();
    await client.send(graphOf('x'));
    await host.clock.advanceAsync(2_900);
    expect(client.received).toEqual([]);
    await host.clock.advanceAsync(500);
    expect(client.received).toMatchObject([{ op: 'task-erred', key: 'x' }]);
  });

  it('a scheduler that has nothing to do for too long closes', async () => {
    const host = await startHost({ idleTimeout: '10s' });
    let closed = 0;
    host.scheduler.events.on('closed', () => closed++);
    const client = await host.client();
    await host.clock.advanceAsync(9_000);
    await client.send(graphOf('x'));
    // A task that waits for a worker is something to do.
    await host.clock.advanceAsync(20_000);
    expect(closed).toBe(0);
    await client.send({ op: 'client-releases-keys', keys: ['x'] });
    await host.clock.advanceAsync(10_000);
    expect(closed).toBe(0);
    await host.clock.advanceAsync(1_000);
    expect(closed).toBe(1);
  });

  it('is not idle while a plugin starts', async () => {
    const host = await startHost({ idleTimeout: '10s' });
    let start = (): void => undefined;
    const started = new Promise<void>((resolve) => (start = resolve));
    const slow = definePlugin({
      name: 'slow',
      apiVersion: 1,
      setup: () => ({ start: () => started }),
    });
    const added = host.scheduler.addPlugin(slow);
    host.clock.advance(60_000);
    start();
    await expect(added).resolves.toBe('slow');
    expect(host.log.messages.join()).not.toContain('nothing to do');
    host.clock.advance(11_000);
    expect(host.log.messages.join()).toContain('nothing to do');
  });

  it('a look whether a scheduler is idle finds work that came and went since the last one', async () => {
    const host = await startHost();
    const idleSince = (): unknown => host.scheduler.command('idle-since');
    idleSince();
    expect(idleSince()).toBe(host.clock.nowMs());
    const client = await host.client();
    await client.send(graphOf('x'));
    await client.send({ op: 'client-releases-keys', keys: ['x'] });
    expect(idleSince()).toBeUndefined();
    expect(idleSince()).toBe(host.clock.nowMs());
  });
});

describe('the end', () => {
  it('notifies workers, closes all connections, emits closed, and leaves no timer', async () => {
    const host = await startHost();
    const worker = await host.worker('inmemory://w1');
    const client = await host.client();
    let closed = 0;
    host.scheduler.events.on('closed', () => closed++);
    await Promise.all([host.close(), host.close()]);
    expect(worker.received.at(-1)).toMatchObject({ op: 'close', reason: 'scheduler-close' });
    expect(worker.closedWith).toBeDefined();
    expect(client.closedWith).toBeDefined();
    expect(closed).toBe(1);
    expect(host.clock.timerCount).toBe(0);
    await expect(host.scheduler.listen('inmemory://again')).rejects.toThrow(
      'the scheduler is closed',
    );
    await expect(host.scheduler.addPlugin({ name: 'late' })).rejects.toThrow(
      'the scheduler is closed',
    );
    expect(() => host.scheduler.command('identity')).toThrow('the scheduler is closed');
  });

  it('an inconsistent state is reported and put right', async () => {
    const host = await startHost();
    await host.worker('inmemory://w1');
    // A plugin that breaks the promise not to write.
    (host.scheduler.kernel.cluster as { totalThreads: number }).totalThreads = 99;
    host.scheduler.enqueue({ op: 'restart' });
    await host.settle();
    expect(host.scheduler.crash).toBeUndefined();
    expect(host.scheduler.kernel.cluster.totalThreads).toBe(1);
    expect(host.log.messages.join('\n')).toMatch(
      /the stimulus restart-\d+ \(restart\) failed and was dropped: totalThreads is 99/,
    );
    await host.close();
  });

  it('an inconsistent state that cannot be put right is reported with its cause, and closes the scheduler', async () => {
    const crashes: YardmasterError[] = [];
    const host = await startHost({}, { onCrash: (error: YardmasterError) => crashes.push(error) });
    await host.worker('inmemory://w1');
    // A plugin that breaks the promise not to write, thoroughly.
    const broken = { get: () => 99, set: () => undefined };
    Object.defineProperty(host.scheduler.kernel.cluster, 'totalThreads', broken);
    host.scheduler.enqueue({ op: 'restart' });
    await host.settle();
    expect(crashes).toHaveLength(1);
    expect(crashes[0]?.code).toBe('ERR_INVARIANT');
    expect(crashes[0]?.message).toMatch(
      /^the scheduler closes: the stimulus restart-\d+ \(restart\) could not be handled: /,
    );
    expect((crashes[0]?.cause as YardmasterError).code).toBe('ERR_INVARIANT');
    expect(host.scheduler.crash).toBe(crashes[0]);
    await host.close();
  });

  it('a listener that throws affects no other, and is reported', async () => {
    const host = await startHost();
    const heard: string[] = [];
    host.scheduler.events.on('worker-added', () => {
      throw new Error('bad listener');
    });
    host.scheduler.events.on('worker-added', ({ name }) => heard.push(name));
    host.scheduler.events.on('error', ({ message }) => heard.push(message));
    host.scheduler.events.on('error', () => {
      throw new Error('worse listener');
    });
    await host.worker('inmemory://w1', { name: 'one' });
    expect(heard).toEqual(['one', 'a listener of the event "worker-added" threw: bad listener']);
    expect(host.log.messages).toContain('a listener of the event "error" threw: worse listener');
    expect(host.scheduler.crash).toBeUndefined();
  });

  it('listeners leave with off, and once is once', async () => {
    const host = await startHost();
    const heard: string[] = [];
    const on = ({ name }: { name: string }): void => void heard.push(`on ${name}`);
    host.scheduler.events.on('worker-added', on);
    host.scheduler.events.once('worker-added', ({ name }) => heard.push(`once ${name}`));
    await host.worker('inmemory://w1', { name: 'one' });
    host.scheduler.events.off('worker-added', on);
    await host.worker('inmemory://w2', { name: 'two' });
    expect(heard).toEqual(['on one', 'once one']);
  });

  it('what cannot be sent makes the task fail instead of waiting for ever', async () => {
    const host = await startHost();
    await host.worker('inmemory://w1');
    const client = await host.client('c');
    host.scheduler.enqueue({
      op: 'update-graph',
      client: 'c',
      tasks: [{ key: 'x', dependencies: [], runSpec: () => 'a function cannot travel' }],
      keys: ['x'],
    });
    await host.settle();
    expect(client.received).toMatchObject([
      { op: 'task-erred', key: 'x', failure: { exception: { code: 'ERR_NOT_SERIALISABLE' } } },
    ]);
  });

  it('an address that nothing speaks is refused with a hint', async () => {
    const host = await startHost();
    await expect(host.scheduler.listen('tpc://127.0.0.1:0')).rejects.toThrow(
      'no transport for the address "tpc://127.0.0.1:0"; did you mean "tcp"?',
    );
  });
});

it('a task cannot be moved to more workers than a submission may name', async () => {
  const host = await startHost();
  const workers = Array.from({ length: 10_001 }, (_, at) => `w${at}`);
  const changes = [{ key: 'task', workers }];
  expect(() => host.scheduler.enqueue({ op: 'set-restrictions', changes })).toThrow(/10000 items/);
  await host.close();
});
