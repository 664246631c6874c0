/** Peers without credentials: how far each kind of attempt gets at an address with keys. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

import { SystemClock } from '../../adapters/clocks/index.ts';
import { AccessFile, newAccess, TlsTransport } from '../../adapters/transports/tls.ts';
import type { Transport } from '../../core/api/index.ts';

/** Attempts under way at the same time. */
const AT_ONCE = 32;
const HELLO = Buffer.from('yardmaster-tcp/1\n');
const PSK = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
} as const;

/** What came of the attempts. */
export interface Strangers {
  readonly attempts: number;
  /** Connections that were accepted; then their bytes would be decoded. */
  readonly accepted: number;
  readonly messages: number;
  /** Whether a peer with the keys got in after all of it. */
  readonly isOpenToFriends: boolean;
}

/** @param number - of the attempt, by which kinds take turns */
function attempt(port: number, number: number): Socket {
  const at = { host: '127.0.0.1', port };
  const withKey = (identity: string, psk: Buffer): ConnectionOptions => ({
    ...at,
    ...PSK,
    checkServerIdentity: () => undefined,
    pskCallback: () => ({ identity, psk }),
  });
  const kinds: readonly (() => Socket)[] = [
    () => connect(at).end(randomBytes(1 + (number % 3000))),
    () => connect(at).end(Buffer.concat([HELLO, Buffer.from([0, 0, 0, 1, 0x80])])),
    // The begin of a record of TLS that is much longer than what follows.
    () => connect(at).end(Buffer.concat([Buffer.from([22, 3, 1, 0x3f, 0xff]), randomBytes(200)])),
    () => connectTls({ ...at, rejectUnauthorized: false }),
    () => connectTls({ ...at, rejectUnauthorized: false, maxVersion: 'TLSv1.2' }),
    ...['worker', 'client', 'admin', 'viewer', 'data'].map(
      (role) => () => connectTls(withKey(role, randomBytes(32))),
    ),
    () => connectTls(withKey('admin', Buffer.alloc(32))),
    () => connectTls(withKey('root', randomBytes(32))),
    () => connectTls(withKey('__proto__', randomBytes(32))),
    () => connectTls(withKey('a'.repeat(100), randomBytes(64))),
  ];
  return (kinds[number % kinds.length] as () => Socket)();
}

/** Resolves when the attempt has ended. What gets in says hello at once. */
function tried(port: number, number: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = attempt(port, number);
    socket.on('error', () => undefined).resume();
    socket.on('secureConnect', () => {
      socket.end(Buffer.concat([HELLO, Buffer.from([0, 0, 0, 1, 0x80])]));
    });
    socket.on('close', () => resolve());
  });
}

/** Attempts on a listener with keys, of a scheduler or of a worker. */
export async function strangers(
  count: number,
  serves: 'scheduler' | 'data' = 'scheduler',
): Promise<Strangers> {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-strangers-'));
  const access = join(folder, 'access.json');
  new AccessFile(access).write(newAccess());
  const transport = new TlsTransport(new SystemClock(), { access, serves });
  const seen = { accepted: 0, messages: 0 };
  const listener = await transport.listen('tls://127.0.0.1:0', () => {
    seen.accepted++;
    return {
      onMessages: (batch) => void (seen.messages += batch.length),
      onClose: () => undefined,
    };
  });
  try {
    const port = Number(new URL(listener.address).port);
    let next = 0;
    const one = async (): Promise<void> => {
      while (next < count) await tried(port, next++);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    const { accepted, messages } = seen;
    const isOpenToFriends = await getsIn(transport, listener.address, serves);
    return { attempts: count, accepted, messages, isOpenToFriends };
  } finally {
    await listener.close();
    rmSync(folder, { recursive: true });
  }
}

async function getsIn(
  transport: Transport,
  address: string,
  serves: 'scheduler' | 'data',
): Promise<boolean> {
  const ignored = { onMessages: () => undefined, onClose: () => undefined };
  const role = serves === 'data' ? 'peer' : 'client';
  const connection = await transport.connect(address, () => ignored, { role });
  await connection.close();
  return true;
}

/** `npm run hostile -- --strangers N`. */
export async function printStrangers(count: number): Promise<void> {
  for (const serves of ['scheduler', 'data'] as const) {
    const startMs = performance.now();
    const { accepted, messages } = await strangers(count, serves);
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    process.stdout.write(
      `${serves}: ${count} attempts without credentials in ${seconds} s, ${accepted} connections accepted, ${messages} messages decoded\n`,
    );
  }
}
