/** What one peer may take, over real sockets. */
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { setTimeout as passed } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';

import { startScheduler } from '../kit/start-scheduler.ts';
import { startWorker } from '../../adapters/app/start-worker.ts';
import { Client } from '../../adapters/client/index.ts';
import { Channel, PROTOCOL } from '../../core/api/index.ts';
import { MemoryLog } from '../kit/test-host.ts';
import { square } from '../adapters/cli/fixtures/tasks.js';
import { bad } from '../bad-input/fixtures/bad-tasks.js';
import { eventually } from '../kit/eventually.ts';
import { useLive } from '../kit/live.ts';
import { residentBytes } from './attack.ts';
import { WirePeer } from './wire-peer.ts';

const CLI = createRequire(import.meta.url).resolve('#cli');
const MIB = 1024 * 1024;

const { runs } = useLive('quotas');

describe('a scheduler', () => {
  it('survives running out of file descriptors, says so 1, 2, 4, 8 times, and serves again', async () => {
    const script = 'ulimit -n 160; exec "$0" "$@"';
    const scheduler = runs.start('bash', [
      '-c',
      script,
      process.execPath,
      CLI,
      ...['scheduler', '--port', '0', '--insecure', '--no-dashboard'],
    ]);
    const address = await scheduler.firstLine();
    const port = Number(new URL(address.replace('tcp:', 'http:')).port);
    const sockets: Socket[] = [];
    let closed = 0;
    for (let count = 0; count < 300; count++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined).on('close', () => closed++);
      sockets.push(socket);
    }
    while (closed < 200) await passed(20);
    for (const socket of sockets) socket.destroy();
    // Until it has noticed that those are gone it may still refuse.
    const client = await eventually(() => Client.connect(address));
    expect((await client.identity()).workers).toEqual([]);
    await client.close();
    const warnings = scheduler.stderr.match(/a connection was refused, because \d+ are open/g);
    expect(warnings!.length).toBeLessThan(12);
  });
});

describe('a worker', () => {
  it('gives no further results to a peer that does not read them', async () => {
    const scheduler = await startScheduler({ log: new MemoryLog() }, 'tcp://127.0.0.1:0');
    onTestFinished(() => scheduler.close());
    const child = runs.yardmaster('worker', scheduler.address, '--threads', '1', '--no-nanny');
    await child.firstLine();
    const client = await Client.connect(scheduler.address);
    onTestFinished(() => client.close());
    expect(await client.submit(square, 3).result()).toBe(9);
    const [big] = await client.scatter([new Uint8Array(MIB)]);
    const { workers } = await client.identity();
    const peer = await WirePeer.connect(workers[0]!.address);
    await peer.request('hello', { protocol: PROTOCOL, role: 'peer', version: '0' });
    const before = residentBytes(child.child.pid!);
    peer.socket.pause();
    for (let id = 1000; id < 2000; id++) {
      peer.send({ op: 'request', id, method: 'get-data', parameters: { keys: [big!.key] } });
    }
    await passed(2000);
    expect(await client.submit(square, 4).result()).toBe(16);
    expect(residentBytes(child.child.pid!) - before).toBeLessThan(400 * MIB);
    peer.socket.destroy();
  });
});

describe('a client', () => {
  const open = async (limits: object) => {
    const scheduler = await startScheduler(
      { log: new MemoryLog(), config: { scheduler: { limits } } },
      'tcp://127.0.0.1:0',
    );
    onTestFinished(() => scheduler.close());
    const worker = await startWorker(scheduler.address, { executor: 'inline', isGuest: true });
    onTestFinished(() => worker.close());
    const client = await Client.connect(scheduler.address);
    onTestFinished(() => client.close());
    return { client, address: scheduler.address, cluster: scheduler.scheduler.cluster };
  };

  it('data that was cancelled does not count any more', async () => {
    const { client } = await open({ scattered: '3 MiB' });
    for (let round = 0; round < 3; round++) {
      const [future] = await client.scatter([new Uint8Array(2 * MIB).fill(round)]);
      future!.cancel();
    }
  });

  it('scatters no more than its quota, keeps what it has, and may scatter again what it has released', async () => {
    const { client, address } = await open({ scattered: '3 MiB' });
    const [first] = await client.scatter([new Uint8Array(2 * MIB)]);
    const more = client.scatter([new Uint8Array(MIB).fill(1), new Uint8Array(MIB).fill(2)]);
    await expect(more).rejects.toMatchObject({
      code: 'ERR_QUOTA',
      message: expect.stringContaining('raise scheduler.limits.scattered') as string,
    });
    // The same value again is no further one.
    const [again] = await client.scatter([new Uint8Array(2 * MIB)]);
    expect(((await first!.result()) as Uint8Array).byteLength).toBe(2 * MIB);
    const other = await Client.connect(address);
    onTestFinished(() => other.close());
    await other.scatter([new Uint8Array(2 * MIB).fill(3)]);
    await expect(client.scatter([new Uint8Array(2 * MIB).fill(4)])).rejects.toMatchObject({
      code: 'ERR_QUOTA',
    });
    first!.release();
    again!.release();
    await client.scatter([new Uint8Array(2 * MIB).fill(4)]);
  });

  it('gets an error for an event that is too large, and for very many topics, and others go on logging', async () => {
    const { client, address } = await open({});
    await expect(client.logEvent('large', new Uint8Array(2 * MIB))).rejects.toMatchObject({
      code: 'ERR_QUOTA',
    });
    const topics = Array.from({ length: 1000 }, (_, index) => `topic-${index}`);
    await client.logEvent(topics, 'first');
    await client.logEvent(topics, 'again');
    await expect(client.logEvent('one-more', 1)).rejects.toMatchObject({
      code: 'ERR_QUOTA',
      message: expect.stringContaining('1000 topics') as string,
    });
    const other = await Client.connect(address);
    onTestFinished(() => other.close());
    await other.logEvent('one-more', 2);
    expect(await other.command('events', { topic: 'one-more' })).toMatchObject([{ message: 2 }]);
  });

  it('gets an error for the futures of a graph that is too large, and may submit another one', async () => {
    const { client } = await open({ graph: '1 MiB' });
    const texts = Array.from({ length: 5000 }, (_, index) => `${index} `.repeat(100));
    const futures = client.map(bad.echo, texts);
    const outcomes = await Promise.allSettled(futures.map((future) => future.result()));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { message: expect.stringContaining('raise scheduler.limits.graph') as string },
      });
    }
    expect(
      await client.gather(
        client.map(
          bad.echo,
          texts.slice(0, 1500).map((_, k) => k),
        ),
      ),
    ).toHaveLength(1500);
  });

  it.each([
    ['claim-keys', (keys: string[]) => ({ keys })],
    ['reserve-data', (keys: string[]) => ({ keys, fingerprints: keys.map(() => 'f') })],
  ])('cannot have endless names remembered by "%s"', async (command, parametersOf) => {
    const { client } = await open({});
    const names = (round: number): string[] =>
      Array.from({ length: 10 }, (_, k) => `${round}-${k}-${'n'.repeat(2 * MIB)}`);
    for (const round of [0, 1, 2]) await client.command(command, parametersOf(names(round)));
    await expect(client.command(command, parametersOf(names(3)))).rejects.toMatchObject({
      code: 'ERR_QUOTA',
    });
    // What it has already costs nothing more.
    await client.command(command, parametersOf(names(2)));
  });

  it('cannot take the name in which the scheduler itself keeps results, nor release these', async () => {
    const { client, address, cluster } = await open({});
    const name = 'service:published-kept';
    const peers = ['published-kept', 'checkpoint', name].map(async (each) => {
      const peer = await WirePeer.connect(address);
      await peer.request('hello', { protocol: PROTOCOL, role: 'client', version: '0' });
      return { peer, reply: await peer.request('register-client', { client: each }) };
    });
    const future = client.submit(square, 3);
    await future.result();
    const entered = await Promise.all(peers);
    expect(entered[2]?.reply).toMatchObject({ error: { code: 'ERR_REGISTRATION' } });
    await client.publish('kept', [future]);
    future.release();
    for (const { peer } of entered) {
      peer.send({ op: 'client-releases-keys', keys: [future.key] });
      peer.send({ op: 'cancel-keys', keys: [future.key], force: false });
      await peer.request('ping', {});
      peer.socket.destroy();
    }
    await expect.poll(() => cluster.clients.has('checkpoint')).toBe(false);
    expect([...cluster.clients.keys()].filter((key) => key.endsWith('kept'))).toEqual([name]);
    const other = await Client.connect(address);
    onTestFinished(() => other.close());
    const [kept] = await other.getPublished<[typeof future]>('kept');
    expect(await kept.result()).toBe(9);
  });

  it('that waits for very many answers loses its connection, and the others do not', async () => {
    const { client, address } = await open({});
    const holder = await client.lock('taken').acquire();
    const peer = await (await WirePeer.connect(address)).enter('impatient');
    const parameters = { command: 'coordination.acquireLock', parameters: { name: 'taken' } };
    for (let id = 1000; id < 101_002; id++) {
      peer.send({ op: 'request', id, method: 'command', parameters });
    }
    await peer.closed();
    expect(await client.submit(square, 4).result()).toBe(16);
    await holder.release();
  });
});

it('an event of a worker that is too large is published without what it says', async () => {
  const scheduler = await startScheduler({ log: new MemoryLog() }, 'tcp://127.0.0.1:0');
  onTestFinished(() => scheduler.close());
  const worker = await startWorker(scheduler.address, { executor: 'inline', isGuest: true });
  onTestFinished(() => worker.close());
  const client = await Client.connect(scheduler.address);
  onTestFinished(() => client.close());
  worker.logEvent(['large'], 'x'.repeat(2 * MIB));
  const events = (): Promise<unknown> => client.command('events', { topic: 'large' });
  await expect.poll(events).toMatchObject([{ message: { action: 'event-left-out' } }]);
});

it('a peer that waits for very many answers at once loses its connection', () => {
  let reason: Error | undefined;
  const connection = {
    peerAddress: 'tcp://peer:1',
    send: () => undefined,
    abort: (error: Error) => void (reason = error),
  };
  const never = new Promise(() => undefined);
  const channel = new Channel(connection as never, undefined as never, {
    onMessage: () => undefined,
    onRequest: () => never,
    onClose: () => undefined,
  });
  const request = (id: number): object => ({ op: 'request', id, method: 'm', parameters: {} });
  channel.onMessages(Array.from({ length: 100_000 }, (_, id) => request(id) as never));
  expect(reason).toBeUndefined();
  channel.onMessages([request(100_000) as never]);
  expect(reason?.message).toContain('more than 100000 requests');
});
