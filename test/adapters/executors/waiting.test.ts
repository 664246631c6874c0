import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { waiting } from './fixtures/waiting-tasks.mjs';
import { eventually } from '../../kit/eventually.ts';

describe('tasks that wait on a thread', () => {
  let folder: string;
  let file: string;
  let cluster: LocalCluster;
  let client: Client;
  const start = async (threads: number): Promise<void> => {
    const config = { scheduler: { validate: true } };
    cluster = await LocalCluster.start({ workers: 1, threads, config });
    client = await cluster.client();
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ym-waiting-'));
    file = join(folder, 'notes');
    writeFileSync(file, '');
  });
  afterEach(async () => {
    await cluster.close();
    rmSync(folder, { recursive: true });
  });
  const notes = (): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const untilNoted = (...lines: string[]): Promise<void> =>
    eventually(() => expect(notes()).toEqual(expect.arrayContaining(lines)));

  test('a hundred tasks that wait for others need no more threads than there are', async () => {
    await start(2);
    const all = client.map(
      waiting.parent,
      Array.from({ length: 100 }, (_, index) => index),
    );
    const threads = new Set((await client.gather(all)).flat());
    expect(threads.size).toBeLessThanOrEqual(2);
  });

  test('a task that blocks its thread is ended, and those that waited there give their results', async () => {
    await start(1);
    const innocent = ['a', 'b'].map((flag) => client.submit(waiting.waitsFor, flag, file));
    await untilNoted('start a', 'start b');
    const spinning = client.submit(waiting.spin, file);
    await untilNoted('spin');
    spinning.cancel({ killTimeoutMs: 20 });
    await eventually(() => expect(notes().filter((line) => line === 'start a')).toHaveLength(2));
    for (const flag of ['a', 'b']) await client.event(flag).set();
    expect(await client.gather(innocent)).toEqual(['a', 'b']);
  });

  test.each(['exitsAfterWait', 'rejectsAfterWait'] as const)(
    'the thread that dies of a task that waited (%s) fails that task, and runs the others again',
    async (name) => {
      await start(1);
      const innocent = ['a', 'b'].map((flag) => client.submit(waiting.waitsFor, flag, file));
      const guilty = client.submit(waiting[name], 'go');
      await untilNoted('start a', 'start b');
      await client.event('go').set();
      await expect(guilty.result()).rejects.toMatchObject({ code: 'ERR_TASK' });
      for (const flag of ['a', 'b']) await client.event(flag).set();
      expect(await client.gather(innocent)).toEqual(['a', 'b']);
    },
  );

  test('a thread that sends something unreadable dies of it, and those that waited there run again', async () => {
    const threads: Worker[] = [];
    const note = (thread: Worker): void => void threads.push(thread);
    process.on('worker', note);
    await start(1);
    const innocent = ['a', 'b'].map((flag) => client.submit(waiting.waitsFor, flag, file));
    await untilNoted('start a', 'start b');
    const spinning = client.submit(waiting.spin, file);
    await untilNoted('spin');
    process.off('worker', note);
    threads.at(-1)?.emit('messageerror', new Error('it cannot be cloned'));
    await expect(spinning.result()).rejects.toThrow('it cannot be cloned');
    for (const flag of ['a', 'b']) await client.event(flag).set();
    expect(await client.gather(innocent)).toEqual(['a', 'b']);
    expect(notes().filter((line) => line === 'start a')).toHaveLength(2);
  });

  test('a waiting task that ignores its cancellation is given up, and the others wait on', async () => {
    await start(1);
    const other = client.submit(waiting.waitsFor, 'a', file);
    const deaf = client.submit(waiting.ignoresAbort, 'never', file);
    await untilNoted('start a', 'deaf');
    deaf.cancel({ killTimeoutMs: 20 });
    await untilNoted('ignored');
    // Its thread takes no other task, so that it can end with the other one.
    expect(await client.submit(waiting.leaf, 1).result()).toBeGreaterThan(0);
    await client.event('a').set();
    expect(await other.result()).toBe('a');
    expect(notes().filter((line) => line === 'start a')).toHaveLength(1);
  });
});
