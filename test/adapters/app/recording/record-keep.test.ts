import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../../adapters/app/index.ts';
import { openPast, recordingHistory, replayRecording } from '../../../../adapters/app/past.ts';
import { checkpointsOf } from '../../../../adapters/app/read-log.ts';
import { recordingKeepOf } from '../../../../adapters/app/recorder.ts';
import type { TaskFunctionOf } from '../../../../adapters/tasks/index.ts';
import { MemoryLog } from '../../../bad-input/memory-log.ts';
import { tasks } from '../fixtures/memory-tasks.mjs';

const { addUp } = tasks as unknown as {
  readonly addUp: TaskFunctionOf<(...parts: number[]) => number>;
};

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-keep-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Records more than is kept. */
async function recordMuch(record: string, options: LocalClusterOptions = {}): Promise<void> {
  await using cluster = await LocalCluster.start({
    ...{ mode: 'inline', workers: 2, record, recordKeep: '1MiB,1h' },
    ...options,
  });
  const client = await cluster.client();
  const kept = client.map(addUp, [1, 2, 3], [1, 1, 1]);
  for (let round = 0; round < 20; round++) {
    const values = Array.from({ length: 400 }, (_, index) => 1000 * round + index);
    const parts = client.map(addUp, values, values);
    await client.gather(parts);
    for (const part of parts) part.release();
  }
  expect(await client.gather(kept)).toEqual([2, 3, 4]);
  await cluster.close();
}

it('a policy whose memory cannot be taken hinders no recording, which goes on in the file that it has', async () => {
  const record = join(folder, 'unremembered');
  let calls = 0;
  const policy = {
    name: 'forgetful',
    order: ({ length }: { readonly length: number }) => Array.from({ length }, (_, at) => at),
    snapshot() {
      // The first checkpoint is that of the start.
      if (++calls > 1) throw new Error('no memory');
      return undefined;
    },
  };
  const log = new MemoryLog();
  const config = { scheduler: { policies: { ordering: { use: policy } } } };
  await recordMuch(record, { log, config });
  expect(calls).toBeGreaterThan(1);
  expect(log.text).toMatch(
    /policy "\S*forgetful\S*" of slot ordering threw in snapshot: no memory/,
  );
  expect(readdirSync(record)).toEqual(['00000001.ylog']);
  const replayed = await replayRecording(record, { policies: { ordering: policy } });
  expect(replayed).toMatchObject({ difference: undefined, isComplete: true });
});

describe('a recording of which the latest part is kept', () => {
  it('drops its oldest files, and what is kept can be replayed, reported and looked at', async () => {
    const record = join(folder, 'kept');
    await recordMuch(record);
    const files = readdirSync(record).sort();
    expect(files.length).toBeGreaterThan(2);
    expect(files).not.toContain('00000001.ylog');
    const sizes = files.map((name) => statSync(join(record, name)).size);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(2 ** 20);
    const whole = await replayRecording(record, { validate: true });
    expect(whole).toMatchObject({ difference: undefined, damage: undefined, isComplete: true });
    expect(whole.stateChecks).toBeGreaterThanOrEqual(files.length - 1);
    expect((await recordingHistory(record)).history.runs.length).toBeGreaterThan(100);
    const past = await openPast(record);
    expect([past.kind, past.notes]).toEqual(['recording', []]);
    const checkpoints = checkpointsOf(record);
    expect(checkpoints.length).toBe(files.length);
    for (const from of checkpoints) {
      const rest = await replayRecording(record, { from });
      expect(rest).toMatchObject({ difference: undefined, isComplete: true });
      expect(rest.lastFrame).toBe(whole.lastFrame);
    }
    // Each file is a recording by itself.
    for (const name of files) {
      expect((await replayRecording(join(record, name))).difference).toBeUndefined();
    }
    rmSync(join(record, files[1]!));
    await expect(replayRecording(record)).rejects.toMatchObject({
      code: 'ERR_LOG',
      message: expect.stringContaining(files[1]!) as string,
    });
  });

  it('needs a folder that does not exist, and a limit that is one', async () => {
    const start = (recordKeep: string): Promise<LocalCluster> =>
      LocalCluster.start({ mode: 'inline', workers: 1, record: folder, recordKeep });
    await expect(start('1GB')).rejects.toMatchObject({ code: 'ERR_LOG' });
    for (const keep of ['', '7', '10', 'much', '1kB', '1ms', '2GB,', '-1h']) {
      await expect(start(keep)).rejects.toMatchObject({ code: 'ERR_CONFIG' });
    }
    expect(recordingKeepOf('2GB, 24h')).toEqual({ bytes: 2e9, ageMs: 86_400_000 });
    expect(recordingKeepOf('30m').ageMs).toBe(1_800_000);
  });
});
