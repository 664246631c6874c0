import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../adapters/app/local-cluster.ts';
import { startScheduler } from '../../kit/start-scheduler.ts';
import { Client } from '../../../adapters/client/index.ts';
import { SystemClock } from '../../../adapters/clocks/index.ts';
import { startWorker } from '../../../adapters/app/start-worker.ts';
import { inMemory, InMemoryTransport } from '../../../adapters/transports/memory.ts';
import type { TransportInput } from '../../../core/api/index.ts';
import { bad } from '../../bad-input/fixtures/bad-tasks.js';
import uds from '../transports/uds-transport.ts';

const CLI = createRequire(import.meta.url).resolve('#cli');
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-transports-'));
/** Compiled, so that processes can load it as well. */
const MODULE = join(folder, 'uds.mjs');
const source = readFileSync(new URL('../transports/uds-transport.ts', import.meta.url), 'utf8');
const { outputText } = ts.transpileModule(source, {
  compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
});
const ENTRY = new URL('../../../dist/adapters/app/entries/transport.js', import.meta.url).href;
writeFileSync(MODULE, outputText.replace('../../../adapters/app/entries/transport.ts', ENTRY));
afterAll(() => rmSync(folder, { recursive: true }));

async function computes(options: LocalClusterOptions): Promise<LocalCluster> {
  const cluster = await LocalCluster.start({ workers: 2, ...options });
  onTestFinished(() => cluster.close());
  const client = await cluster.client();
  const squares = client.map(bad.echo, [1, 2, 3]);
  expect(await client.gather(squares)).toEqual([1, 2, 3]);
  expect(await client.submit(bad.echo, squares).result()).toEqual([1, 2, 3]);
  return cluster;
}

const UDS = { use: MODULE, options: { folder } };

describe('a local cluster uses the transport of its configuration', () => {
  it.each(['inline', 'threads'] as const)('in memory with options, %s', async (mode) => {
    const transport = { use: 'inmemory', options: { delayMs: 1, frameBytesMax: 4_000_000 } };
    const cluster = await computes({ mode, config: { scheduler: { transport } } });
    expect(cluster.address).toMatch(/^inmemory:/);
  });

  it.each(['tcp', 'inmemory'])('%s, and refuses messages that hold no results', async (use) => {
    const transport = { use, options: { frameBytesMax: 1_000_000 } };
    const start = LocalCluster.start({ mode: 'inline', config: { scheduler: { transport } } });
    await expect(start).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringMatching(/frameBytesMax.*2097152/s) as string,
    });
  });

  it('TCP with options, for workers in this process', async () => {
    const transport = { use: 'tcp', options: { highWaterBytes: 1000 } };
    const cluster = await computes({ mode: 'inline', config: { scheduler: { transport } } });
    expect(cluster.address).toMatch(/^tcp:/);
  });

  it.each(['inline', 'threads', 'processes'] as const)('of a third party, %s', async (mode) => {
    const cluster = await computes({ mode, config: { scheduler: { transport: UDS } } });
    expect(cluster.address).toMatch(/^uds:\/\/local:\d+$/);
    // The scheduler and both workers listen there.
    expect(readdirSync(folder).filter((name) => name.endsWith('.sock'))).toHaveLength(3);
  });

  it('at the configured address, if it is one of that transport', async () => {
    const scheduler = { transport: UDS, address: 'uds://here:7' };
    const cluster = await computes({ mode: 'inline', config: { scheduler } });
    expect(cluster.address).toBe('uds://here:7');
  });

  it.each<[string, () => TransportInput]>([
    ['a definition', () => inMemory],
    ['a definition with options', () => ({ use: inMemory, options: { delayMs: 1 } })],
    ['a name', () => 'inmemory'],
    ['a module with options', () => UDS],
    ['an instance', () => new InMemoryTransport(new SystemClock())],
  ])('or one that is given in code as %s', async (_what, make) => {
    const transport = make();
    const cluster = await computes({ mode: 'inline', transport });
    expect(cluster.address).toMatch(transport === UDS ? /^uds:/ : /^inmemory:/);
  });

  it.each(['scheduler', 'worker', 'client'] as const)(
    'with options also in a list of a %s',
    async (of) => {
      const clock = new SystemClock();
      const hub = new InMemoryTransport(clock);
      const own: TransportInput = { use: uds, options: { folder } };
      const given = (who: string): readonly TransportInput[] =>
        who === of ? [own] : [uds.create({ clock }, { folder })];
      const running = await startScheduler(
        { transports: [...given('scheduler'), hub] },
        `uds://${of}:0`,
      );
      onTestFinished(() => running.close());
      const worker = await startWorker(running.address, {
        ...{ transports: given('worker'), executor: 'inline', isGuest: true },
      });
      onTestFinished(() => worker.close());
      const client = await Client.connect(running.address, { transports: given('client') });
      onTestFinished(() => client.close());
      expect(await client.submit(bad.echo, 5).result()).toBe(5);
    },
  );

  it('while one that is given in code wins', async () => {
    const transport = new InMemoryTransport(new SystemClock());
    const config = { scheduler: { transport: { use: 'inmemory' } } };
    const cluster = await computes({ mode: 'inline', transport, config });
    expect(cluster.scheduler.transport).toBe(transport);
  });

  it('and what cannot reach other processes is refused with what can', async () => {
    const mode = 'processes';
    const start = (options: LocalClusterOptions): Promise<LocalCluster> =>
      LocalCluster.start({ mode, ...options });
    await expect(start({ config: { scheduler: { transport: 'inmemory' } } })).rejects.toThrow(
      'scheduler.transport is inmemory, which cannot reach workers in separate processes; use tcp',
    );
    await expect(start({ transport: new InMemoryTransport(new SystemClock()) })).rejects.toThrow(
      'scheduler.transport is inmemory, which cannot reach workers in separate processes',
    );
    await expect(start({ transport: { use: uds } })).rejects.toThrow(
      'scheduler.transport is given in code, which cannot be sent to workers in separate processes; name its module',
    );
  });
});

describe('yardmaster worker', () => {
  it.each([['--no-nanny'], ['--nanny']])(
    '%s reaches its scheduler by the configured transport',
    async (flag) => {
      const config = join(folder, 'cluster.yaml');
      writeFileSync(
        config,
        `scheduler:\n  transport: { use: ${MODULE}, options: { folder: ${folder} } }\n`,
      );
      const running = await startScheduler({ config }, 'uds://scheduler:0');
      onTestFinished(() => running.close());
      const worker = spawn(process.execPath, [
        CLI,
        'worker',
        running.address,
        '--config',
        config,
        '--threads',
        '1',
        flag,
      ]);
      let errors = '';
      worker.stderr.on('data', (text: Buffer) => (errors += text.toString()));
      const gone = new Promise((resolve) => worker.once('close', resolve));
      onTestFinished(async () => {
        worker.kill('SIGTERM');
        await gone;
      });
      const transports = [uds.create({ clock: new SystemClock() }, { folder })];
      const client = await Client.connect(running.address, { transports });
      onTestFinished(() => client.close());
      expect(await client.submit(bad.echo, 5).result()).toBe(5);
      expect(errors).toBe('');
    },
  );

  it('without it says what to configure', async () => {
    const worker = spawn(process.execPath, [CLI, 'worker', 'uds://nowhere:1', '--no-nanny']);
    let errors = '';
    worker.stderr.on('data', (text: Buffer) => (errors += text.toString()));
    await new Promise((resolve) => worker.once('close', resolve));
    expect(errors).toContain('name another one in its configuration as scheduler.transport');
  });
});

it.each([
  ['workers', '--json'],
  ['why', 'x'],
])('yardmaster %s reaches a scheduler by the configured transport', async (...command) => {
  const config = join(folder, 'operate.yaml');
  const transport = `{ use: ${MODULE}, options: { folder: ${folder} } }`;
  writeFileSync(config, `scheduler:\n  transport: ${transport}\n`);
  const running = await startScheduler({ config }, 'uds://scheduler:0');
  onTestFinished(() => running.close());
  const args = [CLI, ...command, '-s', running.address, '--config', config];
  const child = spawn(process.execPath, args);
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => (written += text.toString()));
  }
  await new Promise((resolve) => child.once('close', resolve));
  expect(written).toMatch(/^\[\]\n$|^x is unknown/);
});
