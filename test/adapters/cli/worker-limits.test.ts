/** What a worker process permits to clients. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { expect, test } from 'vitest';

import { Client } from '../../../adapters/client/index.ts';
import { taskOf } from '../../../adapters/tasks/index.ts';
import { useLive } from '../../kit/live.ts';

const { folder, runs } = useLive('limits', { SECRET_OF_ANOTHER: 'x', KEPT: 'y' });

const marker = join(folder, 'was-loaded');
const source = `
import { writeFileSync } from 'node:fs';
writeFileSync(${JSON.stringify(marker)}, '');
export function variables() { return Object.keys(process.env); }
export default class { setup() {} }
`;
const path = join(folder, 'tasks.mjs');
writeFileSync(path, source);
const variables = taskOf(pathToFileURL(path).href, function variables(): readonly string[] {
  return [];
});

test.each(['--nanny', '--no-nanny'])(
  'a worker process with %s loads no module from outside of its project unless it permits it',
  async (nanny) => {
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
    const address = await scheduler.firstLine();
    const worker = runs.yardmaster('worker', address, '--threads', '1', nanny);
    await worker.firstLine();
    const client = await Client.connect(address);
    const refused = { code: 'ERR_MODULE_REFUSED' };
    await expect(client.submit(variables).result()).rejects.toMatchObject(refused);
    await expect(client.run(variables)).rejects.toThrow(/--allow-modules/);
    await expect(client.registerWorkerPlugin({ use: path })).rejects.toThrow(/--allow-modules/);
    expect(existsSync(marker)).toBe(false);
    await client.close();
  },
);

test('a worker process loads no other module through functions of Yardmaster, whatever it permits', async () => {
  const bundle = (name: string): string =>
    createRequire(import.meta.url)
      .resolve('#cli')
      .replace('cli.js', name);
  const address = await runs.yardmaster('scheduler', '--port', '0', '--no-dashboard').firstLine();
  await runs.yardmaster('worker', address, '--threads', '1', '--allow-modules', '*').firstLine();
  const client = await Client.connect(address);
  rmSync(marker, { force: true });
  const bypass = taskOf(
    pathToFileURL(bundle('simulator.js')).href,
    (file: string) => file,
    'loadWorkload',
  );
  const refused = { code: 'ERR_MODULE_REFUSED' };
  await expect(client.submit(bypass, path).result()).rejects.toMatchObject(refused);
  await expect(client.run(bypass, path)).rejects.toThrow(/not made for tasks/);
  await expect(client.registerWorkerPlugin({ use: bundle('cli.js') })).rejects.toThrow(
    /not made for tasks/,
  );
  expect(existsSync(marker)).toBe(false);
  expect(await client.submit(variables).result()).toContain('PATH');
  await client.close();
});

test('a worker process runs modules that it permits, with the variables of its environment that it permits', async () => {
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard');
  const address = await scheduler.firstLine();
  const permitted = ['--allow-modules', folder, '--env', 'KEPT'];
  await runs.yardmaster('worker', address, '--threads', '1', ...permitted).firstLine();
  const client = await Client.connect(address);
  const names = await client.submit(variables).result();
  expect(names).toContain('KEPT');
  expect(names).toContain('PATH');
  expect(names).not.toContain('SECRET_OF_ANOTHER');
  expect(existsSync(marker)).toBe(true);
  await client.registerWorkerPlugin({ use: path });
  await client.close();
});
