import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { JournalWriter, readSegment } from '../../../../adapters/app/journal-folder.ts';
import { VirtualClock } from '../../../../adapters/clocks/virtual-clock.ts';
import { SYSTEM_FILES } from '../../../../adapters/log/segment-file.ts';
import type { Stimulus } from '../../../../core/messages/stimulus.ts';
import { TurnEnd } from '../../../../core/shared/turn.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-journal-writer-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('the entries of one turn of the event loop are written at once, before anything is sent', async () => {
  const path = join(folder, '1.ylog');
  const commits: [string, number][] = [];
  const writer = JournalWriter.create(path, {
    durability: 'commit',
    header: { schedulerId: 'scheduler-1', segment: 1 },
    clock: new VirtualClock(),
    files: SYSTEM_FILES,
    onCommit: (client, upTo) => commits.push([client, upTo]),
    onError: (error) => {
      throw error;
    },
  });
  writer.checkpoint([], 0);
  const before = statSync(path).size;
  const turnEnd = new TurnEnd();
  const sent = new Promise<number>((resolve) => {
    turnEnd.add(() => {
      resolve(readSegment(path).entries.length);
    });
  });
  for (const client of ['alice', 'bob', 'carol']) {
    writer.write({ op: 'register-client', client, stimulusId: client }, 1);
    writer.acknowledge(client, 1);
  }
  expect(statSync(path).size).toBe(before);
  expect(await sent).toBe(3);
  expect(commits).toEqual([]);
  writer.close();
  expect(commits).toEqual([
    ['alice', 1],
    ['bob', 1],
    ['carol', 1],
  ]);
});

/** A segment with two entries that were synced, and three that only a close in good order syncs. */
function segment(name: string, syncs: boolean): { path: string; bytes: Buffer; frames: number[] } {
  const path = join(folder, name);
  const writer = JournalWriter.create(path, {
    durability: 'none',
    header: { schedulerId: 'scheduler-1', segment: 1 },
    clock: new VirtualClock(),
    files: SYSTEM_FILES,
    onCommit: () => undefined,
    onError: (error) => {
      throw error;
    },
  });
  const entry = (client: string): Stimulus => ({ op: 'register-client', client, stimulusId: '' });
  writer.checkpoint([entry('a'), entry('b')], 0);
  for (const client of ['c', 'd', 'e']) writer.write(entry(client), 1);
  if (syncs) writer.close();
  else {
    writer.flush();
    writer.abandon();
  }
  const bytes = readFileSync(path);
  const frames: number[] = [];
  for (let at = 16; at < bytes.length; at += 8 + bytes.readUInt32LE(at)) frames.push(at);
  return { path, bytes, frames };
}

test('what a loss of power has garbled is left out, also when later pages of it reached the disk', () => {
  const { path, bytes, frames } = segment('2.ylog', false);
  // header, a, b, checkpoint, c, d, e
  const [from, to] = [frames[4]!, frames[5]!];
  writeFileSync(path, Buffer.from(bytes).fill(0, from, to));
  const { entries, isComplete, torn } = readSegment(path);
  expect(entries).toHaveLength(2);
  expect(isComplete).toBe(true);
  expect(torn).toEqual({ offset: from, nbytes: bytes.length - from });
});

test('damage to what was on the disk for certain is refused', () => {
  const unsynced = segment('3.ylog', false);
  const synced = segment('4.ylog', true);
  for (const { path, bytes, frames, damaged, remedy } of [
    { ...unsynced, damaged: 1, remedy: 'restore it from a copy' },
    { ...synced, damaged: 4, remedy: '"yardmaster log repair' },
  ]) {
    writeFileSync(path, Buffer.from(bytes).fill(0, frames[damaged], frames[damaged + 1]));
    expect(() => readSegment(path)).toThrow(remedy);
  }
});
