/** Debuggers, and code that changes while workers run. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, afterEach, expect, test } from 'vitest';

import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { taskOf } from '../../../adapters/tasks/index.ts';
import { type Run, Runs } from '../../kit/runs.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'yardmaster-development-')));
const runs = new Runs();
const execute = promisify(execFile);

afterEach(() => runs.end('SIGKILL'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What a debugger finds where the process says that it listens. */
async function attach(worker: Run): Promise<readonly { readonly type: string }[]> {
  for (;;) {
    const port = /Debugger listening on ws:\/\/127\.0\.0\.1:(?<port>\d+)/.exec(worker.stderr)
      ?.groups?.['port'];
    if (port !== undefined) {
      const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
      return (await answer.json()) as { readonly type: string }[];
    }
    await worker.output();
  }
}

test.each(['--nanny', '--no-nanny'])(
  'a debugger can attach to a worker with --inspect and %s',
  async (nanny) => {
    const address = await runs.yardmaster('scheduler', '--port', '0', '--no-dashboard').firstLine();
    const worker = runs.yardmaster('worker', address, '--inspect=0', nanny);
    expect(await attach(worker)).toMatchObject([{ type: 'node' }]);
  },
);

test('the workers of a local cluster take a debugger and arguments of Node', async () => {
  const path = join(folder, 'about.mjs');
  writeFileSync(path, 'export const about = () => process.execArgv;\n');
  const about = taskOf(pathToFileURL(path).href, (): readonly string[] => [], 'about');
  const execArgv = ['--stack-trace-limit=77'];
  const cluster = await LocalCluster.start({
    mode: 'processes',
    workers: 1,
    inspect: true,
    execArgv,
  });
  const client = await cluster.client();
  const [found] = (await client.run(about)).values();
  expect(found).toEqual([...execArgv, '--inspect=127.0.0.1:0']);
  await cluster.close();
});

test('a program that restarts the workers when it starts runs the code as it is now', async () => {
  const project = join(folder, 'project');
  mkdirSync(join(project, 'node_modules'), { recursive: true });
  symlinkSync(ROOT, join(project, 'node_modules/yardmaster'));
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  const save = (answer: string): void =>
    writeFileSync(
      join(project, 'tasks.js'),
      `import { defineTasks } from 'yardmaster';
export const { answer } = defineTasks(import.meta.url, { answer: () => '${answer}' });`,
    );
  writeFileSync(
    join(project, 'main.js'),
    `import { Client } from 'yardmaster';
import { answer } from './tasks.js';
const client = await Client.connect(process.argv[2]);
if (process.argv[3] === 'restart') await client.restartWorkers();
console.log(await client.submit(answer).result().catch(({ code }) => code));
await client.close();`,
  );
  save('old');
  const address = await runs.yardmaster('scheduler', '--port', '0', '--no-dashboard').firstLine();
  await runs.yardmaster('worker', address, '--code-root', project).firstLine();
  const main = async (...args: string[]): Promise<string> => {
    const all = [join(project, 'main.js'), address, ...args];
    return (await execute(process.execPath, all)).stdout.trim();
  };
  expect(await main()).toBe('old');
  save('new');
  expect(await main()).toBe('ERR_FUNCTION_VERSION');
  expect(await main('restart')).toBe('new');
});
