/** Schedulers that are killed and started again with their journal, over real sockets and processes. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { Client, type Reconnected } from '../../../../adapters/client/index.ts';
import type { Run } from '../../../kit/runs.ts';
import { useLive } from '../../../kit/live.ts';
import { failing, leaf, sum } from './fixtures/tasks.js';

const { folder, runs, stops } = useLive('journal');

/** Processes start slowly on a machine that is busy. */
vi.setConfig({ testTimeout: 90_000 });

/** A scheduler that can be killed, and started again at its address. */
class Killable {
  private constructor(
    private run: Run,
    readonly address: string,
    private readonly args: readonly string[],
  ) {}

  static async start(journal: string, ...more: string[]): Promise<Killable> {
    const args = ['scheduler', '--journal', journal, '--no-dashboard', ...more];
    const run = runs.yardmaster(...args, '--port', '0');
    return new Killable(run, await run.firstLine(), args);
  }

  async killAndStart(): Promise<void> {
    this.run.child.kill('SIGKILL');
    await this.run.exit;
    const { port } = new URL(this.address.replace('tcp:', 'http:'));
    this.run = runs.yardmaster(...this.args, '--port', port);
    await this.run.firstLine();
  }

  get stderr(): string {
    return this.run.stderr;
  }
}

async function startWorkers(address: string, count: number): Promise<Run[]> {
  const config = join(folder, 'worker.yaml');
  writeFileSync(
    config,
    'worker: { onSchedulerLost: reconnect, reconnectTimeout: 60s, threads: 2 }',
  );
  const args = ['worker', address, '--config', config, '--log-level', 'error'];
  const workers = Array.from({ length: count }, () => runs.yardmaster(...args));
  await Promise.all(workers.map((worker) => worker.firstLine()));
  return workers;
}

async function connect(address: string, returns: Reconnected[] = []): Promise<Client> {
  const client = await Client.connect(address, {
    onSchedulerLost: 'reconnect',
    onReconnected: (event) => returns.push(event),
  });
  stops.push(() => client.close());
  return client;
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('a scheduler that is killed three times in a graph computes no task twice', async () => {
  const scheduler = await Killable.start(join(folder, 'three'));
  await startWorkers(scheduler.address, 2);
  const returns: Reconnected[] = [];
  const client = await connect(scheduler.address, returns);
  const file = join(folder, 'three.txt');
  const leaves = Array.from({ length: 120 }, (_, x) => client.submit(leaf, file, 40, x));
  const sums = Array.from({ length: 12 }, (_, index) =>
    client.submit(sum, file, String(index), 40, leaves.slice(10 * index, 10 * index + 10)),
  );
  const total = client.submit(sum, file, 'all', 10, sums);
  await client.committed();
  for (const done of [10, 50, 100]) {
    await until(() => linesOf(file).length >= done);
    await scheduler.killAndStart();
  }
  expect(await total.result()).toBe((119 * 120) / 2);
  const lines = linesOf(file);
  expect(new Set(lines).size).toBe(133);
  expect(lines).toHaveLength(133);
  expect(returns.flatMap(({ lost }) => lost)).toEqual([]);
});

test('a run that goes on while the scheduler is away is adopted, and its result counts', async () => {
  const scheduler = await Killable.start(join(folder, 'adopted'));
  await startWorkers(scheduler.address, 1);
  const client = await connect(scheduler.address);
  const file = join(folder, 'adopted.txt');
  const slow = client.submit(leaf, file, 3000, 7);
  const early = client.submit(leaf, file, 0, 1);
  expect(await early.result()).toBe(1);
  await scheduler.killAndStart();
  expect(await slow.result()).toBe(7);
  expect(linesOf(file)).toEqual(['leaf-1', 'leaf-7']);
});

test('a failure is still known after a restart, and a retry computes the task again', async () => {
  const scheduler = await Killable.start(join(folder, 'failed'));
  await startWorkers(scheduler.address, 1);
  const client = await connect(scheduler.address);
  const file = join(folder, 'failed.txt');
  const future = client.submit(failing, file);
  await expect(future.result()).rejects.toThrow('as it was told');
  await scheduler.killAndStart();
  await expect(future.result()).rejects.toThrow('as it was told');
  expect(linesOf(file)).toEqual(['failing']);
  client.retry([future]);
  await expect(future.result()).rejects.toThrow('as it was told');
  expect(linesOf(file)).toEqual(['failing', 'failing']);
});
