import { expect, test } from 'vitest';
import { LocalCluster } from '../../adapters/app/local-cluster.ts';
import type { ConfigInput } from '../../core/config/types.ts';
import { definePlugin, definePolicy, type SchedulerPlugin } from '../../core/api/index.ts';
import { bad } from './fixtures/bad-tasks.js';
import { MemoryLog } from './memory-log.ts';

function unknownFunction(): never {
  throw new ReferenceError('unknownFunction is not defined');
}

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

test.each<[what: string, score: () => number, says: string]>([
  [
    'throws',
    () => {
      throw new Error('no idea');
    },
    'threw: no idea',
  ],
  ['answers NaN', () => NaN, 'is NaN'],
  ['answers a promise', () => Promise.resolve(1) as unknown as number, 'is [object Promise]'],
])('when a policy %s the built-in one decides, and the log says so', async (_what, score, says) => {
  const policy = definePolicy('workerSelection', {
    name: 'odd',
    apiVersion: 1,
    create: () => ({ score }),
  });
  const log = await logOf({ policies: { workerSelection: { use: policy } } });
  expect(log.lines[0]).toContain('policy "odd');
  expect(log.lines[0]).toContain(says);
  expect(log.lines[0]).toContain('the built-in policy decided instead');
});

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

test('when a policy chooses a worker that is not there, the built-in one decides', async () => {
  const select = (): never => ({ address: 'x' }) as never;
  const policy = definePolicy('workerSelection', {
    name: 'odd',
    apiVersion: 1,
    create: () => ({ select }),
  });
  const log = await logOf({ policies: { workerSelection: { use: policy } } });
  expect(log.lines[0]).toMatch(/policy "odd".* chose x for echo-.*, which is not a registered/);
});

test.each<[what: string, fairness: object, says: string]>([
  ['throws', { generations: () => unknownFunction() }, 'unknownFunction is not defined'],
  ['numbers with NaN', { generations: () => NaN }, 'gave the generation NaN'],
  ['answers a promise', { generations: () => Promise.resolve(1) }, 'gave a promise'],
])('when a fairness policy %s, first come is first served, and the log says so', async (...row) => {
  const [, fairness, says] = row;
  const log = await logOf({ policies: { fairness: { use: fairness } } });
  expect(log.lines[0]).toContain('of slot fairness');
  expect(log.lines[0]).toContain(says);
});

test('a fairness policy without its method is refused at the start', async () => {
  await expect(
    logOf({ policies: { fairness: { use: { order: () => [] } } } }),
  ).rejects.toMatchObject({
    code: 'ERR_SLOT',
    message: expect.stringContaining('it has no method generations') as string,
  });
});

test('when a policy refuses every worker, the log says so', async () => {
  const log = new MemoryLog();
  const create = (): { admits: () => boolean; score: () => number } => ({
    admits: () => false,
    score: () => 1,
  });
  const policy = definePolicy('workerSelection', { name: 'never', apiVersion: 1, create });
  const config = { scheduler: { policies: { workerSelection: { use: policy } } } };
  const cluster = await LocalCluster.start({ mode: 'inline', workers: 1, log, config });
  const client = await cluster.client();
  const error = client.submit(bad.echo, 1).error();
  await client.identity();
  expect(log.text).toMatch(
    /echo-\w+ waits although all workers are idle, perhaps for ever: the policy "never" \(workerSelection\)/,
  );
  await cluster.close();
  expect(await error).toMatchObject({ code: 'ERR_CLOSED' });
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

test('hooks that throw or are async are reported, with plugin and hook', async () => {
  const throwing = definePlugin({
    name: 'throwing',
    apiVersion: 1,
    setup: (): object => ({
      graphUpdated() {
        throw new TypeError('oops');
      },
      clientAdded: () => Promise.resolve(),
    }),
  });
  const log = await logOf({ plugins: [{ use: throwing }] });
  expect(log.text).toContain('the hook graphUpdated of plugin "throwing" threw: oops');
  expect(log.text).toContain('the hook clientAdded of plugin "throwing" returned a promise');
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

test('an instance whose setup returns hooks is refused, because they would never be called', async () => {
  class Confused implements SchedulerPlugin {
    setup(): void {
      return { taskTransition: () => undefined } as unknown as void;
    }
  }
  await expect(logOf({ plugins: [{ use: Confused }] })).rejects.toMatchObject({
    message: expect.stringContaining('wrap the definition in definePlugin') as string,
  });
});
