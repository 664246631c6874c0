import { mkdtempSync, openSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

import { SystemClock } from '../../../adapters/clocks/index.ts';
import { MemoryStore } from '../../../adapters/stores/index.ts';
import { tcp } from '../../../adapters/transports/tcp/index.ts';
import { SystemMemoryFiles } from '../../../adapters/transports/tcp/memory-files.ts';
import {
  Channel,
  type Connection,
  type ConnectionHandlers,
  type MemoryFileName,
  PROTOCOL,
  type WireMessage,
} from '../../../core/api/index.ts';
import { fetchData, PART_BYTES } from '../../../core/shared/fetch-data.ts';
import { pattern, serverOf } from '../../kit/served-results.ts';

const clock = new SystemClock();
const transport = tcp.create({ clock }, {});
const nothing = (): void => undefined;
const LARGE = 5 * PART_BYTES + 4321;

async function connectTo(accept: (connection: Connection) => ConnectionHandlers): Promise<Channel> {
  const listener = await transport.listen('tcp://127.0.0.1:0', accept);
  onTestFinished(() => listener.close());
  const made: { channel?: Channel } = {};
  await transport.connect(listener.address, (connection) => {
    const handlers = { onMessage: nothing, onRequest: nothing, onClose: nothing };
    return (made.channel = new Channel(connection, clock, handlers));
  });
  const channel = made.channel!;
  onTestFinished(() => channel.close());
  await channel.request('hello', { protocol: PROTOCOL, role: 'peer', version: 'x' });
  return channel;
}

/** A worker's side with one result; `answers` gets what it says to each part. */
function serving(value: Uint8Array, answers: WireMessage[] = []) {
  const store = new MemoryStore();
  store.set('large', value);
  const server = serverOf(clock, store, { runIdOf: () => 7, typeOf: () => 'Uint8Array' });
  return (connection: Connection): ConnectionHandlers => {
    const send = connection.send.bind(connection);
    connection.send = (...messages: readonly WireMessage[]) => {
      for (const { value: answer } of messages) {
        const { bytes, written } = (answer ?? {}) as WireMessage;
        if (bytes !== undefined || written !== undefined) answers.push({ bytes, written });
      }
      send(...messages);
    };
    return server.accept(connection);
  };
}

function opened(): SystemMemoryFiles {
  const files = new SystemMemoryFiles();
  onTestFinished(() => files.close());
  return files;
}

const ofNoName = expect.stringMatching(/^\/dev\/shm\/#\d+ \(deleted\)$/) as string;

/** Memory files that this process has open, by what the system calls them. */
function openFiles(): string[] {
  const names = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ''; // It was that of the listing.
    }
  });
  return names.filter((name) => name.startsWith('/dev/shm/'));
}

/** The comparison of test frameworks takes seconds for millions of bytes. */
function expectSame(found: Uint8Array | undefined, value: Uint8Array): void {
  expect(found !== undefined && Buffer.compare(found, value) === 0).toBe(true);
}

describe.runIf(process.platform === 'linux')('memory files', () => {
  it('carry the parts of a large result between two processes of one machine', async () => {
    const answers: WireMessage[] = [];
    const value = pattern(LARGE);
    const channel = await connectTo(serving(value, answers));
    const { values, runIds } = await fetchData(channel, ['large']);
    expectSame(values.get('large'), value);
    expect(runIds.get('large')).toBe(7);
    expect(answers.map(({ written }) => written)).toEqual([
      ...Array<number>(5).fill(PART_BYTES),
      4321,
    ]);
  });

  it('fill memory that is shared with threads, and what collects parts of its own accord', async () => {
    const value = pattern(LARGE);
    const channel = await connectTo(serving(value));
    const shared = (_: string, nbytes: number) => new Uint8Array(new SharedArrayBuffer(nbytes));
    const first = await fetchData(channel, ['large'], { allocate: shared });
    expectSame(first.values.get('large'), value);
    const collected = new Uint8Array(LARGE);
    const target = { set: (bytes: Uint8Array, at: number): void => collected.set(bytes, at) };
    await fetchData(channel, ['large'], { allocate: () => target });
    expectSame(collected, value);
  });

  it('carry several results at once, and those for which they have no place go through the channel', async () => {
    const answers: WireMessage[] = [];
    const value = pattern(LARGE);
    const channel = await connectTo(serving(value, answers));
    const fetches = Array.from({ length: 8 }, () => fetchData(channel, ['large']));
    for (const { values } of await Promise.all(fetches)) expectSame(values.get('large'), value);
    expect(answers.filter(({ written }) => written !== undefined).length).toBeGreaterThan(0);
    expect(answers.filter(({ bytes }) => bytes !== undefined).length).toBeGreaterThan(0);
  });

  it('have no name that outlives them, and end with their connection', async () => {
    await expect.poll(openFiles).toEqual([]); // Those of the tests before.
    const channel = await connectTo(serving(pattern(LARGE)));
    await fetchData(channel, ['large']);
    expect(openFiles()).toEqual([ofNoName, ofNoName]);
    await channel.close();
    await expect.poll(openFiles).toEqual([]);
  });

  it('are not used again where a part was asked for and never came', async () => {
    const asked: WireMessage[] = [];
    const channel = await connectTo((connection) => {
      const answer = (method: string, parameters: WireMessage): unknown => {
        if (method === 'hello') return { protocol: PROTOCOL, version: 'x', serverId: 's' };
        if (method === 'share-file') return { isShared: true };
        if (method === 'get-part') {
          asked.push(parameters);
          return new Promise(nothing);
        }
        return { keys: [], values: [], parts: [{ key: 'large', nbytes: LARGE, handle: 1 }] };
      };
      return new Channel(connection, clock, {
        onMessage: nothing,
        onRequest: answer,
        onClose: nothing,
      });
    });
    for (let round = 0; round < 2; round++) {
      const fetched = fetchData(channel, ['large'], { timeoutMs: 50 });
      await expect(fetched).rejects.toMatchObject({ code: 'ERR_TIMEOUT' });
    }
    const places = asked.map(({ at }) => at);
    expect(new Set(places).size).toBe(places.length);
  });

  it('are those of the peer alone, by their first bytes', () => {
    const [mine, theirs] = [opened(), opened()];
    const { path, proof } = theirs.offer() as MemoryFileName;
    expect(mine.accept({ path, proof: new Uint8Array(proof.length) })).toBe(false);
    expect(mine.accept({ path, proof: proof.subarray(1) })).toBe(false);
    expect(mine.accept({ path, proof })).toBe(true);
    const bytes = pattern(1000);
    expect(mine.write(4096, bytes)).toBe(true);
    const into = new Uint8Array(1000);
    theirs.read(4096, into);
    expect(into).toEqual(bytes);
  });

  it('are never files with a name, whatever a peer says', () => {
    const folder = mkdtempSync(join(tmpdir(), 'memory-files-'));
    const inMemory = '/dev/shm/yardmaster-memory-files-test';
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
      rmSync(inMemory, { force: true });
    });
    const proof = new Uint8Array(32).fill(5);
    for (const path of [join(folder, 'file'), inMemory]) {
      writeFileSync(path, proof);
      const fd = openSync(path, 'r+');
      expect(opened().accept({ path, proof })).toBe(false);
      expect(opened().accept({ path: `/proc/${process.pid}/fd/${fd}`, proof })).toBe(false);
    }
    expect(opened().accept({ path: '/proc/self/fd/0', proof })).toBe(false);
    expect(opened().accept({ path: `/proc/${process.pid}/fd/99999`, proof })).toBe(false);
  });

  it('are written only beyond their first bytes, and not without end', () => {
    const [mine, theirs] = [opened(), opened()];
    mine.accept(theirs.offer() as MemoryFileName);
    const bytes = new Uint8Array(10);
    for (const at of [0, -1, 31, 0.5, Number.NaN, 64 * 1024 * 1024, 2 ** 53]) {
      expect(mine.write(at, bytes), String(at)).toBe(false);
    }
    expect(() => theirs.read(4096, bytes)).toThrow('0 of 10 bytes');
  });
});
