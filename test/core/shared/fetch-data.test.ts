import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { VirtualClock } from '../../../adapters/clocks/index.ts';
import { MemoryStore, SpillFolder } from '../../../adapters/stores/index.ts';
import { InMemoryTransport } from '../../../adapters/transports/memory.ts';
import {
  Channel,
  type Connection,
  type DataStore,
  PROTOCOL,
  type WireMessage,
} from '../../../core/api/index.ts';
import { fetchData, type FetchDataOptions, PART_BYTES } from '../../../core/shared/fetch-data.ts';
import type { DataServer } from '../../../core/worker-host/data-server.ts';
import { TieredStore } from '../../../core/worker/tiered-store.ts';
import { pattern, serverOf } from '../../kit/served-results.ts';

const ADDRESS = 'inmemory://peer:1';
const nothing = (): void => undefined;

let clock: VirtualClock;
let transport: InMemoryTransport;
let folder = '';

beforeEach(() => {
  clock = new VirtualClock();
  transport = new InMemoryTransport(clock, { delayMs: 1 });
  folder = mkdtempSync(join(tmpdir(), 'fetch-data-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Waits for something that takes no more than some minutes of virtual time. */
async function settle<T>(promise: Promise<T>): Promise<T> {
  const state = { isDone: false };
  const mark = (): void => void (state.isDone = true);
  promise.then(mark, mark);
  for (let round = 0; round < 2000 && !state.isDone; round++) await clock.advanceAsync(100);
  if (!state.isDone) throw new Error('it did not settle');
  return promise;
}

/** @param onSent - called after each message with what the connection holds */
async function serve(
  store: DataStore,
  outgoingMax = 50,
  onSent: (bufferedBytes: number) => void = nothing,
): Promise<DataServer> {
  const server = serverOf(clock, store, { outgoingMax: () => outgoingMax });
  await settle(
    transport.listen(ADDRESS, (connection) => {
      const watched: Connection = Object.create(connection, {
        send: {
          value: (...messages: readonly WireMessage[]) => {
            connection.send(...messages);
            onSent(connection.bufferedBytes);
          },
        },
      }) as Connection;
      return server.accept(watched);
    }),
  );
  return server;
}

/** A peer that answers as it likes. */
async function pretend(
  answer: (method: string, parameters: WireMessage) => unknown,
): Promise<void> {
  await settle(
    transport.listen(
      ADDRESS,
      (connection) =>
        new Channel(connection, clock, { onMessage: nothing, onRequest: answer, onClose: nothing }),
    ),
  );
}

async function connect(): Promise<Channel> {
  const made: { channel?: Channel } = {};
  const handlers = { onMessage: nothing, onRequest: nothing, onClose: nothing };
  await settle(
    transport.connect(ADDRESS, (connection) => {
      made.channel = new Channel(connection, clock, handlers);
      return made.channel;
    }),
  );
  const channel = made.channel!;
  await settle(channel.request('hello', { protocol: PROTOCOL, role: 'peer', version: 'x' }));
  return channel;
}

const LARGE = 9 * PART_BYTES + 12_345;

function storeOf(values: Readonly<Record<string, Uint8Array>>): MemoryStore {
  const store = new MemoryStore();
  for (const [key, value] of Object.entries(values)) store.set(key, value);
  return store;
}

describe('a result that is larger than a message', () => {
  it('arrives whole, in memory that the receiver chose, beside small ones', async () => {
    const large = pattern(LARGE);
    await serve(storeOf({ large, small: pattern(10), empty: new Uint8Array(0) }));
    const allocated: [string, number][] = [];
    const allocate = (key: string, nbytes: number): Uint8Array => {
      allocated.push([key, nbytes]);
      return new Uint8Array(new SharedArrayBuffer(nbytes));
    };
    const keys = ['small', 'large', 'unknown', 'empty'];
    const { values, lost } = await settle(fetchData(await connect(), keys, { allocate }));
    expect([...values.keys()].sort()).toEqual(['empty', 'large', 'small']);
    expect(Buffer.compare(values.get('large')!, large)).toBe(0);
    expect(values.get('large')!.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect([allocated, lost.size]).toEqual([[['large', LARGE]], 0]);
  });

  it('is never in the buffers of the sender as a whole', async () => {
    let mostBytes = 0;
    const onSent = (nbytes: number): void => void (mostBytes = Math.max(mostBytes, nbytes));
    await serve(storeOf({ large: pattern(40 * PART_BYTES) }), 50, onSent);
    const { values } = await settle(fetchData(await connect(), ['large']));
    expect(values.get('large')).toHaveLength(40 * PART_BYTES);
    expect(mostBytes).toBeGreaterThan(2 * PART_BYTES);
    expect(mostBytes).toBeLessThan(5 * PART_BYTES);
  });

  it('is sent from its spill file, without coming back into memory', async () => {
    const large = pattern(LARGE);
    const { store, lost } = spilling({ large });
    expect(store.ramBytes).toBe(0);
    await serve(store);
    const channel = await connect();
    const { values } = await settle(fetchData(channel, ['large']));
    expect(Buffer.compare(values.get('large')!, large)).toBe(0);
    expect([store.ramBytes, lost]).toEqual([0, []]);
  });

  it('counts as lost when its spill file is found to be damaged', async () => {
    const { store, lost, files } = spilling({ large: pattern(LARGE), other: pattern(LARGE, 5) });
    for (const file of files()) {
      const bytes = pattern(LARGE);
      bytes[LARGE - 1]! ^= 1;
      writeFileSync(file, bytes);
    }
    await serve(store);
    const fetched = await settle(fetchData(await connect(), ['large', 'other']));
    expect([fetched.values.size, [...fetched.lost]]).toEqual([0, ['large', 'other']]);
    expect(lost).toEqual(['large', 'other']);
    expect(store.has('large')).toBe(false);
  });

  it('can be fetched to its end after it was deleted', async () => {
    const large = pattern(LARGE);
    const { store } = spilling({ large });
    await serve(store);
    const channel = await connect();
    const fetching = fetchData(channel, ['large'], {
      allocate: (key, nbytes) => {
        store.delete(key);
        return new Uint8Array(nbytes);
      },
    });
    const { values } = await settle(fetching);
    expect(Buffer.compare(values.get('large')!, large)).toBe(0);
  });

  it('keeps its sender busy until it has ended, or the receiver gave up or left', async () => {
    const server = await serve(storeOf({ large: pattern(LARGE) }), 1);
    const first = await connect();
    const second = await connect();
    const begin = { keys: ['large'], mayBeBusy: true, inParts: true };
    const reply = await settle(first.request<{ parts: { handle: number }[] }>('get-data', begin));
    const isBusy = async (): Promise<boolean> =>
      (await settle(fetchData(second, ['small'], { mayBeBusy: true }))).isBusy;
    expect(await isBusy()).toBe(true);
    first.send({ op: 'drop-parts', handles: reply.parts.map(({ handle }) => handle) });
    await clock.advanceAsync(100);
    expect(await isBusy()).toBe(false);
    await settle(first.request('get-data', begin));
    expect(await isBusy()).toBe(true);
    let isClosed = false;
    const closing = server.close().then(() => (isClosed = true));
    await clock.advanceAsync(100);
    expect(isClosed).toBe(false);
    first.abort(new Error('it left'));
    await settle(closing);
  });
});

describe('a peer that', () => {
  const offer = { key: 'x', nbytes: LARGE, handle: 1 };
  const answers: [name: string, reply: unknown, part?: unknown][] = [
    ['answers with nonsense', 42],
    ['answers with keys but no values', { keys: ['x'], values: [] }],
    ['answers with values that are not bytes', { keys: ['x'], values: ['text'] }],
    ['offers parts without a size', { keys: [], values: [], parts: [{ key: 'x', handle: 1 }] }],
    ['offers what nobody asked for', { keys: [], values: [], parts: [{ ...offer, key: 'y' }] }],
    [
      'gives a part that is too short',
      { keys: [], values: [], parts: [offer] },
      { bytes: pattern(5) },
    ],
    ['gives a part that is not bytes', { keys: [], values: [], parts: [offer] }, { bytes: 'text' }],
    ['gives nonsense as a part', { keys: [], values: [], parts: [offer] }, 42],
  ];
  it.each(answers)('%s is distinguished from one that has nothing', async (_, reply, part) => {
    await pretend((method) => (method === 'get-data' ? reply : method === 'get-part' ? part : {}));
    const fetching = fetchData(await connect(), ['x']);
    await expect(settle(fetching)).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
  });

  const silences: [name: string, options: FetchDataOptions][] = [
    ['never answers', { timeoutMs: 1000 }],
    ['stops in the middle of a result', { timeoutMs: 1000 }],
  ];
  it.each(silences)('%s is given up', async (name, options) => {
    let partCount = 0;
    await pretend((method, { nbytes }) => {
      if (method === 'hello') return {};
      if (method === 'get-data' && name !== 'never answers') {
        return { keys: [], values: [], parts: [offer] };
      }
      if (method === 'get-part' && partCount++ < 2)
        return { bytes: new Uint8Array(Number(nbytes)) };
      return new Promise(nothing);
    });
    const fetching = fetchData(await connect(), ['x'], options);
    await expect(settle(fetching)).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
  });

  it('announces more than there is memory for is refused', async () => {
    const parts = [{ ...offer, nbytes: Number.MAX_SAFE_INTEGER }];
    await pretend((method) => (method === 'get-data' ? { keys: [], values: [], parts } : {}));
    await expect(settle(fetchData(await connect(), ['x']))).rejects.toThrow(RangeError);
  });
});

function spilling(values: Readonly<Record<string, Uint8Array>>): {
  readonly store: TieredStore;
  readonly lost: string[];
  readonly files: () => string[];
} {
  const lost: string[] = [];
  const store = new TieredStore({
    ram: new MemoryStore(),
    disk: new SpillFolder(folder),
    clock,
    targetBytes: 1000,
    maxSpillBytes: Infinity,
    onLost: (key) => lost.push(key),
    onGarbage: nothing,
    onTrouble: nothing,
  });
  for (const [key, value] of Object.entries(values)) store.set(key, value);
  const files = (): string[] =>
    readdirSync(folder)
      .flatMap((name) => readdirSync(join(folder, name)).map((file) => join(folder, name, file)))
      .filter((file) => file.endsWith('.bin'));
  return { store, lost, files };
}
