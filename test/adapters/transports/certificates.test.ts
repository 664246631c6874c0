import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { Client } from '../../../adapters/client/index.ts';
import { Runs } from '../../kit/runs.ts';
import { square } from '../cli/fixtures/tasks.js';
import {
  type Authority,
  type Certificates,
  hasOpenssl,
  makeAuthority,
  makeSigned,
} from '../dask/certificates.ts';

describe.skipIf(!hasOpenssl)('certificates of one’s own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-certificates-'));
  const runs = new Runs();
  let authority: Authority;
  const files: Record<string, Certificates> = {};

  beforeAll(() => {
    authority = makeAuthority(folder, 'ours');
    for (const role of ['scheduler', 'worker', 'client', 'admin', 'viewer']) {
      files[role] = makeSigned(folder, role, authority, [role]);
    }
    files['none'] = makeSigned(folder, 'none', authority);
    files['stranger'] = makeSigned(folder, 'stranger', makeAuthority(folder, 'theirs'), ['admin']);
  });
  afterEach(() => runs.end('SIGKILL'));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  const flagsOf = (role: string): string[] => {
    const { ca, cert, key } = files[role]!;
    return ['--tls-ca-file', ca, '--tls-cert', cert, '--tls-key', key];
  };

  test('make a cluster of processes, in which each has the role of its certificate', async () => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', ...flagsOf('scheduler'));
    const address = await scheduler.firstLine();
    expect(address).toMatch(/^tls:/);
    const worker = runs.yardmaster('worker', address, '--threads', '1', ...flagsOf('worker'));
    expect(await worker.firstLine()).toMatch(/^tls:/);
    const client = await Client.connect(address, { tls: files['client']! });
    expect(await client.submit(square, 7).result()).toBe(49);
    await expect(client.restart()).rejects.toMatchObject({ code: 'ERR_ACCESS' });
    await client.close();
    const admin = await Client.connect(address, { tls: files['admin']! });
    await admin.restart();
    await admin.close();
    const viewer = await Client.connect(address, { tls: files['viewer']! });
    await expect(viewer.submit(square, 3).result()).rejects.toThrow();
    await viewer.close().catch(() => undefined);
    // A worker cannot act as a client, and one without a role is nothing.
    for (const role of ['worker', 'none', 'scheduler']) {
      await expect(Client.connect(address, { tls: files[role]! })).rejects.toMatchObject({
        code: 'ERR_ACCESS',
      });
    }
    const impostor = runs.yardmaster('worker', address, '--no-nanny', ...flagsOf('client'));
    expect(await impostor.exit).toBe(1);
    expect(impostor.stderr).toContain('ERR_ACCESS');
    const stranger = { ...files['stranger']!, ca: authority.ca };
    await expect(Client.connect(address, { tls: files['stranger']! })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
      message: expect.stringContaining('the authority of this side has not signed') as string,
    });
    // The scheduler closes without a reason what its authority has not signed.
    await expect(Client.connect(address, { tls: stranger })).rejects.toMatchObject({
      code: 'ERR_CONNECT',
      message: expect.stringContaining('has signed the certificate of this side') as string,
    });
    await expect(Client.connect(address, { timeoutMs: 3000 })).rejects.toThrow();
  });

  test('are replaced while the cluster runs, and files that cannot be used are left alone', async () => {
    const own = join(folder, 'renewed');
    mkdirSync(own);
    const put = (from: Certificates, name: string): Certificates => {
      const copied = { ca: '', cert: '', key: '' };
      for (const what of ['ca', 'cert', 'key'] as const) {
        copied[what] = join(own, `${name}-${what}.pem`);
        copyFileSync(from[what], `${copied[what]}.tmp`);
        renameSync(`${copied[what]}.tmp`, copied[what]);
      }
      return copied;
    };
    const flags = ({ ca, cert, key }: Certificates): string[] => {
      return ['--tls-ca-file', ca, '--tls-cert', cert, '--tls-key', key];
    };
    const serving = put(files['scheduler']!, 'scheduler');
    const scheduler = runs.yardmaster('scheduler', '--port', '0', ...flags(serving));
    const address = await scheduler.firstLine();
    const working = put(files['worker']!, 'worker');
    const worker = runs.yardmaster(
      'worker',
      address,
      '--threads',
      '1',
      '--no-nanny',
      ...flags(working),
    );
    await worker.firstLine();
    const early = await Client.connect(address, { tls: files['client']! });
    expect(await early.submit(square, 3).result()).toBe(9);

    writeFileSync(serving.cert, 'this is no certificate');
    const still = await Client.connect(address, { tls: files['client']! });
    await still.close();
    await expect.poll(() => scheduler.stderr).toContain('the certificates before stay');

    const authority = makeAuthority(folder, 'later');
    for (const role of ['scheduler', 'worker']) {
      put(makeSigned(folder, `later-${role}`, authority, [role]), role);
    }
    const late = makeSigned(folder, 'later-client', authority, ['client']);
    await expect(Client.connect(address, { tls: files['client']! })).rejects.toMatchObject({
      code: 'ERR_ACCESS',
    });
    const client = await Client.connect(address, { tls: late });
    // The worker shows its new certificate to the client that fetches the result.
    const [big] = await client.scatter([new Uint8Array(1_000_000)]);
    expect((await big!.result()) as Uint8Array).toHaveLength(1_000_000);
    expect(await client.submit(square, 5).result()).toBe(25);
    // Connections that are open stay.
    expect(await early.submit(square, 6).result()).toBe(36);
    await early.close();
    await client.close();
  });

  test('of another role do not make a scheduler, neither here nor for those that connect', async () => {
    const failing = runs.yardmaster('scheduler', '--port', '0', ...flagsOf('worker'));
    expect(await failing.exit).toBe(1);
    expect(failing.stderr).toContain('is none of a scheduler');
    const partly = runs.yardmaster('scheduler', '--port', '0', ...flagsOf('scheduler').slice(0, 2));
    expect(await partly.exit).toBe(1);
    expect(partly.stderr).toContain('certificates need three files');
  });
});
