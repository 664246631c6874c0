import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { ConfigInput } from '../../../core/config/types.ts';
import { MemoryLog } from '../../bad-input/memory-log.ts';
import { eventually } from '../../kit/eventually.ts';
import { round } from './fixtures/round-tasks.mjs';

const PLUGIN = fileURLToPath(new URL('fixtures/nanny-plugin.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-nanny-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function start(
  worker: NonNullable<ConfigInput['worker']>,
  log = new MemoryLog(),
): Promise<LocalCluster> {
  return LocalCluster.start({ mode: 'processes', workers: 1, config: { worker }, log });
}

/** Waits until the worker process of that round is there, or a later one: a short life may end before it is seen. */
async function untilRound(cluster: LocalCluster, wanted: number): Promise<void> {
  const client = await cluster.client();
  for (;;) {
    if (Number(await client.with({ pure: false }).submit(round).result()) >= wanted) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('a plugin of a nanny gives its processes variables, restarts them, and sees them come and go', async () => {
  const file = join(folder, 'notes');
  const clumsy = { use: `${PLUGIN}#Clumsy` };
  const log = new MemoryLog();
  const options = { file, restartOnce: true };
  const cluster = await start({ nannyPlugins: [clumsy, { use: PLUGIN, options }] }, log);
  await untilRound(cluster, 2);
  await cluster.close();
  expect(readFileSync(file, 'utf8').trim().split('\n')).toEqual([
    'setup for worker-0',
    'starting 1',
    'registered 1',
    expect.stringContaining('ended: was asked to restart: its nanny was asked to restart it'),
    'starting 2',
    'registered 2',
    expect.stringContaining('ended: '),
    'close',
    'aborted',
  ]);
  expect(log.text).toContain('the hook processStarting of plugin "Clumsy" threw');
});

test('a worker process whose lifetime is over is replaced by its nanny, or gone', async () => {
  const file = join(folder, 'lives');
  const nannyPlugins = [{ use: PLUGIN, options: { file } }];
  const lasting = await start({ lifetime: '700 ms', lifetimeRestart: true, nannyPlugins });
  await untilRound(lasting, 3);
  await lasting.close();
  expect(readFileSync(file, 'utf8')).toContain('its lifetime of 0.7 s is over');
  const ending = await start({ lifetime: '500 ms' });
  await eventually(() => expect(ending.workerCount).toBe(0));
  await ending.close();
});

test('a plugin that is given in code cannot reach a worker process, and says so', async () => {
  const plugins = [{ name: 'mine', setup: () => undefined }];
  await expect(start({ plugins })).rejects.toMatchObject({
    code: 'ERR_CONFIG',
    message: expect.stringContaining('worker.plugins[0] is given in code') as string,
  });
});

test('a plugin of a nanny that does not exist keeps the worker from starting', async () => {
  await expect(start({ nannyPlugins: ['./nowhere.mjs'] })).rejects.toMatchObject({
    code: 'ERR_PLUGIN_LOAD',
  });
});

test('a client registers a plugin for all nannies, also of workers that come later', async () => {
  const file = join(folder, 'remote');
  const notes = (): string[] => readFileSync(file, 'utf8').trim().split('\n');
  const cluster = await start({});
  const client = await cluster.client();
  const options = { file };
  await expect(client.registerNannyPlugin({ use: './nowhere.mjs' })).rejects.toMatchObject({
    code: 'ERR_PLUGIN_SETUP',
    message: expect.stringContaining('1 of 1 worker refused it') as string,
  });
  expect(await client.registerNannyPlugin({ use: PLUGIN, name: 'notes', options })).toBe('notes');
  expect(notes()).toEqual(['setup for worker-0']);
  await cluster.adapt({ minimum: 2, maximum: 2 });
  await expect.poll(notes).toContain('setup for worker-1');
  // The same nanny, another process: the plugin is not set up twice.
  await client.restartWorkers(['worker-0']);
  await untilRound(cluster, 1);
  expect(notes().filter((line) => line === 'setup for worker-0')).toHaveLength(1);
  await client.unregisterNannyPlugin('notes');
  expect(notes().filter((line) => line === 'close')).toHaveLength(2);
  await expect(client.unregisterNannyPlugin('notes')).rejects.toThrow('no nanny plugin "notes"');
  await cluster.close();
});

test('workers without a nanny go without plugins for nannies', async () => {
  const cluster = await LocalCluster.start({ mode: 'inline', workers: 1 });
  const client = await cluster.client();
  expect(await client.registerNannyPlugin({ use: PLUGIN, name: 'notes' })).toBe('notes');
  await cluster.close();
});
