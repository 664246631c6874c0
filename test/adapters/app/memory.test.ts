import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { LocalCluster } from '../../../adapters/app/index.ts';
import type { TaskFunctionOf } from '../../../adapters/tasks/index.ts';
import type { Logger, YardmasterError } from '../../../core/api/index.ts';
import type { ConfigInput } from '../../../core/config/types.ts';
import { tasks } from './fixtures/memory-tasks.mjs';

const { block, sum, takeAll, addUp } = tasks as unknown as {
  readonly block: TaskFunctionOf<(seed: number, nbytes: number) => Uint8Array>;
  readonly sum: TaskFunctionOf<(bytes: Uint8Array) => number>;
  readonly takeAll: TaskFunctionOf<(stepBytes: number, pauseMs: number) => never>;
  readonly addUp: TaskFunctionOf<(...parts: number[]) => number>;
};

const MB = 1_000_000;
const LIMIT = 24 * MB;

let folder = '';
const logged: string[] = [];
const note = (_: object, text = ''): void => void logged.push(text);
const log: Logger = { debug: () => undefined, info: () => undefined, warn: note, error: note };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'memory-test-'));
  logged.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function start(memory: NonNullable<ConfigInput['worker']>['memory'] = {}): Promise<LocalCluster> {
  const config: ConfigInput = {
    worker: {
      memoryLimit: LIMIT,
      memory: { spillFolder: folder, monitorInterval: '20 ms', ...memory },
    },
    scheduler: { validate: true },
  };
  return LocalCluster.start({ workers: 2, config, log });
}

const spilledFiles = (): string[] =>
  readdirSync(folder)
    .flatMap((name) => readdirSync(join(folder, name)).map((file) => join(folder, name, file)))
    .filter((file) => file.endsWith('.bin'));

/** Of bytes that `block` makes. */
const expected = (seed: number, nbytes: number): number => (seed % 251) * nbytes;

it('four times the memory limit goes through two workers, and memory stays bounded', async () => {
  const cluster = await start();
  const before = process.memoryUsage.rss();
  let peak = before;
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20);
  try {
    const client = await cluster.client();
    const nbytes = MB;
    const count = (4 * LIMIT) / nbytes;
    const blocks = Array.from({ length: count }, (_, seed) => client.submit(block, seed, nbytes));
    await Promise.all(blocks.map((future) => future.settled()));
    // Most of it must be there, for both together may keep only so much in memory.
    expect(spilledFiles().length * nbytes).toBeGreaterThan(count * nbytes - 2 * 0.6 * LIMIT);
    const sums = blocks.map((future) => client.submit(sum, future));
    const total = await client.submit(addUp, ...sums).result();
    expect(total).toBe(blocks.reduce((so, _, seed) => so + expected(seed, nbytes), 0));
    for (const { metrics } of cluster.scheduler.cluster.workers.values()) {
      expect(metrics.spilledMemoryBytes).toBeGreaterThan(0);
      expect(metrics.managedBytes - metrics.spilledMemoryBytes).toBeLessThan(0.6 * LIMIT);
    }
  } finally {
    clearInterval(watch);
    await cluster.close();
  }
  // Without the limit it is 190 MB and more: results, and the garbage of threads.
  expect(peak - before).toBeLessThan(150 * MB);
  expect(readdirSync(folder)).toEqual([]);
});

it('results whose files are damaged are computed again', async () => {
  const cluster = await start({ target: 0.1, spill: false, pause: false });
  try {
    const client = await cluster.client();
    const nbytes = MB;
    const blocks = Array.from({ length: 12 }, (_, seed) => client.submit(block, seed + 1, nbytes));
    await Promise.all(blocks.map((future) => future.settled()));
    const files = spilledFiles();
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) writeFileSync(file, 'nonsense');
    const sums = blocks.map((future) => client.submit(sum, future));
    const total = await client.submit(addUp, ...sums).result();
    expect(total).toBe(blocks.reduce((so, _, index) => so + expected(index + 1, nbytes), 0));
    expect(logged.join()).toMatch(
      /cannot be read: .* was changed by another process; it counts as lost/,
    );
    const [first] = await client.gather(blocks.slice(0, 1));
    expect(Buffer.compare(first!, Buffer.alloc(nbytes, 1))).toBe(0);
  } finally {
    await cluster.close();
  }
});

it('a full disk is reported, and every result is still there', async () => {
  const cluster = await start({ target: 0.1, spill: false, pause: false, maxSpill: '2.5 MB' });
  try {
    const client = await cluster.client();
    const blocks = Array.from({ length: 12 }, (_, seed) => client.submit(block, seed, MB));
    await Promise.all(blocks.map((future) => future.settled()));
    const told = logged.filter((line) => line.includes('worker.memory.maxSpill')).length;
    expect(told).toBeGreaterThanOrEqual(1);
    expect(told).toBeLessThanOrEqual(2); // Once by each worker.
    expect(spilledFiles().length).toBeLessThanOrEqual(4);
    const values = await client.gather(blocks);
    expect(values.map((value) => value[0])).toEqual(blocks.map((_, seed) => seed));
  } finally {
    await cluster.close();
  }
});

it('workers whose disk takes nothing pause when results fill them, and continue when some are released', async () => {
  const spillFolder = join(folder, 'no-folder');
  writeFileSync(spillFolder, '');
  const worker = { memoryLimit: 200 * MB, threads: 1, memory: { spillFolder } };
  const cluster = await LocalCluster.start({
    mode: 'processes',
    workers: 1,
    config: { worker },
    log,
  });
  try {
    const client = await cluster.client();
    const pids = [...cluster.pids];
    const blocks = Array.from({ length: 50 }, (_, seed) => client.submit(block, seed, 4 * MB));
    const [own] = cluster.scheduler.cluster.workers.values();
    while (own!.metrics.memoryBytes < 0.95 * 200 * MB) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await new Promise((resolve) => setTimeout(resolve, 4000)); // Beyond its last chance.
    // Memory that was measured with garbage may fall after a collection, and then a task begins again.
    while (own!.status !== 'paused') await new Promise((resolve) => setTimeout(resolve, 50));
    for (const future of blocks.slice(0, 30)) future.release();
    const values = await client.gather(blocks.slice(30));
    expect(values).toHaveLength(20);
    expect(cluster.pids).toEqual(pids);
  } finally {
    await cluster.close();
  }
});

it('a task that takes memory without end is stopped and reported with its size; its worker continues', async () => {
  const limit = 200 * MB;
  const config: ConfigInput = { worker: { memoryLimit: limit, threads: 1 } };
  const cluster = await LocalCluster.start({ mode: 'processes', workers: 1, config, log });
  try {
    const client = await cluster.client();
    const pids = [...cluster.pids];
    const failed = client.submit(takeAll, 4 * MB, 40).result();
    await expect(failed).rejects.toMatchObject({ code: 'ERR_OUT_OF_MEMORY' });
    const error = (await failed.catch((thrown: unknown) => thrown)) as YardmasterError;
    expect(error.data['processBytes']).toBeGreaterThan(0.95 * limit);
    expect(await client.submit(addUp, 1, 2).result()).toBe(3);
    expect(cluster.pids).toEqual(pids);
  } finally {
    await cluster.close();
  }
});
