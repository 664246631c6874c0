import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readSegment, segmentPath } from '../../../adapters/app/read-log.ts';
import { type Durability, LogOutput } from '../../../adapters/app/write-log.ts';
import { VirtualClock } from '../../../adapters/clocks/virtual-clock.ts';
import { type FileSystem, SYSTEM_FILES } from '../../../adapters/log/segment-file.ts';
import type { StatePart } from '../../../core/kernel/snapshot.ts';
import type { Stimulus } from '../../../core/messages/stimulus.ts';
import { TurnEnd } from '../../../core/shared/turn.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-log-output-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const CHECKPOINT = { policies: {}, lanes: [0, 0], state: '' } as const;
const PARTS = [{ part: 'a' }, { part: 'b' }] as unknown as StatePart[];

const HEADER = {
  version: '1',
  schedulerId: 'scheduler-1',
  createdAtMs: 0,
  config: {},
  folder: '',
} as const;

function entry(client: string): Stimulus {
  return { op: 'register-client', client, stimulusId: client };
}

/** A journal in a folder of its own, and the file of its first segment. */
function journal(
  name: string,
  durability: Durability,
  onCommit: (client: string, upTo: number) => void = () => undefined,
): { output: LogOutput; path: string } {
  const target = join(folder, name);
  mkdirSync(target);
  const output = new LogOutput({
    ...{ target, durability, onCommit },
    header: { holds: 'requests', ...HEADER },
    distance: { bytesMin: 1e6, ratio: 3 },
    clock: new VirtualClock(),
    files: SYSTEM_FILES,
    onError: (error) => {
      throw error;
    },
  });
  output.checkpoint(PARTS, CHECKPOINT, 0);
  return { output, path: segmentPath(target, 1) };
}

test('the entries of one turn of the event loop are written at once, before anything is sent', async () => {
  const commits: [string, number][] = [];
  const { output, path } = journal('1', 'commit', (client, upTo) => commits.push([client, upTo]));
  const before = statSync(path).size;
  const turnEnd = new TurnEnd();
  const sent = new Promise<number>((resolve) => {
    turnEnd.add(() => {
      resolve(readSegment(path).entries.length);
    });
  });
  for (const client of ['alice', 'bob', 'carol']) {
    output.stimulus(entry(client), 1);
    output.acknowledge(client, 1);
  }
  expect(statSync(path).size).toBe(before);
  expect(await sent).toBe(3);
  expect(commits).toEqual([]);
  output.end();
  expect(commits).toEqual([
    ['alice', 1],
    ['bob', 1],
    ['carol', 1],
  ]);
});

/** A segment whose checkpoint was synced, and with three entries that only a close in good order syncs. */
function segment(name: string, syncs: boolean): { path: string; bytes: Buffer; frames: number[] } {
  const { output, path } = journal(name, 'none');
  for (const client of ['c', 'd', 'e']) output.stimulus(entry(client), 1);
  if (syncs) output.end();
  else {
    output.flush();
    output.abandon();
  }
  const bytes = readFileSync(path);
  const frames: number[] = [];
  for (let at = 16; at < bytes.length; at += 8 + bytes.readUInt32LE(at)) frames.push(at);
  return { path, bytes, frames };
}

test('what a loss of power has garbled is left out, also when later pages of it reached the disk', () => {
  const { path, bytes, frames } = segment('2', false);
  // header, a, b, checkpoint, c, d, e; the checkpoint has the parts a and b
  const [from, to] = [frames[4]!, frames[5]!];
  writeFileSync(path, Buffer.from(bytes).fill(0, from, to));
  const { entries, checkpoint, torn } = readSegment(path);
  expect(entries).toHaveLength(0);
  expect(checkpoint).toMatchObject({ parts: 2 });
  expect(torn).toEqual({ offset: from, nbytes: bytes.length - from });
});

test('damage to what was on the disk for certain is refused', () => {
  const unsynced = segment('3', false);
  const synced = segment('4', true);
  for (const { path, bytes, frames, damaged, remedy } of [
    { ...unsynced, damaged: 1, remedy: 'restore it from a copy' },
    { ...synced, damaged: 4, remedy: '"yardmaster log repair' },
  ]) {
    writeFileSync(path, Buffer.from(bytes).fill(0, frames[damaged], frames[damaged + 1]));
    expect(() => readSegment(path)).toThrow(remedy);
  }
});

test('a log whose disk is full ends with one error, and what is written to it later is dropped', () => {
  let isFull = false;
  const files: FileSystem = {
    ...SYSTEM_FILES,
    writeSync: (...given) => {
      if (isFull) throw new Error('ENOSPC: no space left on device, write');
      return SYSTEM_FILES.writeSync(...given);
    },
  };
  for (const durability of [undefined, 'none'] as const) {
    const target = join(folder, `full-${durability}`);
    mkdirSync(target);
    const errors: Error[] = [];
    isFull = false;
    const output = new LogOutput({
      ...{ target, files, ...(durability === undefined ? {} : { durability }) },
      header: { holds: 'all', ...HEADER },
      keep: { bytes: 1e9, ageMs: 1e9 },
      distance: { bytesMin: 1, ratio: 0 },
      clock: new VirtualClock(),
      onError: (error) => errors.push(error),
    });
    output.checkpoint(PARTS, CHECKPOINT, 0);
    output.stimulus(entry('a'), 1);
    output.flush();
    isFull = true;
    expect(output.isCheckpointDue(0)).toBe(true);
    expect(() => output.checkpoint(PARTS, CHECKPOINT, 2)).toThrow('ENOSPC');
    for (let count = 0; count < 10_000; count++) output.stimulus(entry('b'), 3);
    output.flush();
    expect(errors).toEqual([
      expect.objectContaining({ message: expect.stringMatching('ENOSPC') as string }),
    ]);
    // The segment that could not be begun is gone, and the one before is whole.
    expect(readdirSync(target)).toEqual(['00000001.ylog']);
  }
});
