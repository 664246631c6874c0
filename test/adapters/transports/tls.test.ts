import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect as connectPlain, Socket } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, TLSSocket } from 'node:tls';

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { RunningScheduler } from '../../../adapters/app/start-scheduler.ts';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { type RunningWorker, startWorker } from '../../../adapters/app/start-worker.ts';
import { Client } from '../../../adapters/client/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { TcpTransport } from '../../../adapters/transports/tcp/index.ts';
import {
  type Access,
  AccessFile,
  accessOfRole,
  newAccess,
  TlsTransport,
} from '../../../adapters/transports/tls.ts';
import { Channel, PROTOCOL, type Role } from '../../../core/api/index.ts';
import { square } from '../cli/fixtures/tasks.js';
import { MemoryLog } from '../../kit/test-host.ts';

const home = mkdtempSync(join(tmpdir(), 'yardmaster-access-'));
const before = process.env['YARDMASTER_HOME'];
const log = new MemoryLog();
let scheduler: RunningScheduler;
let file: AccessFile;
const workers: RunningWorker[] = [];

/** An access file of its own with this content. */
function fileWith(name: string, access: Access): string {
  const path = join(home, `${name}.json`);
  new AccessFile(path).write(access);
  return path;
}

beforeAll(async () => {
  process.env['YARDMASTER_HOME'] = home;
  scheduler = await startScheduler({ log }, 'tls://127.0.0.1:0');
  const port = new URL(scheduler.address).port;
  file = new AccessFile(join(home, 'access', `${port}.json`));
  for (const name of ['alice', 'bob']) {
    workers.push(await startWorker(scheduler.address, { name, threads: 1, log }));
  }
});

afterAll(async () => {
  for (const worker of workers) await worker.close();
  await scheduler.close();
  if (before === undefined) delete process.env['YARDMASTER_HOME'];
  else process.env['YARDMASTER_HOME'] = before;
  rmSync(home, { recursive: true });
});

/** Connects with these keys and says hello. */
async function hello(access: string, role: Role, address = scheduler.address): Promise<Channel> {
  const clock = new SystemClock();
  let channel: Channel | undefined;
  const silent = {
    onMessage: () => undefined,
    onRequest: () => undefined,
    onClose: () => undefined,
  };
  await new TlsTransport(clock, { access }).connect(
    address,
    (connection) => (channel = new Channel(connection, clock, silent)),
    { role, timeoutMs: 5000 },
  );
  await channel!.request('hello', { protocol: PROTOCOL, role, version: '0' });
  return channel!;
}

describe('a cluster over TLS', () => {
  it('has sockets at both ends that send small messages at once and notice a peer that has vanished', async () => {
    const noDelay = vi.spyOn(Socket.prototype, 'setNoDelay');
    const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
    const channel = await hello(file.path, 'client');
    for (const { mock } of [noDelay, keepAlive]) {
      expect(mock.contexts.filter((socket) => socket instanceof TLSSocket)).toHaveLength(2);
      expect(mock.calls.every(([isOn]) => isOn === true)).toBe(true);
    }
    vi.restoreAllMocks();
    await channel.close();
  });

  it('computes, moves data between workers and gives results with the keys that its scheduler left', async () => {
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(file.read().address).toBe(scheduler.address);
    const client = await Client.connect(scheduler.address);
    const one = client.with({ workers: ['alice'] }).submit(square, 3);
    const two = client.with({ workers: ['bob'] }).submit(square, one);
    expect(await two.result()).toBe(81);
    await client.close();
  });

  it('is reached with a file of the role of a client', async () => {
    const access = fileWith('client', accessOfRole(file.read(), 'client'));
    const client = await Client.connect(scheduler.address, { access });
    expect(await client.submit(square, 2).result()).toBe(4);
    await client.close();
  });

  it.each([
    ['no file', join(tmpdir(), 'there-is-no-such-file.json'), 'ERR_ACCESS'],
    ['keys of another cluster', () => fileWith('other', newAccess()), 'ERR_ACCESS'],
  ])('refuses a client with %s', async (_, access, code) => {
    const path = typeof access === 'string' ? access : access();
    await expect(Client.connect(scheduler.address, { access: path })).rejects.toMatchObject({
      code,
    });
  });

  it('refuses a peer that speaks plain TCP, and decodes none of its messages', async () => {
    const address = scheduler.address.replace('tls:', 'tcp:');
    await expect(Client.connect(address, { timeoutMs: 3000 })).rejects.toMatchObject({
      code: expect.stringMatching(/ERR_PROTOCOL|ERR_CONNECT/) as string,
    });
    const { host, port } = { host: '127.0.0.1', port: Number(new URL(address).port) };
    const attempt = async (_: unknown, nbytes: number): Promise<void> => {
      const socket = connectPlain({ host, port });
      socket.on('error', () => undefined).resume();
      socket.end(randomBytes(1 + nbytes));
      await new Promise((resolve) => socket.on('close', resolve));
    };
    await Promise.all(Array.from({ length: 200 }, attempt));
    const decoded = log.messages.filter((line) => line?.includes('closed the connection'));
    expect(decoded).toEqual([]);
  });

  it('refuses a peer with the name of a role and another key', async () => {
    const port = Number(new URL(scheduler.address).port);
    const error = await new Promise<Error>((resolve, reject) => {
      const socket = connectTls({
        host: '127.0.0.1',
        port,
        minVersion: 'TLSv1.2',
        maxVersion: 'TLSv1.2',
        ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
        checkServerIdentity: () => undefined,
        pskCallback: () => ({ identity: 'admin', psk: randomBytes(32) }),
      });
      socket.on('secureConnect', () => reject(new Error('it was let in')));
      socket.on('error', resolve);
    });
    expect(error.message).toContain('bad record mac');
  });

  it('does not let a scheduler without the key pass for its own', async () => {
    const other = join(home, 'false');
    process.env['YARDMASTER_HOME'] = other;
    const impostor = await startScheduler({ log }, 'tls://127.0.0.1:0');
    process.env['YARDMASTER_HOME'] = home;
    await expect(Client.connect(impostor.address, { access: file.path })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    await impostor.close();
  });
});

describe('a role', () => {
  const of = (role: 'worker' | 'client' | 'admin' | 'viewer'): string =>
    fileWith(`role-${role}`, accessOfRole(file.read(), role));

  it('of a worker cannot act as a client, nor the reverse', async () => {
    await expect(hello(of('worker'), 'client')).rejects.toMatchObject({ code: 'ERR_ACCESS' });
    await expect(hello(of('client'), 'worker')).rejects.toMatchObject({ code: 'ERR_ACCESS' });
    // With the other role's name but its own key, it fails in the handshake.
    const keys = accessOfRole(file.read(), 'worker').keys;
    const forged = fileWith('forged', { keys: { client: keys.worker! } });
    await expect(hello(forged, 'client')).rejects.toMatchObject({ code: 'ERR_ACCESS' });
  });

  it('of a client cannot restart the cluster, and that of an admin can', async () => {
    const client = await Client.connect(scheduler.address, { access: of('client') });
    await expect(client.command('restart', { wait: false })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    expect(await client.submit(square, 5).result()).toBe(25);
    await client.close();
    const admin = await Client.connect(scheduler.address, { access: of('admin') });
    await admin.command('restore-policy', { slot: 'queuing' });
    await admin.close();
  });

  it('of a client cannot have plugins of workers or nannies added by a request to a worker', async () => {
    const client = await Client.connect(scheduler.address, { access: of('client') });
    const add = { action: 'add', plugin: { name: 'evil', use: '/tmp/evil.js' } };
    for (const method of ['worker-plugin', 'nanny-plugin']) {
      await expect(client.proxy('alice', method, add)).rejects.toMatchObject({
        code: 'ERR_PROTOCOL',
      });
      await expect(client.broadcast(method, add)).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
    }
    await client.close();
  });

  it('of a worker runs nothing on other workers', async () => {
    const channel = await hello(of('worker'), 'worker');
    const parameters = { method: 'inspect', parameters: { what: 'state' } };
    await expect(
      channel.request('command', { command: 'broadcast', parameters }),
    ).rejects.toMatchObject({ code: 'ERR_ACCESS' });
    channel.abort(new Error('over'));
  });

  it('of a viewer looks, and does nothing else', async () => {
    const viewer = await Client.connect(scheduler.address, { access: of('viewer') });
    expect(await viewer.command('task-counts')).toBeDefined();
    await expect(viewer.command('claim-keys', { keys: ['x'] })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    const refused = { code: 'ERR_ACCESS' };
    await expect(viewer.submit(square, 1).result()).rejects.toMatchObject(refused);
    await expect(viewer.scatter([1])).rejects.toMatchObject(refused);
    // It still looks.
    expect(await viewer.command('task-counts')).toBeDefined();
    await viewer.close();
  });

  it('of the scheduler does not open the data port of a worker, and that of data does not open the scheduler', async () => {
    const { data, client } = file.read().keys;
    const forged = fileWith('no-data', { keys: { data: client! } });
    await expect(hello(forged, 'peer', workers[0]!.address)).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    const channel = await hello(
      fileWith('data', { keys: { data: data! } }),
      'peer',
      workers[0]!.address,
    );
    await channel.close();
    await expect(
      hello(fileWith('data-as-client', { keys: { client: data! } }), 'client'),
    ).rejects.toMatchObject({ code: 'ERR_ACCESS' });
  });
});

describe('an access file', () => {
  it('that others can read is refused', () => {
    const path = fileWith('open', newAccess());
    chmodSync(path, 0o644);
    expect(() => new AccessFile(path).read()).toThrow(/every user of this machine can read/);
  });

  it('that is none is refused with the reason', () => {
    const path = join(home, 'none.json');
    writeFileSync(path, '{"keys":{"root":"x"}}', { mode: 0o600 });
    expect(() => new AccessFile(path).read()).toThrow(/is not an access file/);
  });

  it('that cannot be used while the scheduler runs lets in no peer, which is said', async () => {
    const access = fileWith('kept', file.read());
    const written = readFileSync(file.path);
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
    writeFileSync(file.path, 'half of a file');
    await expect(Client.connect(scheduler.address, { access })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    const { message } = await warned;
    expect(message).toContain(`a peer could not connect to ${scheduler.address}: `);
    expect(message).toContain('is not an access file');
    writeFileSync(file.path, written);
    const client = await Client.connect(scheduler.address, { access });
    await client.close();
  });

  it('that is rotated lets the old keys in no more, without a restart', async () => {
    const old = fileWith('old', file.read());
    const { address } = file.read();
    file.write(newAccess(address));
    await expect(Client.connect(scheduler.address, { access: old })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    const client = await Client.connect(scheduler.address);
    expect(await client.submit(square, 2).result()).toBe(4);
    await client.close();
    expect(readFileSync(file.path, 'utf8')).not.toContain(new AccessFile(old).read().keys.admin);
  });
});

describe('the access file of a scheduler that was killed', () => {
  const clock = new SystemClock();
  const listen = (address: string) =>
    new TlsTransport(clock, { environment: false }).listen(address, () => ({
      onMessages: () => undefined,
      onClose: () => undefined,
    }));

  it('stays when another scheduler at its port has taken it over', async () => {
    const probe = await listen('tls://127.0.0.1:0');
    await probe.close();
    const { address } = probe;
    const left = new AccessFile(join(home, 'access', `${new URL(address).port}.json`));
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    left.write({ ...newAccess(address), owner: { pid, host: hostname() } });
    const next = await listen(address);
    const other = await listen('tls://127.0.0.1:0');
    expect(left.exists).toBe(true);
    expect(left.read().owner).toBe(undefined);
    await Promise.all([next.close(), other.close()]);
  });
});

it('a plain listener that other machines reach is refused unless it is said to be insecure', async () => {
  const clock = new SystemClock();
  const accept = (): never => {
    throw new Error('no caller is expected');
  };
  await expect(new TcpTransport(clock).listen('tcp://0.0.0.0:0', accept)).rejects.toMatchObject({
    code: 'ERR_ACCESS',
  });
  const listener = await new TcpTransport(clock, { insecure: true }).listen(
    'tcp://0.0.0.0:0',
    accept,
  );
  await listener.close();
});
