/** Runtimes other than this Node: Deno, Bun and tsx where they are on the PATH, and the Node that `NEWER_NODE` names. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Runs } from '../../kit/runs.ts';
import { ROOT } from '../../tidy/source-files.ts';

const CLI = createRequire(import.meta.url).resolve('#cli');
const FILES = {
  'package.json': '{ "type": "module" }',
  'tasks.js': `import { defineTasks } from 'yardmaster';
export const { square, sum, fail } = defineTasks(import.meta.url, {
  square: async (x) => x * x,
  sum: (numbers) => numbers.reduce((total, x) => total + x, 0),
  fail: () => { throw new TypeError('it fails'); },
});`,
  'local.js': `import { LocalCluster } from 'yardmaster';
import { fail, square, sum } from './tasks.js';
const cluster = await LocalCluster.start({ mode: process.argv[2], workers: 2 });
const client = await cluster.client();
const squares = client.map(square, [1, 2, 3]);
console.log(await client.submit(sum, squares).result(), (await client.submit(fail).error()).message);
await cluster.close();`,
  'small.js': `import { LocalCluster } from 'yardmaster';
import { square } from './tasks.js';
const cluster = await LocalCluster.start({ mode: 'inline' });
console.log(await (await cluster.client()).submit(square, 3).result());
await cluster.close();`,
  'client.js': `import { Client } from 'yardmaster';
import { square, sum } from './tasks.js';
const client = await Client.connect(process.argv[2]);
console.log(await client.submit(sum, client.map(square, [1, 2, 3])).result());
await client.close();`,
  'typed.ts': `import { defineTasks } from 'yardmaster';
enum Step { By = 1 }
export const { next } = defineTasks(import.meta.url, { next: (x: number): number => x + Step.By });`,
  'typed-main.ts': `import { type ClusterMode, LocalCluster } from 'yardmaster';
import { next } from './typed';
const cluster = await LocalCluster.start({ mode: process.argv[2] as ClusterMode, workers: 1 });
const client = await cluster.client();
console.log(await client.gather(client.map(next, [1, 2])));
await cluster.close();`,
};
const NEWER_NODE = process.env['NEWER_NODE'];

const isThere = (program: string): boolean => spawnSync(program, ['--version']).status === 0;
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-runtimes-'));
const runs = new Runs();
const run = async (program: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(program, args, { cwd: folder })).stdout;

beforeAll(() => {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules/yardmaster'));
  for (const [file, text] of Object.entries(FILES)) writeFileSync(join(folder, file), text);
});
afterEach(() => runs.end());
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe.skipIf(!isThere('deno'))('Deno', () => {
  it.each(['inline', 'threads'])('runs a local cluster with workers %s', async (mode) => {
    expect(await run('deno', 'run', '-A', 'local.js', mode)).toBe('14 it fails\n');
  });

  it('runs a client of a scheduler and a worker of Node, without encryption', async () => {
    const line = (command: string) =>
      runs.start('/bin/sh', ['-c', `cd ${folder} && exec ${command}`]);
    const node = `${process.execPath} ${CLI}`;
    const scheduler = line(`${node} scheduler --insecure --host 127.0.0.1 --port 0 --no-dashboard`);
    while (!scheduler.stdout.includes('\n')) await scheduler.output();
    const [address = ''] = scheduler.stdout.split('\n');
    line(`${node} worker ${address}`);
    expect(await run('deno', 'run', '-A', 'client.js', address)).toBe('14\n');
  });
});

describe.skipIf(!isThere('bun'))('Bun', () => {
  it('runs an inline cluster as long as arguments and results are small', async () => {
    expect(await run('bun', 'small.js')).toBe('9\n');
  });
});

describe.skipIf(NEWER_NODE === undefined || !isThere('tsx'))('a newer Node under tsx', () => {
  it.each(['inline', 'threads', 'processes'])('runs tasks in TypeScript %s', async (mode) => {
    const tsx = realpathSync((await run('/bin/sh', '-c', 'command -v tsx')).trim());
    expect(await run(NEWER_NODE as string, tsx, 'typed-main.ts', mode)).toBe('[ 2, 3 ]\n');
  });
});
