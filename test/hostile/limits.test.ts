import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { RunningScheduler } from '../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../kit/start-scheduler.ts';
import { PROTOCOL, type WireMessage } from '../../core/api/index.ts';
import { MemoryLog } from '../kit/test-host.ts';
import { WirePeer } from './wire-peer.ts';

const log = new MemoryLog();
let scheduler: RunningScheduler;
let names = 0;

beforeAll(async () => {
  scheduler = await startScheduler({ log }, 'tcp://127.0.0.1:0');
});
afterAll(() => scheduler.close());

const connect = (): Promise<WirePeer> => WirePeer.connect(scheduler.address);
const enter = async (): Promise<WirePeer> => (await connect()).enter(`hostile-${++names}`);

/** A msgpack array with a count of 32 bits. */
function array(count: number, item: number): Uint8Array {
  const bytes = new Uint8Array(5 + count).fill(item, 5);
  bytes[0] = 0xdd;
  new DataView(bytes.buffer).setUint32(1, count);
  return bytes;
}

const NIL = 0xc0;
const EMPTY_MAP = 0x80;

describe('a peer that has not said hello', () => {
  it('is disconnected when it announces a frame above 64 KiB', async () => {
    const peer = await connect();
    peer.socket.write(new Uint8Array([0, 1, 0, 1]));
    await peer.closed();
    expect(log.messages.join('\n')).toContain('the limit is 65536');
  });

  it('is disconnected when a frame has more than a few hundred values', async () => {
    const peer = await connect();
    peer.write(array(60_000, NIL));
    await peer.closed();
    expect(log.messages.join('\n')).toContain('more values than this side accepts');
  });
});

describe('a client that has said hello and not registered', () => {
  const hello = async (): Promise<WirePeer> => {
    const peer = await connect();
    await peer.request('hello', { protocol: PROTOCOL, role: 'client', version: '0' });
    return peer;
  };

  it('is disconnected when it announces a frame above 1 MiB', async () => {
    const peer = await hello();
    peer.socket.write(new Uint8Array([0x40, 0, 0, 0]));
    await peer.closed();
    expect(log.messages.join('\n')).toContain('the limit is 1048576');
  });

  it('is disconnected when a frame has more than 100 000 values', async () => {
    const peer = await hello();
    peer.write(array(200_000, NIL));
    await peer.closed();
    expect(log.messages.join('\n')).toContain('more values than this side accepts');
  });
});

describe('a peer that has said hello', () => {
  it.each([
    ['a million restrictions', { workers: Array.from({ length: 1_000_000 }, (_, at) => `w${at}`) }],
    [
      '300 000 resources',
      { resources: Object.fromEntries(Array.from({ length: 300_000 }, (_, at) => [`r${at}`, 1])) },
    ],
  ])('is disconnected when a task has %s, and others are served', async (_, fields) => {
    const [peer, other] = [await enter(), await enter()];
    const task = { key: 'hostile', dependencies: [], runSpec: {}, ...fields };
    peer.send({ op: 'update-graph', tasks: [task], keys: ['hostile'] });
    await peer.closed();
    expect((await other.request('who-has', { keys: ['x'] }))?.['ok']).toBe(true);
  });

  it('is disconnected when it puts 600 000 values in one message', async () => {
    const [peer, other] = [await enter(), await enter()];
    const items = Array.from({ length: 600_000 }, (_, at) => ({ key: `k${at}`, workers: [] }));
    peer.send({ op: 'update-data', items });
    await peer.closed();
    expect((await other.request('who-has', { keys: ['x'] }))?.['ok']).toBe(true);
  });

  it('cannot have decisions recorded without bound', async () => {
    const peer = await enter();
    const record = (keep: number): Promise<WireMessage | undefined> =>
      peer.request('command', { command: 'record-decisions', parameters: { keep } });
    expect((await record(2 ** 53 - 1))?.['ok']).toBe(false);
    expect((await record(10_000))?.['ok']).toBe(true);
    expect((await record(0))?.['ok']).toBe(true);
  });

  it.each([
    ['115 MB of nils', 115_000_000, NIL],
    ['32 MB of empty maps', 32_000_000, EMPTY_MAP],
  ])('is disconnected when it sends %s, which are not decoded', async (_, count, item) => {
    const peer = await enter();
    const before = process.memoryUsage().heapUsed;
    peer.write(array(count, item));
    await peer.closed();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * 1024 * 1024);
  });

  it('gets a short error for a name of 10 MB', async () => {
    const name = 'x'.repeat(10_000_000);
    const peer = await enter();
    const reply = await peer.request('command', { command: name, parameters: {} });
    expect(reply?.['ok']).toBe(false);
    expect(JSON.stringify(reply).length).toBeLessThan(10_000);
    const other = await enter();
    other.send({ op: name });
    await other.closed();
  });

  it('is served no further while it does not read its answers, and completely when it reads', async () => {
    const keys = Array.from({ length: 400 }, (_, index) => `${index} `.repeat(300));
    const peer = await enter();
    peer.socket.pause();
    const requests = 300;
    for (let id = 1000; id < 1000 + requests; id++) {
      peer.send({ op: 'request', id, method: 'who-has', parameters: { keys } });
    }
    const other = await enter();
    expect((await other.request('who-has', { keys: ['x'] }))?.['ok']).toBe(true);
    peer.socket.resume();
    await peer.until(() => peer.received.length >= requests + 2);
    expect(peer.received.map(({ id }) => id).slice(2)).toEqual(
      Array.from({ length: requests }, (_, index) => 1000 + index),
    );
  });
});
