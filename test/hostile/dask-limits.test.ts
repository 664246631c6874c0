/** Dask's port, in a process with little memory: what peers send there is bounded before and after they register. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SystemClock } from '../../adapters/clocks/index.ts';
import { encodeMessage } from '../../adapters/dask/wire/codec.ts';
import { Comm } from '../../adapters/dask/wire/comm.ts';
import { packFrames } from '../../adapters/dask/wire/frames.ts';
import { Runs } from '../kit/runs.ts';

const runs = new Runs({ NODE_OPTIONS: '--max-old-space-size=320' });
const clock = new SystemClock();
let address = '';

beforeAll(async () => {
  const flags = ['--dask', '--port', '0', '--dask-port', '0', '--no-dashboard', '--no-show'];
  address = await runs.yardmaster('scheduler', ...flags).firstLine();
});
afterAll(() => runs.end());

const HELLO = { compression: null, python: [3, 11, 0], 'pickle-protocol': 5 };
const CLIENT = {
  op: 'register-client',
  client: 'Client-hostile',
  reply: false,
  versions: { packages: { distributed: '2026.8.0' } },
};
const MB = 1_000_000;

/** A peer that has sent these messages, and not been answered more than with a greeting. */
async function peerThatSent(...messages: readonly object[]): Promise<Socket> {
  const { hostname, port } = new URL(address);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  for (const message of messages) {
    for (const part of packFrames(encodeMessage(message))) socket.write(part);
    await once(socket, 'data');
  }
  return socket;
}

/** A msgpack array with a count of 32 bits, of items of one byte. */
function array(count: number, item: number): Uint8Array {
  const bytes = new Uint8Array(5 + count).fill(item, 5);
  bytes[0] = 0xdd;
  new DataView(bytes.buffer).setUint32(1, count);
  return bytes;
}

/** An array of maps that each name the same frame, whose header claims all the others. */
function references(count: number, subFrames: number): Uint8Array[] {
  const reference = encodeMessage({ __Serialized__: 1 })[0]!;
  const head = array(count, 0).subarray(0, 5);
  const body = Buffer.concat([head, ...Array.from({ length: count }, () => reference)]);
  const header = encodeMessage({ 'num-sub-frames': subFrames })[0]!;
  return [body, header, ...Array.from({ length: subFrames }, () => new Uint8Array(0))];
}

const NIL = 0xc0;
const EMPTY_MAP = 0x80;

async function isClosedAfter(socket: Socket, frames: readonly Uint8Array[]): Promise<void> {
  const closed = new Promise((resolve) => socket.once('close', resolve));
  for (const part of packFrames(frames)) socket.write(part);
  await closed;
}

async function expectItServes(): Promise<void> {
  const comm = await Comm.connect(address, { clock });
  expect(await comm.call('identity')).toMatchObject({ type: 'Scheduler' });
  await comm.close();
}

const FLOODS = [
  ['115 MB of nils', () => [array(115 * MB, NIL)]],
  ['20 MB of nils', () => [array(20 * MB, NIL)]],
  ['15 MB of empty maps', () => [array(15 * MB, EMPTY_MAP)]],
  ['10 000 names of one opaque value with 10 000 frames', () => references(10_000, 10_000)],
] as const;

describe("Dask's port, in a process with little memory", () => {
  test.each(FLOODS)('survives %s before the greeting', async (_, flood) => {
    await isClosedAfter(await peerThatSent(), flood());
    await expectItServes();
  });

  test.each(FLOODS)('survives %s after the greeting, before the registration', async (_, flood) => {
    await isClosedAfter(await peerThatSent(HELLO), flood());
    await expectItServes();
  });

  test.each(FLOODS.filter(([name]) => name !== '20 MB of nils'))(
    'survives %s of a registered client',
    async (_, flood) => {
      await isClosedAfter(await peerThatSent(HELLO, CLIENT), flood());
      await expectItServes();
    },
  );

  test('takes large requests of callers from hosts of registered clients', async () => {
    const client = await peerThatSent(HELLO, CLIENT);
    const comm = await Comm.connect(address, { clock });
    const keys = Array.from({ length: 600_000 }, (_, index) => `key-${index}`);
    expect(await comm.call('who_has', { keys: keys.slice(0, 1000) })).toBeDefined();
    expect(await comm.call('who_has', { keys })).toBeDefined();
    await comm.close();
    client.destroy();
  });
});
