import { expect, test } from 'vitest';
import { LocalCluster } from '../../adapters/app/local-cluster.ts';
import type { ConfigInput } from '../../core/config/types.ts';
import { definePolicy } from '../../core/api/index.ts';
import { bad } from './fixtures/bad-tasks.js';
import { MemoryLog } from './memory-log.ts';

/** What is logged while a few tasks are computed. */
async function logOf(scheduler: NonNullable<ConfigInput['scheduler']>): Promise<MemoryLog> {
  const log = new MemoryLog();
  const config = { scheduler };
  const cluster = await LocalCluster.start({ mode: 'inline', workers: 2, log, config });
  try {
    const client = await cluster.client();
    expect(await client.gather(client.map(bad.echo, [1, 2, 3]))).toEqual([1, 2, 3]);
  } finally {
    await cluster.close();
  }
  return log;
}

test('when a policy is slow, the log names it with the stimulus that it blocked', async () => {
  let calls = 0;
  const policy = definePolicy('workerSelection', {
    name: 'pensive',
    apiVersion: 1,
    create: () => ({
      score: () => 0,
      pickFromPool: (_task, pool) => {
        const endMs = Date.now() + (calls++ === 0 ? 600 : 0);
        while (Date.now() < endMs);
        return pool.at(0);
      },
    }),
  });
  const log = await logOf({ policies: { workerSelection: { use: policy } } });
  expect(log.lines).toHaveLength(1);
  expect(log.lines[0]).toMatch(
    /update-graph-.* with 3 tasks blocked the scheduler for \d{3,} ms: pickFromPool of the policy of workerSelection "pensive" took \d+ ms in 1 call$/,
  );
});

test('when no worker has what a task asks for, the log says so once', async () => {
  const log = new MemoryLog();
  const cluster = await LocalCluster.start({ mode: 'inline', workers: 1, log });
  const client = await cluster.client();
  const picky = client.with({ resources: { GPU: 2 }, workers: ['gpu-host'], pure: false });
  picky.submit(bad.echo, 1);
  await client.identity();
  picky.submit(bad.echo, 2);
  await client.identity();
  expect(log.lines).toEqual([
    expect.stringMatching(
      /^echo-.* waits: no running worker satisfies its restrictions: worker or host gpu-host, 2 GPU .*; start/,
    ),
  ]);
  await cluster.close();
});

test('what was written without definePlugin is checked like what was written with it', async () => {
  const plain = {
    name: 'plain',
    apiVersion: 1,
    setup: () => ({ taskTransitions: () => undefined }),
  };
  await expect(logOf({ plugins: [{ use: plain }] })).rejects.toMatchObject({
    code: 'ERR_PLUGIN_SETUP',
    message: expect.stringContaining('did you mean "taskTransition"?') as string,
  });
  const old = { ...plain, apiVersion: 99 };
  await expect(logOf({ plugins: [{ use: old }] })).rejects.toMatchObject({
    code: 'ERR_PLUGIN_LOAD',
    message: expect.stringContaining(
      'is written for version 99 of the contract of extensions, and this is version 1: update yardmaster',
    ) as string,
  });
});
