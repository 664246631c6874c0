/** What reads recordings reads the folder of a journal, too. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openPast, recordingHistory, replayRecording } from '../../../../adapters/app/past.ts';
import { checkpointsOf, segmentPath, segmentsOf } from '../../../../adapters/app/read-log.ts';
import { definePlugin } from '../../../../adapters/app/entries/plugin.ts';
import { openScheduler } from '../../../../adapters/app/start-scheduler.ts';
import {
  crc32c,
  FILE_HEADER_BYTES,
  FRAME_HEADER_BYTES,
  FRAME_KINDS,
} from '../../../../core/log/format.ts';
import { digestOfState } from '../../../../core/log/digest.ts';
import { MemoryLog } from '../../../bad-input/memory-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-replay-journal-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const log = new MemoryLog();

/** Submits a graph of two tasks to a scheduler, and returns the journal that it leaves when it is killed then. */
async function submitted(journal: string, key: string): Promise<string> {
  const { scheduler, close } = await openScheduler({ journal, log });
  scheduler.enqueue({ op: 'register-client', client: 'alice', secretHash: 'hash' });
  const input = { key: `${key}-input`, dependencies: [], runSpec: 'read' };
  const task = { key, dependencies: [input.key], runSpec: 'work' };
  scheduler.enqueue({ op: 'update-graph', client: 'alice', tasks: [input, task], keys: [key] });
  await new Promise(setImmediate);
  const left = `${journal}-${key}`;
  cpSync(journal, left, { recursive: true, filter: (file) => !file.includes('lock') });
  await close();
  return left;
}

it('a replay of a journal comes to the state from which a scheduler starts again', async () => {
  let journal = join(folder, 'journal');
  for (const [key, count] of [
    ['a', 2],
    ['b', 4],
  ] as const) {
    const left = await submitted(journal, key);
    const replayed = await replayRecording(left, { validate: true });
    expect(replayed).toMatchObject({ difference: undefined, damage: undefined });
    expect(replayed.kernel.cluster.tasks.size).toBe(count);
    const digest = digestOfState(replayed.kernel.cluster);
    const again = await openScheduler({ journal: left, log });
    expect(digestOfState(again.scheduler.kernel.cluster)).toBe(digest);
    await again.close();
    journal = left;
  }
});

/** Writes another digest of the state into the checkpoint of a segment. */
function forgeDigest(file: string): void {
  const bytes = readFileSync(file);
  for (let at = FILE_HEADER_BYTES; at < bytes.length;) {
    const body = bytes.subarray(at + FRAME_HEADER_BYTES).subarray(0, bytes.readUInt32LE(at));
    if (body[0] === FRAME_KINDS.indexOf('checkpoint')) {
      const digest = body.toString('latin1').search(/[0-9a-f]{16}/);
      body[digest] = body[digest] === 0x30 ? 0x31 : 0x30;
      bytes.writeUInt32LE(crc32c(body), at + 4);
    }
    at += FRAME_HEADER_BYTES + body.length;
  }
  writeFileSync(file, bytes);
}

it('a checkpoint of another digest costs a journal nothing, and is an error in the log', async () => {
  const left = await submitted(join(folder, 'forged'), 'a');
  const first = await openScheduler({ journal: left, log });
  await first.close();
  for (const number of segmentsOf(left)) forgeDigest(segmentPath(left, number));
  const lines = new MemoryLog();
  const again = await openScheduler({ journal: left, log: lines });
  expect(again.scheduler.kernel.cluster.tasks.size).toBe(2);
  await again.close();
  expect(lines.text).toContain('is not restored exactly');
});

it('a plugin is told of the workers and clients that a journal brings back', async () => {
  const journal = join(folder, 'announced');
  const address = 'tcp://10.0.0.1:4000';
  const rest = { host: address, threadCount: 1, memoryLimitBytes: 0, resources: {} };
  const identity = { address, serverId: address, name: address, ...rest };
  const first = await openScheduler({ journal, log });
  first.scheduler.enqueue({ op: 'register-client', client: 'alice', secretHash: 'hash' });
  first.scheduler.enqueue({ op: 'register-worker', identity, status: 'running' });
  await first.close();
  const told: string[] = [];
  const listener = definePlugin({
    name: 'listener',
    apiVersion: 1,
    setup: () => ({
      workerAdded: ({ address: worker, status }) => void told.push(`${worker} ${status}`),
      clientAdded: ({ key }) => void told.push(key),
    }),
  });
  // The journal of the second scheduler has them in its checkpoint.
  for (let start = 0; start < 2; start++) {
    const config = { scheduler: { plugins: [{ use: listener }] } };
    const again = await openScheduler({ journal, config, log });
    expect(told.splice(0).sort()).toEqual(['alice', 'tcp://10.0.0.1:4000 paused']);
    await again.close();
  }
});

it('a journal is looked at and reported, with the remark that it does not hold what ran', async () => {
  const left = await submitted(join(folder, 'looked-at'), 'a');
  const past = await openPast(left);
  expect([past.kind, past.title]).toEqual(['journal', 'looked-at-a']);
  expect(past.notes).toEqual([expect.stringContaining('not what ran')]);
  expect(past.cluster.tasks.size).toBe(2);
  const { header, history } = await recordingHistory(left);
  expect(header.holds).toBe('requests');
  expect(history.runs).toMatchObject([{ key: 'a-input', isOpen: true, timings: [] }]);
  expect(checkpointsOf(left)).toHaveLength(1);
});

it('a folder with a journal and a recording is refused', async () => {
  const left = await submitted(join(folder, 'mixed'), 'a');
  const record = join(folder, 'recording.ylog');
  await (await openScheduler({ record, log })).close();
  const last = segmentsOf(left).at(-1)!;
  cpSync(record, segmentPath(left, last + 1));
  await expect(replayRecording(left)).rejects.toMatchObject({
    code: 'ERR_LOG',
    message: expect.stringContaining('give each a folder of its own') as string,
  });
});

it.each([
  ['options with a function', 'weigh'],
  ['a memory that cannot be written', 'throws'],
])('a policy with %s does not hinder a journal', async (_, option) => {
  const use = join(folder, 'policy.mjs');
  writeFileSync(
    use,
    `export default class {
       constructor({ throws }) { this._throws = throws; }
       select(_task, candidates) { return candidates[0]; }
       snapshot() { if (this._throws) throw new Error('no memory'); }
     }`,
  );
  const policies = { workerSelection: { use, options: { [option]: () => 1 } } };
  const config = { scheduler: { policies } };
  const journal = { folder: join(folder, option), segmentBytes: 1 };
  for (let start = 1; start <= 2; start++) {
    const { scheduler, close } = await openScheduler({ journal, config, log });
    scheduler.enqueue({ op: 'register-client', client: `client-${start}`, secretHash: 'hash' });
    scheduler.enqueue({ op: 'heartbeat-client', client: `client-${start}` });
    await new Promise(setImmediate);
    expect([...scheduler.kernel.cluster.clients.keys()]).toContain(`client-${start}`);
    await close();
  }
});
