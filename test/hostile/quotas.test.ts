/** What one peer may take, over real sockets. */
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { setTimeout as passed } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';

import { startScheduler } from '../../adapters/app/start-scheduler.ts';
import { Client } from '../../adapters/client/index.ts';
import { Channel, PROTOCOL } from '../../core/api/index.ts';
import { MemoryLog } from '../core/scheduler-host/kit.ts';
import { square } from '../adapters/cli/fixtures/tasks.js';
import { Runs } from '../kit/runs.ts';
import { residentBytes } from './attack.ts';
import { WirePeer } from './wire-peer.ts';

const CLI = createRequire(import.meta.url).resolve('#cli');
const MIB = 1024 * 1024;
const stops: (() => unknown)[] = [];
const runs = new Runs();
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
  await runs.end('SIGKILL');
});

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
    const client = await Client.connect(address);
    expect((await client.identity()).workers).toEqual([]);
    await client.close();
    const warnings = scheduler.stderr.match(/a connection was refused, because \d+ are open/g);
    expect(warnings!.length).toBeLessThan(12);
  }, 60_000);
});

describe('a worker', () => {
  it('gives no further results to a peer that does not read them', async () => {
    const scheduler = await startScheduler({ log: new MemoryLog() }, 'tcp://127.0.0.1:0');
    stops.push(() => scheduler.close());
    const child = runs.yardmaster('worker', scheduler.address, '--threads', '1', '--no-nanny');
    await child.firstLine();
    const client = await Client.connect(scheduler.address);
    stops.push(() => client.close());
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
  }, 60_000);
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
