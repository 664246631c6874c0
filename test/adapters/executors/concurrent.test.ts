import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClusterMode, LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { concurrent } from '../../../adapters/tasks/index.ts';
import { waiting } from './fixtures/waiting-tasks.mjs';
import { eventually } from '../../kit/eventually.ts';

const MODES: readonly ClusterMode[] = ['inline', 'threads', 'processes'];

describe.each(MODES)('concurrent tasks (%s)', (mode) => {
  let cluster: LocalCluster;
  let client: Client;
  let file: string;
  const folder = mkdtempSync(join(tmpdir(), 'ym-concurrent-'));
  beforeAll(async () => {
    file = join(folder, `notes-${mode}`);
    writeFileSync(file, '');
    const config = { scheduler: { validate: true } };
    cluster = await LocalCluster.start({ mode, workers: 1, threads: 2, config });
    client = await cluster.client();
  });
  afterAll(async () => {
    await cluster.close();
    rmSync(folder, { recursive: true });
  });
  const untilNoted = (...lines: string[]): Promise<void> =>
    eventually(() =>
      expect(readFileSync(file, 'utf8').split('\n')).toEqual(expect.arrayContaining(lines)),
    );

  test('as many run in a thread at once as their function allows, and no more', async () => {
    const futures = client.map(
      waiting.fetched,
      Array.from({ length: 40 }, (_, index) => index),
    );
    const results = await client.gather(futures);
    expect(results.map(([index]) => index)).toEqual(
      Array.from({ length: 40 }, (_, index) => index),
    );
    const most = Math.max(...results.map(([, atOnce]) => atOnce));
    // The thread of an inline worker is one, and has the shares of two.
    expect(most).toBe(mode === 'inline' ? 10 : 5);
  });

  test('one that is cancelled is aborted alone, and others take no thread from tasks that compute', async () => {
    const flags = Array.from({ length: 8 }, (_, index) => `${mode}-${index}`);
    const futures = client.map(waiting.held, flags, Array<string>(8).fill(file));
    await untilNoted(...flags.map((flag) => `held ${flag}`));
    expect(await client.submit(waiting.add, 1, 2).result()).toBe(3);
    futures[0]!.cancel({ killTimeoutMs: 5000 });
    await untilNoted(`aborted ${flags[0]!}`);
    for (const flag of flags) await client.event(flag).set();
    expect(await client.gather(futures.slice(1))).toEqual(flags.slice(1));
    expect(readFileSync(file, 'utf8').match(/aborted/g)).toHaveLength(1);
  });

  test('the scheduler books them as shares of the event loops of their worker', () => {
    const [worker] = cluster.scheduler.cluster.workers.values();
    expect(worker?.resources.get('event-loop')).toBe(2);
    expect(worker?.usedResources.get('event-loop') ?? 0).toBe(0);
  });
});

test('a thread that a task blocks is ended, and the concurrent tasks on it are run again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ym-concurrent-'));
  const file = join(folder, 'notes');
  writeFileSync(file, '');
  await using cluster = await LocalCluster.start({ workers: 1, threads: 1 });
  const client = await cluster.client();
  const held = client.submit(waiting.held, 'go', file);
  const notes = (): string => readFileSync(file, 'utf8');
  await eventually(() => expect(notes()).toBe('held go\n'));
  const spinning = client.submit(waiting.spin, file);
  await eventually(() => expect(notes()).toContain('spin'));
  spinning.cancel({ killTimeoutMs: 20 });
  await eventually(() => expect(notes().match(/held go/g)).toHaveLength(2));
  await client.event('go').set();
  expect(await held.result()).toBe('go');
  rmSync(folder, { recursive: true });
});

test.each([0, 1.5, -1, 2_000_000])('%s is no limit of concurrent tasks', (limit) => {
  expect(() => concurrent(limit, () => 1)).toThrow(/a whole number from 1 to 1000000/);
});
