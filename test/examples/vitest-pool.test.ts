import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleProject } from './example-project.ts';

const run = promisify(execFile);

const FILES = ['kills-worker', 'slow-1', 'slow-2', 'slow-3'].map((name) => `${name}.test.js`);

let folder: string;
beforeAll(() => {
  folder = exampleProject('vitest-pool', ['vitest']);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function durations(): string {
  return join(folder, 'node_modules/.cache/yardmaster-vitest/durations.json');
}

/** The names of the files, in the order in which they started, and what the error stream says. */
async function vitest(more: NodeJS.ProcessEnv): Promise<{ files: string[]; errors: string }> {
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter',
    'json',
    '--outputFile',
    'report.json',
  ];
  const { stderr } = await run(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env['PATH'], ...more },
  });
  const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as {
    success: boolean;
    testResults: { name: string; startTime: number }[];
  };
  expect(report.success).toBe(true);
  const files = report.testResults
    .toSorted((a, b) => a.startTime - b.startTime)
    .map(({ name }) => name.slice(folder.length + '/test/'.length));
  return { files, errors: stderr };
}

test('a suite passes although a worker is killed, and learns how long its files take', async () => {
  const KILL_WORKER_ONCE = join(folder, 'killed');
  const { files, errors } = await vitest({ KILL_WORKER_ONCE });
  expect(files.toSorted()).toEqual(FILES);
  expect(existsSync(KILL_WORKER_ONCE)).toBe(true);
  expect(errors).toMatch(/was killed by SIGKILL/);
  const learned = JSON.parse(readFileSync(durations(), 'utf8')) as Record<string, number>;
  expect(Object.keys(learned).toSorted()).toEqual(FILES.map((name) => `test/${name}`));
  expect(learned['test/slow-3.test.js']).toBeGreaterThan(300);
});

test('files that are not known yet run first, then those that took longest', async () => {
  writeFileSync(
    durations(),
    JSON.stringify({
      'test/slow-1.test.js': 3000,
      'test/slow-2.test.js': 2000,
      'test/slow-3.test.js': 4000,
    }),
  );
  const { files } = await vitest({ WORKERS: '1' });
  expect(files).toEqual([
    'kills-worker.test.js',
    'slow-3.test.js',
    'slow-1.test.js',
    'slow-2.test.js',
  ]);
});
