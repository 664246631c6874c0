import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../../adapters/app/index.ts';
import {
  type ReplayOptions,
  replayRecording,
  type ReplayResult,
} from '../../../../adapters/app/past.ts';
import type { TaskFunctionOf } from '../../../../adapters/tasks/index.ts';
import type { Rule } from '../../../../core/api/rules.ts';
import { fifo } from '../../../../policies/ordering/fifo.ts';
import { tasks } from '../fixtures/memory-tasks.mjs';
import { made } from '../../../kit/made.ts';

const { block, sum, addUp } = tasks as unknown as {
  readonly block: TaskFunctionOf<(seed: number, nbytes: number) => Uint8Array>;
  readonly sum: TaskFunctionOf<(bytes: Uint8Array) => number>;
  readonly addUp: TaskFunctionOf<(...parts: number[]) => number>;
};

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-recording-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** Runs some work on a cluster that is recorded. Returns the path of the recording. */
async function recordWork(options: Partial<LocalClusterOptions> = {}): Promise<string> {
  const record = join(folder, `${files++}.ylog`);
  await using cluster = await LocalCluster.start({
    mode: 'inline',
    workers: 2,
    record,
    ...options,
  });
  const client = await cluster.client();
  const blocks = client.map(block, [1, 2, 3, 4], [100, 100, 100, 100]);
  const total = client.submit(addUp, ...client.map(sum, blocks));
  expect(await total.result()).toBe(1000);
  await cluster.close();
  return record;
}

async function replay(record: string, options?: ReplayOptions): Promise<ReplayResult> {
  return replayRecording(record, { validate: true, ...options });
}

describe('a recording of a cluster', () => {
  it('is replayed with the same decisions and the same state', async () => {
    const result = await replay(await recordWork());
    expect(result.difference).toBeUndefined();
    expect(result.damage).toBeUndefined();
    expect(result.isComplete).toBe(true);
    expect(result.stateChecks).toBe(1);
    expect(result.stimuli).toBeGreaterThan(15);
  });

  it('is replayed with the policies that were configured', async () => {
    const config = {
      scheduler: {
        policies: {
          ordering: { use: 'dask' },
          queuing: { use: 'root-ish', options: { workerSaturation: 3 } },
        },
      },
    };
    const result = await replay(await recordWork({ config }));
    expect(result.difference).toBeUndefined();
    expect(result.header.config).toMatchObject(config);
  });

  it('is replayed with policies that were replaced meanwhile', async () => {
    const record = join(folder, `${files++}.ylog`);
    await using cluster = await LocalCluster.start({ mode: 'inline', workers: 2, record });
    const client = await cluster.client();
    await client.gather(client.map(block, [1, 2], [10, 10]));
    await cluster.scheduler.replacePolicy('ordering', 'fifo');
    await client.gather(client.map(block, [3, 4], [10, 10]));
    await cluster.close();
    expect((await replay(record)).difference).toBeUndefined();
  });

  it('needs the policies that were given as objects in code', async () => {
    const config = { scheduler: { policies: { ordering: { use: made(fifo) } } } };
    const record = await recordWork({ config });
    await expect(replay(record)).rejects.toMatchObject({
      code: 'ERR_REPLAY',
      message: expect.stringContaining('give it to the replay as policies.ordering') as string,
    });
    for (const ordering of [fifo, made(fifo)]) {
      const result = await replay(record, { policies: { ordering } });
      expect(result.difference).toBeUndefined();
    }
    await expect(
      replay(record, { policies: { ordering: { sort: () => [] } as never } }),
    ).rejects.toMatchObject({ code: 'ERR_SLOT' });
  });

  it('is replayed with its rules; those that were given in code are given again by name', async () => {
    const file = join(folder, 'rules.mjs');
    const first = `{ name: 'first', filter: (task, worker) => worker.rank === 0 || { refuse: 'it came later' } }`;
    writeFileSync(file, `export const first = ${first};`);
    const fewest: Rule & { name: string } = {
      name: 'fewest',
      score: (_task, { nbytes }) => nbytes,
    };
    const rules = [{ use: `${file}#first` }, { use: fewest, weight: 3 }];
    const record = await recordWork({ config: { scheduler: { policies: { rules } } } });
    await expect(replay(record)).rejects.toMatchObject({
      code: 'ERR_REPLAY',
      message: expect.stringContaining(
        'in the slot rules["first"], which is not built in',
      ) as string,
    });
    const allowed = { allowPolicies: true, policies: { rules: { fewest } } };
    const result = await replay(record, allowed);
    expect(result.difference).toBeUndefined();
    const other = { ...allowed, policies: { rules: { fewest, first: { filter: () => true } } } };
    expect((await replay(record, other)).difference).toBeDefined();
  });

  it('can be stopped at any frame, and asked why', async () => {
    const record = await recordWork();
    let key = '';
    let frames = 0;
    await replay(record, {
      onFrame: (frame) => {
        if (frame.kind !== 'stimulus' || frame.payload.op !== 'task-finished') return;
        if (key === '') [key, frames] = [frame.payload.key, frame.sequence];
      },
    });
    const before = await replay(record, { until: frames - 1, storyLength: 1000 });
    expect(before.kernel.insight.why(key)).toMatchObject({ state: 'processing' });
    expect(before.kernel.insight.why(key).decisions[0]?.outcome).toBeDefined();
    const after = await replay(record, { until: frames });
    expect(after.kernel.insight.why(key)).toMatchObject({ state: 'memory' });
    expect(after.isComplete).toBe(false);
  });

  it('that is cut off is replayed up to there', async () => {
    const record = await recordWork();
    const bytes = readFileSync(record);
    const torn = join(folder, 'torn.ylog');
    writeFileSync(torn, bytes.subarray(0, bytes.length - 10));
    const result = await replay(torn);
    expect(result.difference).toBeUndefined();
    expect(result.isComplete).toBe(false);
    expect(result.damage).toMatchObject({ code: 'ERR_LOG', data: { damage: 'torn', file: torn } });
  });

  it('never overwrites a file', async () => {
    const record = join(folder, 'there.ylog');
    writeFileSync(record, 'mine');
    await expect(LocalCluster.start({ mode: 'inline', record })).rejects.toMatchObject({
      code: 'ERR_LOG',
      message: expect.stringContaining(`the log ${record} cannot be made: EEXIST`) as string,
    });
  });

  it('of a cluster that cannot start leaves no file behind', async () => {
    const record = join(folder, 'no-start.ylog');
    const config = { scheduler: { policies: { ordering: { use: 'no-such-policy' } } } };
    await expect(LocalCluster.start({ mode: 'inline', config, record })).rejects.toThrow();
    expect(existsSync(record)).toBe(false);
  });
});
