import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { exampleProject } from './example-project.ts';

/** As in the example: how far a candidate goes at most. */
const ROUNDS = 30;
const folder = exampleProject('search');
afterAll(() => {
  rmSync(folder, { recursive: true });
});

test('the search stops at the first candidate that is good enough, long before all have gone through all rounds', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['main.js', '60', 'inline'], {
    cwd: folder,
  });
  const [, error, round, runs] = /^error (\S+) in round (\d+), (\d+) runs\n$/.exec(stdout) ?? [];
  expect(Number(error)).toBeLessThan(0.007);
  expect(Number(round)).toBeGreaterThan(1);
  expect(Number(runs)).toBeLessThan((60 * ROUNDS) / 2);
});
