import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { SystemClock } from '../../../adapters/clocks/index.ts';
import { PacedReads } from '../../../adapters/transports/tcp/connection.ts';
import { connectPlain } from '../../../adapters/transports/tcp/socket-layer.ts';
import { AccessFile, TlsTransport } from '../../../adapters/transports/tls.ts';
import type { Connection, Role, WireMessage } from '../../../core/api/index.ts';
import { TurnBudget } from '../../../core/shared/turn.ts';
import { HandClock } from '../../kit/hand-clock.ts';

const clock = new SystemClock();
const cleanups: (() => unknown)[] = [];
let file: AccessFile;

beforeEach(() => {
  const home = mkdtempSync(join(tmpdir(), 'ym-'));
  file = new AccessFile(join(home, '1.json'));
  file.makeTemporary();
  cleanups.push(() => rmSync(home, { recursive: true }));
});
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

const folder = (): string => file.path.replace('.json', '.sockets');

/** Listens as a data port. @returns how each peer comes, and what it says first */
async function listen(): Promise<{
  readonly address: string;
  readonly from: Promise<string>;
  readonly first: Promise<WireMessage>;
}> {
  const transport = new TlsTransport(clock, { access: file.path, serves: 'data' });
  let setFrom!: (address: string) => void;
  let setFirst!: (message: WireMessage) => void;
  const from = new Promise<string>((resolve) => (setFrom = resolve));
  const first = new Promise<WireMessage>((resolve) => (setFirst = resolve));
  const listener = await transport.listen('tls://127.0.0.1:0', (connection) => {
    expect(connection.peerRole).toBe('data');
    setFrom(connection.peerAddress);
    return { onMessages: ([message]) => setFirst(message!), onClose: () => undefined };
  });
  cleanups.push(() => listener.close());
  return { address: listener.address, from, first };
}

async function connect(address: string, role: Role = 'peer'): Promise<Connection> {
  const transport = new TlsTransport(clock, { access: file.path });
  const silent = { onMessages: () => undefined, onClose: () => undefined };
  const connection = await transport.connect(address, () => silent, { role, timeoutMs: 5000 });
  cleanups.push(() => connection.close());
  return connection;
}

const THROUGH_THE_SOCKET = 'tls://127.0.0.1:0';

describe.skipIf(process.platform === 'win32')('the data port of a worker', () => {
  it('is reached on its machine through a socket in a folder that only its user can enter', async () => {
    const { address, from, first } = await listen();
    expect(statSync(folder()).mode & 0o777).toBe(0o700);
    const bytes = new Uint8Array(3_000_000).map((_, at) => at % 251);
    const connection = await connect(address);
    connection.send({ op: 'bytes', bytes });
    expect(await from).toBe(THROUGH_THE_SOCKET);
    expect(Buffer.compare((await first)['bytes'] as Uint8Array, bytes)).toBe(0);
  });

  it('is reached with its key where other users could enter the folder', async () => {
    chmodSync(folder(), 0o711);
    const { address, from } = await listen();
    await connect(address);
    expect(await from).not.toBe(THROUGH_THE_SOCKET);
  });

  it('is reached with its key where another machine has made the access file', async () => {
    const { address, from } = await listen();
    file.write({ ...file.read(), owner: { pid: 1, host: `${hostname()}-of-another` } });
    await connect(address);
    expect(await from).not.toBe(THROUGH_THE_SOCKET);
  });

  it('has no socket any more when it does not listen any more, and the folder ends with the access file', async () => {
    const { address } = await listen();
    expect(readdirSync(folder())).toEqual([new URL(address).port]);
    await cleanups.pop()!();
    expect(readdirSync(folder())).toEqual([]);
    file.remove();
    expect(() => statSync(folder())).toThrow('ENOENT');
  });
});

it('a chunk that waits for its turn keeps its bytes while its socket reads on', async () => {
  const path = join(folder(), 'bytes');
  const sent = new Uint8Array(4_000_000).map((_, at) => at % 249);
  const server = createServer((socket) => socket.end(sent)).listen(path);
  cleanups.push(() => server.close());
  await once(server, 'listening');
  const budget = new TurnBudget(new HandClock(), 1);
  budget.admits();
  budget.later(() => undefined); // Others wait already, and the clock stands still.
  const socket = connectPlain({ path });
  const chunks: Buffer[] = [];
  const reads = new PacedReads(socket, budget, (chunk) => chunks.push(Buffer.from(chunk)));
  const ended = once(socket, 'end');
  const drain = setInterval(() => {
    reads.finish();
    reads.resume();
    socket.resume();
  });
  await ended;
  clearInterval(drain);
  reads.finish();
  socket.destroy();
  expect(Buffer.compare(Buffer.concat(chunks), sent)).toBe(0);
});
