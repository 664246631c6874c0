import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { JournalWriter } from '../../../../adapters/app/journal/journal-writer.ts';
import { readSegment } from '../../../../adapters/app/journal/read-segment.ts';
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
    nowMs: 0,
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
