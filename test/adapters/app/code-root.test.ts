/** Local clusters whose tasks come from a project that is named, not guessed. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { LocalCluster } from '../../../adapters/app/index.ts';
import { workerClient } from '../../../adapters/client/index.ts';
import { defineTasks, taskOf } from '../../../adapters/tasks/index.ts';

const project = realpathSync(mkdtempSync(join(tmpdir(), 'yardmaster-project-')));
const path = join(project, 'packages/app/tasks.js');
const where = taskOf(pathToFileURL(path).href, (): string => '', 'where');

beforeAll(() => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(dirname(path), 'package.json'), '{ "type": "module" }');
  writeFileSync(path, 'export const where = () => import.meta.url;\n');
});
afterAll(() => rmSync(project, { recursive: true }));

test.each(['inline', 'threads', 'processes'] as const)(
  'workers of mode %s load modules from codeRoot, which is not where the program runs',
  async (mode) => {
    await using cluster = await LocalCluster.start({ workers: 1, mode, codeRoot: project });
    const client = await cluster.client();
    expect(await client.submit(where).result()).toBe(where.module);
  },
);

test('a client and its tasks give the same keys with a codeRoot', async () => {
  const { keyOfWhere } = defineTasks(import.meta.url, {
    keyOfWhere: async () => (await workerClient()).submit(where).key,
  });
  await using cluster = await LocalCluster.start({ mode: 'inline', codeRoot: project });
  const client = await cluster.client();
  const { key } = client.submit(where);
  expect(await client.submit(keyOfWhere).result()).toBe(key);
  const other = await cluster.client({ codeRoot: dirname(path) });
  expect(other.submit(where).key).not.toBe(key);
});

test('a codeRoot that does not exist is refused', async () => {
  const start = LocalCluster.start({ workers: 1, codeRoot: join(project, 'gone') });
  await expect(start).rejects.toMatchObject({ code: 'ERR_CONFIG' });
});
