import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';

import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client } from '../../../adapters/client/index.ts';
import type { Explanation } from '../../../adapters/dashboard/page-messages.ts';
import { add, fail, hang, spin } from '../dashboard/fixtures/tasks.mjs';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-report-'));
let cluster: LocalCluster;
let client: Client;

beforeAll(async () => {
  cluster = await LocalCluster.start({ mode: 'inline', workers: 2 });
  client = await cluster.client();
});
afterAll(async () => {
  await cluster.close();
  rmSync(folder, { recursive: true });
});

it('a client writes a report about a piece of work, and gets what the work returns', async () => {
  await client.submit(spin, 2).result();
  const file = join(folder, 'report.html');
  const total = await client.report(file, () =>
    client.submit(add, client.map(spin, [1, 3, 4])).result(),
  );
  expect(total).toBe(8);
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('<h1>report.html</h1>');
  expect(text).toContain('4 tasks took');
  expect(text).toContain('The critical path has 2 tasks');
});

it('the report tells results that were read from a store from those that were computed', async () => {
  const file = join(folder, 'kept.html');
  const connected = await cluster.client({ resultStore: join(folder, 'results') });
  const sum = async (): Promise<void> => {
    const future = connected.with({ persist: true }).submit(add, [1, 2]);
    await future.result();
    future.release();
  };
  const prefixes = async (): Promise<unknown> => {
    await connected.report(file, sum);
    const [, data = ''] = /id="data">"([^"]+)"/.exec(readFileSync(file, 'utf8')) ?? [];
    const { history } = JSON.parse(gunzipSync(Buffer.from(data, 'base64')).toString()) as {
      history: { prefixes: readonly string[] };
    };
    return history.prefixes;
  };
  expect(await prefixes()).toEqual(['add']);
  expect(await prefixes()).toEqual(['add, kept']);
  await connected.close();
});

it('the report is written when the work fails, and the error is that of the work', async () => {
  const file = join(folder, 'failed.html');
  const work = (): Promise<never> => client.with({ key: 'bad-1' }).submit(fail, '<b>no').result();
  await expect(client.report(file, work, { title: 'A & B' })).rejects.toThrow('<b>no');
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('<h1>A &#38; B</h1>');
  expect(text).toContain('The first was bad-1');
  expect(text).not.toContain('<b>no');
});

it('work that succeeded keeps its result when there is no report any more', async () => {
  const warnings: string[] = [];
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation((text) => {
    warnings.push(String(text));
  });
  const endReports = Array.from({ length: 20 }, (_, id) => id);
  const file = join(folder, 'gone.html');
  const total = await client.report(file, async () => {
    await Promise.allSettled(endReports.map((id) => client.command('report.stop', { id })));
    return 8;
  });
  warn.mockRestore();
  expect(total).toBe(8);
  expect(warnings).toEqual([expect.stringContaining(`${file} was not written: `)]);
});

it('a report is ended by the client that began it alone', async () => {
  const id = await client.command<number>('report.start');
  const other = await cluster.client();
  await expect(other.command('report.stop', { id })).rejects.toThrow(`there is no report ${id}`);
  await expect(client.command('report.stop', { id })).resolves.toBeDefined();
  await other.close();
});

it('a file that cannot be written is told before the work begins', async () => {
  const work = vi.fn();
  const report = client.report(join(folder, 'no', 'folder', 'report.html'), work);
  await expect(report).rejects.toThrow('ENOENT');
  expect(work).not.toHaveBeenCalled();
});

it('the scheduler says why work that is under way takes as long as it does', async () => {
  const [worker] = cluster.scheduler.cluster.workers.keys();
  const bound = client.with({ workers: [worker!] });
  const work = Array.from({ length: 5 }, (_, n) => bound.with({ key: `hang-${n}` }).submit(hang));
  const { findings } = await client.command<Explanation>('report.explain', { seconds: 1 });
  expect(findings[0]).toMatchObject({
    rule: 'restrictions',
    title: 'Tasks were kept from idle threads',
    text: expect.stringContaining('hang by a restriction to certain workers') as string,
  });
  client.cancel(work);
});

it('the scheduler collects nothing any more for a client that has left', async () => {
  const other = await cluster.client();
  const id = await other.command<number>('report.start');
  await other.close();
  await expect(client.command('report.stop', { id })).rejects.toMatchObject({
    code: 'ERR_PROTOCOL',
    message: expect.stringContaining(`there is no report ${id}`) as string,
  });
});

it('a file that cannot be written is an error', async () => {
  const file = join(folder, 'nowhere', 'report.html');
  await expect(client.report(file, () => 1)).rejects.toMatchObject({ code: 'ENOENT' });
  expect(existsSync(file)).toBe(false);
});
