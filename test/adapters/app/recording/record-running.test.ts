import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { LocalCluster, type LocalClusterOptions } from '../../../../adapters/app/index.ts';
import { openPast, recordingHistory, replayRecording } from '../../../../adapters/app/past.ts';
import { readRecording } from '../../../../adapters/app/read-log.ts';
import { openScheduler } from '../../../../adapters/app/start-scheduler.ts';
import { LogOutput } from '../../../../adapters/app/write-log.ts';
import { MsgpackCodec } from '../../../../adapters/codecs/msgpack.ts';
import type { TaskFunctionOf } from '../../../../adapters/tasks/index.ts';
import { YardmasterError } from '../../../../core/api/index.ts';
import type { LogFrame, LogHeader } from '../../../../core/log/format.ts';
import { LogWriter } from '../../../../core/log/log-writer.ts';
import { MemoryLog } from '../../../bad-input/memory-log.ts';
import { tasks } from '../fixtures/memory-tasks.mjs';

const { block, sum, addUp } = tasks as unknown as {
  readonly block: TaskFunctionOf<(seed: number, nbytes: number) => Uint8Array>;
  readonly sum: TaskFunctionOf<(bytes: Uint8Array) => number>;
  readonly addUp: TaskFunctionOf<(...parts: number[]) => number>;
};

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-recording-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;

function newPath(): string {
  return join(folder, `${count++}.ylog`);
}

function start(options: Partial<LocalClusterOptions> = {}): Promise<LocalCluster> {
  return LocalCluster.start({ mode: 'inline', workers: 2, ...options });
}

/** Records the second half of some work, which needs results of the first half. */
async function recordSecondHalf(options: Partial<LocalClusterOptions> = {}): Promise<string> {
  const file = newPath();
  await using cluster = await start(options);
  const client = await cluster.client();
  const blocks = client.map(block, [1, 2, 3, 4], [100, 100, 100, 100]);
  await client.gather(blocks);
  await cluster.record(file);
  expect(await client.submit(addUp, ...client.map(sum, blocks)).result()).toBe(1000);
  await cluster.stopRecording();
  return file;
}

async function framesOf(file: string): Promise<LogFrame[]> {
  const frames: LogFrame[] = [];
  for await (const frame of readRecording(file)) frames.push(frame);
  return frames;
}

/** What a replay of these bytes says. */
async function failureOf(bytes: Uint8Array): Promise<YardmasterError | undefined> {
  const file = newPath();
  writeFileSync(file, bytes);
  try {
    return (await replayRecording(file)).damage;
  } catch (error) {
    if (YardmasterError.is(error)) return error;
    throw error;
  } finally {
    rmSync(file);
  }
}

describe('a recording of a cluster that was running before', () => {
  it('begins with the state of the scheduler and is replayed with the same decisions', async () => {
    const file = await recordSecondHalf();
    const kinds = (await framesOf(file)).map(({ kind }) => kind);
    expect(kinds.slice(0, 2)).toEqual(['header', 'state']);
    expect(kinds.indexOf('checkpoint')).toBeLessThan(kinds.indexOf('stimulus'));
    const result = await replayRecording(file, { validate: true });
    expect(result).toMatchObject({ difference: undefined, damage: undefined, isComplete: true });
    expect(result.stateChecks).toBe(1);
    expect(statSync(file).mode & 0o077).toBe(0);
  });

  it.each(['family', 'co-assign', 'mars'])(
    'continues what the policy %s remembers',
    async (queuing) => {
      const policies = { queuing: { use: queuing }, fairness: { use: 'weighted-fair-share' } };
      const file = await recordSecondHalf({ config: { scheduler: { policies } } });
      expect((await replayRecording(file)).difference).toBeUndefined();
    },
  );

  it('can be reported and looked at in the dashboard', async () => {
    const file = await recordSecondHalf();
    const { history } = await recordingHistory(file);
    expect(history.runs.length).toBe(5);
    const past = await openPast(file);
    expect(past.notes).toEqual([]);
    const { cluster } = await past.at(0, false);
    expect(cluster.tasks.size).toBe(4);
  });

  it('can be made again after it was ended, but not twice at once', async () => {
    await using cluster = await start({ record: newPath() });
    await expect(cluster.record(newPath())).rejects.toMatchObject({ code: 'ERR_LOG' });
    const first = await cluster.stopRecording();
    expect((await replayRecording(first.file)).isComplete).toBe(true);
    expect(first.bytes).toBe(statSync(first.file).size);
    await expect(cluster.stopRecording()).rejects.toMatchObject({ code: 'ERR_LOG' });
    await expect(cluster.record(first.file)).rejects.toMatchObject({ code: 'ERR_LOG' });
    const second = newPath();
    await cluster.record(second);
    await cluster.close();
    expect(await replayRecording(second)).toMatchObject({
      difference: undefined,
      isComplete: true,
    });
  });

  it('begins when the graph that is being submitted is complete', async () => {
    const file = newPath();
    await using cluster = await start();
    const client = await cluster.client();
    const values = Array.from({ length: 3000 }, (_, index) => index);
    const parts = client.map(addUp, values, values);
    const total = client.gather(parts);
    await new Promise(setImmediate);
    await cluster.record(file);
    expect((await total).length).toBe(3000);
    await cluster.close();
    expect(await replayRecording(file)).toMatchObject({ difference: undefined, isComplete: true });
  });
});

describe('a client', () => {
  it('records into the folder that the operator has named, under a name without a folder', async () => {
    const recordings = join(folder, 'of-clients');
    await using cluster = await start({ recordings });
    const client = await cluster.client();
    for (const name of ['../out', '/tmp/out', '.hidden', 'a/b', '', 'a\0b', 'x'.repeat(200)]) {
      await expect(client.record(name)).rejects.toMatchObject({ code: 'ERR_PROTOCOL' });
    }
    const recording = await client.record('slow-hour');
    expect(recording.file).toBe(join(recordings, 'slow-hour.ylog'));
    await expect(client.record()).rejects.toMatchObject({ code: 'ERR_LOG' });
    expect(await client.command('recording')).toMatchObject({ file: recording.file });
    await client.gather(client.map(block, [1, 2], [10, 10]));
    const { bytes } = await recording.stop();
    expect(bytes).toBe(statSync(recording.file).size);
    expect(await client.command('recording')).toBeNull();
    await expect(client.record('slow-hour')).rejects.toMatchObject({ code: 'ERR_LOG' });
    await (await client.record()).stop();
    expect(readdirSync(recordings)).toHaveLength(2);
    expect((await replayRecording(recording.file)).difference).toBeUndefined();
  });

  it('is refused when the operator has named no folder', async () => {
    await using cluster = await start();
    const client = await cluster.client();
    await expect(client.record()).rejects.toMatchObject({
      code: 'ERR_CONFIG',
      message: expect.stringContaining('--recordings FOLDER') as string,
    });
  });
});

describe('a checkpoint that cannot be read', () => {
  it('names the byte where the file is torn or changed, wherever that is', async () => {
    const bytes = readFileSync(await recordSecondHalf());
    const frames = await framesOf(written(bytes));
    const end = frames.find(({ kind }) => kind === 'checkpoint')!;
    const next = frames[end.sequence + 1]!.offset;
    for (let at = frames[1]!.offset; at < next; at += 7) {
      const torn = await failureOf(bytes.subarray(0, at));
      expect(torn).toMatchObject({ code: 'ERR_LOG' });
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1 << (at % 8);
      expect(await failureOf(flipped)).toMatchObject({
        code: 'ERR_LOG',
        message: expect.stringMatching(/at byte \d+/) as string,
      });
    }
  });

  it.each([
    ['without its numbers', (part: object) => ({ part: 'other', ...{ x: part } }), /is missing/],
    ['of another state', (part: object) => ({ ...part, nextTaskId: 'a' }), /digest|task/],
  ])('%s says so, with file, byte and what to do', async (_, change, message) => {
    const frames = await framesOf(await recordSecondHalf());
    let isFirst = true;
    const error = await failureOf(
      rewritten(frames, (frame) => {
        if (frame.kind === 'checkpoint' && String(message).includes('digest')) {
          return { ...frame.payload, state: '0' };
        }
        if (frame.kind !== 'state' || !isFirst) return frame.payload;
        isFirst = false;
        return change(frame.payload);
      }),
    );
    expect(error).toMatchObject({
      code: 'ERR_LOG',
      message: expect.stringMatching(message) as string,
    });
    expect(error!.message).toMatch(/at byte \d+ \(frame \d+\).*replay it with Yardmaster/);
  });
});

it('a recording whose end cannot be written is not ended as if it were whole', async () => {
  await using cluster = await start({ log: new MemoryLog() });
  await cluster.record(newPath());
  const close = vi.spyOn(LogOutput.prototype, 'close').mockRejectedValueOnce(new Error('no space'));
  await expect(cluster.stopRecording()).rejects.toMatchObject({
    code: 'ERR_LOG',
    message: expect.stringContaining('cannot be written any more: no space') as string,
  });
  close.mockRestore();
});

it('a scheduler that comes back with its journal writes its next recording beside the first', async () => {
  const options = { record: newPath(), journal: newPath(), log: new MemoryLog() };
  for (let starts = 0; starts < 3; starts++) await (await openScheduler(options)).close();
  const name = basename(options.record, '.ylog');
  const files = readdirSync(folder).filter((file) => file.split(/[-.]/)[0] === name);
  expect(files.sort()).toEqual([`${name}-2.ylog`, `${name}-3.ylog`, `${name}.ylog`]);
});

function written(bytes: Uint8Array): string {
  const file = newPath();
  writeFileSync(file, bytes);
  return file;
}

/** The same frames with other payloads. */
function rewritten(frames: readonly LogFrame[], change: (frame: LogFrame) => unknown): Buffer {
  const parts: Uint8Array[] = [];
  const sink = (bytes: Uint8Array): void => void parts.push(bytes.slice());
  const [header, ...others] = frames as [LogFrame, ...LogFrame[]];
  const writer = new LogWriter(
    new MsgpackCodec(),
    sink,
    header.payload as LogHeader,
    header.timeMs,
  );
  for (const frame of others) writer.append(frame.kind, frame.timeMs, change(frame), frame.mark);
  writer.flush();
  return Buffer.concat(parts);
}
