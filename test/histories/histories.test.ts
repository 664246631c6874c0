/**
 * Recordings that every version of the kernel has to replay with the same decisions. One that fails here decides otherwise
 * than before: either by mistake, or `make-histories.ts` makes the recordings anew and the changelog says so.
 */
import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { makeHistories } from './make-histories.ts';
import { replayRecording } from '../../adapters/app/past.ts';

if (process.env['UPDATE_HISTORIES'] === '1') await makeHistories();

const FOLDER = new URL('./', import.meta.url);
const histories = readdirSync(FOLDER).filter((name) => name.endsWith('.ylog'));

it.each(histories)('%s is replayed with the same decisions', async (name) => {
  const file = new URL(name, FOLDER).pathname;
  const { difference, damage, isComplete, stateChecks } = await replayRecording(file);
  expect(difference).toBeUndefined();
  expect(damage).toBeUndefined();
  expect(isComplete).toBe(true);
  expect(stateChecks).toBeGreaterThanOrEqual(1);
});

it('there are recordings to replay', () => {
  expect(histories.length).toBeGreaterThanOrEqual(3);
});
