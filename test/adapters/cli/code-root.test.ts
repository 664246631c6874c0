/** Workers whose copy of the project lies in another folder than that of the client. */
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { Client } from '../../../adapters/client/index.ts';
import { hashOf } from '../../../adapters/client/keys.ts';
import { taskOf } from '../../../adapters/tasks/index.ts';
import { travellingName } from '../../../adapters/tasks/modules.ts';
import { Runs } from '../../kit/runs.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'yardmaster-root-')));
const here = join(folder, 'here');
const there = join(folder, 'somewhere', 'else');
const runs = new Runs();

const WHERE = 'export const where = () => import.meta.url;\n';
/** A module of a package has to register its tasks, as `defineTasks` does. */
const REGISTERED = `${WHERE}const tasks = (globalThis[Symbol.for('yardmaster.tasks')] ??= new Map());
tasks.set(import.meta.url, new Map([['where', where]]));
`;
const files = {
  'package.json': '{ "type": "module" }',
  'src/tasks.js': `import './helper.js';\n${WHERE}`,
  'src/helper.js': 'export const help = 1;\n',
  'src/changed.js': WHERE,
  'packages/app/package.json': '{ "type": "module" }',
  'packages/app/tasks.js': WHERE,
  'node_modules/@acme/tasks/package.json': '{ "type": "module", "version": "1.0.0" }',
  'node_modules/@acme/tasks/lib/tasks.js': REGISTERED,
};
const urlIn = (root: string, path: string): string => pathToFileURL(join(root, path)).href;
const where = (path: string) => taskOf(urlIn(here, path), (): string => '', 'where');

let client: Client;
let address: string;

beforeAll(async () => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(here, path)), { recursive: true });
    writeFileSync(join(here, path), text);
  }
  cpSync(here, there, { recursive: true });
  writeFileSync(join(there, 'src/changed.js'), `${WHERE}// changed\n`);
  address = await runs.yardmaster('scheduler', '--port', '0', '--no-dashboard').firstLine();
  const worker = ['worker', address, '--threads', '1', '--no-nanny', '--code-root', there];
  await runs.yardmaster(...worker).firstLine();
  client = await Client.connect(address);
});

afterAll(async () => {
  await client.close();
  await runs.end('SIGKILL');
  rmSync(folder, { recursive: true });
});

test.each(['src/tasks.js', 'node_modules/@acme/tasks/lib/tasks.js'])(
  'a worker takes %s from its own copy of the project',
  async (path) => {
    expect(await client.submit(where(path)).result()).toBe(urlIn(there, path));
    expect([...(await client.run(where(path))).values()]).toEqual([urlIn(there, path)]);
  },
);

test('a client names modules by their path in its codeRoot, also for what it runs beside tasks', async () => {
  const path = 'packages/app/tasks.js';
  await expect(client.submit(where(path)).result()).rejects.toMatchObject({
    code: 'ERR_MODULE_REFUSED',
  });
  const ofRoot = await Client.connect(address, { codeRoot: here });
  expect(await ofRoot.submit(where(path)).result()).toBe(urlIn(there, path));
  expect([...(await ofRoot.run(where(path))).values()]).toEqual([urlIn(there, path)]);
  await ofRoot.close();
});

test('a codeRoot that does not exist is refused', async () => {
  await expect(Client.connect(address, { codeRoot: join(here, 'gone') })).rejects.toMatchObject({
    code: 'ERR_CONFIG',
    message: expect.stringContaining(join(here, 'gone')) as string,
  });
});

test('a copy with another source is refused', async () => {
  await expect(client.submit(where('src/changed.js')).result()).rejects.toMatchObject({
    code: 'ERR_FUNCTION_VERSION',
    message: expect.stringContaining(urlIn(there, 'src/changed.js')) as string,
  });
});

test('a module outside of the copy is refused as before, under its absolute path', async () => {
  const path = join(here, 'src', 'new.js');
  writeFileSync(path, WHERE);
  await expect(client.submit(where('src/new.js')).result()).rejects.toMatchObject({
    code: 'ERR_MODULE_REFUSED',
    message: expect.stringContaining(urlIn(here, 'src/new.js')) as string,
  });
});

test('a task has the same key in all copies of its project', () => {
  const rest = { name: 'where', version: '1', args: new Uint8Array() };
  const [a, b] = [here, there].map((root) => travellingName(urlIn(root, 'src/tasks.js')));
  expect(a).toBe(`${urlIn(here, '')}/./src/tasks.js`);
  expect(hashOf({ ...rest, module: a! }, [])).toBe(hashOf({ ...rest, module: b! }, []));
});
