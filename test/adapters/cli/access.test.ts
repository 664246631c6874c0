import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, expect, test } from 'vitest';

import { Client } from '../../../adapters/client/index.ts';
import { type Run, Runs } from '../../kit/runs.ts';
import { square } from './fixtures/tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-cli-access-'));
const runs = new Runs();
// Inherited by the processes.
process.env['YARDMASTER_HOME'] = folder;

afterEach(() => runs.end('SIGKILL'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const path = (name: string): string => join(folder, name);

/** The first address that it prints. */
async function addressOf(run: Run): Promise<string> {
  for (;;) {
    const found = /\bt(?:ls|cp):\/\/[\d.]+:\d+(?=\s)/.exec(`${run.stdout}${run.stderr}`);
    if (found !== null) return found[0];
    await run.output();
  }
}

/** A file with the keys of one role. */
async function cutDown(access: string, role: string): Promise<string> {
  const file = path(`${role}.json`);
  const run = await runs.command('access', 'show', access, '--role', role, '--output', file);
  expect(run.code).toBe(0);
  expect(run.out).toBe(`${file}\n`);
  return file;
}

test('the keys of a role are written to a file of its owner, whose keys are not replaced alone', async () => {
  const access = path('whole.json');
  await runs.command('access', 'new', access);
  const worker = await cutDown(access, 'worker');
  expect(statSync(worker).mode & 0o777).toBe(0o600);
  const before = readFileSync(worker, 'utf8');
  const rotate = runs.yardmaster('access', 'rotate', worker);
  expect(await rotate.exit).toBe(1);
  expect(rotate.stderr).toMatch(/ERR_ACCESS: .* has the keys of worker and data only/);
  expect(readFileSync(worker, 'utf8')).toBe(before);
});

test('a file with all keys is not replaced by a part of them', async () => {
  const access = path('all.json');
  await runs.command('access', 'new', access);
  const before = readFileSync(access, 'utf8');
  const run = await runs.command('access', 'show', access, '--role', 'worker', '-o', access);
  expect([run.code, run.err]).toEqual([1, expect.stringContaining('name another one')]);
  expect(readFileSync(access, 'utf8')).toBe(before);
});

test('processes with an access file make a cluster, and a process without one is refused', async () => {
  const access = path('cluster.json');
  expect((await runs.command('access', 'new', access)).code).toBe(0);
  expect(statSync(access).mode & 0o777).toBe(0o600);
  const at = ['--host', '127.0.0.2', '--port', '0', '--access', access];
  const scheduler = runs.yardmaster('scheduler', ...at);
  const address = await addressOf(scheduler);
  const ofWorker = await cutDown(access, 'worker');
  const flags = ['--host', '127.0.0.3', '--threads', '1', '--name', 'w', '--access', ofWorker];
  const worker = runs.yardmaster('worker', address, ...flags);
  expect(await addressOf(worker)).toMatch(/^tls:\/\/127\.0\.0\.3:/);
  const ofClient = await cutDown(access, 'client');
  const client = await Client.connect(address, { access: ofClient });
  expect(await client.submit(square, 7).result()).toBe(49);
  await client.close();

  const ofViewer = await cutDown(access, 'viewer');
  const listed = await runs.command('workers', '-s', address, '--access', ofViewer);
  expect(listed.code).toBe(0);
  expect(listed.out).toContain('127.0.0.3');
  const stranger = await runs.command('workers', '-s', address);
  expect(stranger.code).toBe(1);
  expect(stranger.err).toContain('ERR_ACCESS: there are no keys for the cluster');
  const impostor = await runs.command('worker', address, '--no-nanny', '--access', ofClient);
  expect(impostor.code).toBe(1);
  expect(impostor.err).toContain('has no key to connect as a worker');
  const keys = readFileSync(ofWorker, 'utf8');
  expect(Object.keys((JSON.parse(keys) as { keys: object }).keys)).toEqual(['worker', 'data']);
});

test('a plain address beyond this machine is refused, for workers and for Dask as well', async () => {
  const open = ['--host', '0.0.0.0', '--port', '0', '--no-dashboard'];
  const dask = runs.yardmaster('scheduler', '--dask', ...open);
  expect(await dask.exit).toBe(1);
  expect(dask.stderr).toContain('without encryption or credentials');
  const config = path('plain.yaml');
  writeFileSync(config, 'scheduler: { address: "tcp://0.0.0.0:0" }\n');
  const plain = runs.yardmaster('scheduler', '--config', config);
  expect(await plain.exit).toBe(1);
  expect(plain.stderr).toContain('--insecure');
  const insecure = runs.yardmaster('scheduler', '--config', config, '--insecure');
  expect(await addressOf(insecure)).toMatch(/^tcp:/);
});

test('a scheduler that other machines reach has keys by default', async () => {
  const run = runs.yardmaster('scheduler', '--host', '0.0.0.0', '--port', '0');
  const address = await addressOf(run);
  expect(address).toMatch(/^tls:/);
  const port = new URL(address).port;
  expect(statSync(path(`access/${port}.json`)).mode & 0o777).toBe(0o600);
});

test('on one machine scheduler, worker, client and commands find the keys by themselves, and other users do not', async () => {
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
  const address = await addressOf(scheduler);
  expect(address).toMatch(/^tls:\/\/127\.0\.0\.1:/);
  const file = path(`access/${new URL(address).port}.json`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await addressOf(runs.yardmaster('worker', address, '--threads', '1'));
  const client = await Client.connect(address);
  expect(await client.submit(square, 7).result()).toBe(49);
  await client.close();
  const listed = await runs.command('workers', '-s', address);
  expect([listed.code, listed.err]).toEqual([0, '']);
  const others = new Runs({ YARDMASTER_HOME: path('of-another-user') });
  for (const command of [
    ['workers', '-s', address],
    ['worker', address, '--no-nanny'],
  ]) {
    const stranger = await others.command(...command);
    expect(stranger.code).toBe(1);
    expect(stranger.err).toContain('ERR_ACCESS: there are no keys for the cluster');
  }
  scheduler.child.kill('SIGTERM');
  expect(await scheduler.exit).toBe(0);
  // Nothing would find the file of a port that the system has chosen.
  expect(existsSync(file)).toBe(false);
});

test('two schedulers of one machine keep their own keys, and those of one port share them and say so', async () => {
  const first = await addressOf(runs.yardmaster('scheduler', '--port', '0', '--no-dashboard'));
  const { port } = new URL(first);
  const keysOf = (name: string): unknown =>
    (JSON.parse(readFileSync(path(`access/${name}.json`), 'utf8')) as { keys: unknown }).keys;
  const keys = keysOf(port);
  const second = await addressOf(runs.yardmaster('scheduler', '--port', '0', '--no-dashboard'));
  expect(keysOf(new URL(second).port)).not.toEqual(keys);
  const flags = ['--host', '127.0.0.2', '--port', port, '--no-dashboard', '--access'];
  const same = runs.yardmaster('scheduler', ...flags, path(`access/${port}.json`));
  await addressOf(same);
  expect(keysOf(port)).toEqual(keys);
  while (!same.stderr.includes(`was of a scheduler at ${first}`)) await same.output();
  for (const address of [first, second]) await (await Client.connect(address)).close();
});

test('keys are rotated while the cluster runs: connections stay, old keys are refused, and data moves between old and new workers', async () => {
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
  const address = await addressOf(scheduler);
  const work = (name: string): Promise<string> =>
    addressOf(runs.yardmaster('worker', address, '--threads', '1', '--name', name, '--no-nanny'));
  await work('old');
  const early = await Client.connect(address);
  const first = early.with({ workers: ['old'] }).submit(square, 3);
  expect(await first.result()).toBe(9);
  const old = path('before-rotation.json');
  copyFileSync(path(`access/${new URL(address).port}.json`), old);

  expect((await runs.command('access', 'rotate')).code).toBe(0);
  await work('new');
  expect(
    await early
      .with({ workers: ['new'] })
      .submit(square, first)
      .result(),
  ).toBe(81);
  const late = await Client.connect(address);
  expect(
    await late
      .with({ workers: ['old'] })
      .submit(square, 5)
      .result(),
  ).toBe(25);
  await expect(Client.connect(address, { access: old })).rejects.toMatchObject({
    code: 'ERR_ACCESS',
  });
  const refused = await runs.command('worker', address, '--no-nanny', '--access', old);
  expect(refused.code).toBe(1);
  await early.close();
  await late.close();
});

test('--insecure listens without keys, and a scheduler that cannot write its keys says what to do', async () => {
  const plain = await addressOf(runs.yardmaster('scheduler', '--port', '0', '--insecure'));
  expect(plain).toMatch(/^tcp:\/\/127\.0\.0\.1:/);
  writeFileSync(path('no-folder'), '');
  const homeless = new Runs({ YARDMASTER_HOME: path('no-folder') });
  const failing = homeless.yardmaster('scheduler', '--port', '0', '--no-dashboard');
  expect(await failing.exit).toBe(1);
  expect(failing.stderr).toContain('ERR_ACCESS: the keys of the cluster cannot be written to');
  expect(failing.stderr).toContain('--insecure');
});
