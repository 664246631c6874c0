import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { hasBrowser, openPage, startBrowser, violationsIn } from '../dashboard/browser.ts';
import { outer, spin } from '../dashboard/fixtures/tasks.mjs';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-report-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs short tasks of a prefix until workers have samples of a call, and have told all of them. */
async function computeUntilSampled(client: Client, prefix: string, call: string): Promise<void> {
  const samples = async (): Promise<string> =>
    JSON.stringify(await client.broadcast('inspect', { what: 'profile' }), mapsAsLists);
  let runs = 0;
  const computed = async (): Promise<string> => {
    const key = `${prefix}-${runs++}`;
    await client
      .with({ key })
      .submit(call === 'inner' ? outer : spin, 100)
      .result();
    return samples();
  };
  await expect.poll(computed, { timeout: 120_000 }).toContain(`"name":"${call}"`);
  const isSame = async (): Promise<boolean> => (await samples()) === (await samples());
  await expect.poll(isSame, { timeout: 60_000 }).toBe(true);
}

function mapsAsLists(_name: string, value: unknown): unknown {
  return value instanceof Map ? [...(value as Map<unknown, unknown>)] : value;
}

describe.skipIf(!hasBrowser)('the profile of a report in a browser', () => {
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await startBrowser();
    page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
  });
  afterAll(() => browser.close());

  const open = async (file: string): Promise<Locator> => {
    await page.goto(pathToFileURL(file).href);
    await page.locator('html[data-shown]').waitFor();
    return page.getByRole('group', { name: 'Flame graph' });
  };

  it('is the flame graph of what tasks computed meanwhile, of all and of one prefix', async () => {
    const file = join(folder, 'threads.html');
    const cluster = await LocalCluster.start({ mode: 'threads', workers: 2 });
    const client = await cluster.client();
    await computeUntilSampled(client, 'early', 'spin');
    await client.report(file, () => computeUntilSampled(client, 'long', 'inner'));
    await cluster.close();

    const flame = await open(file);
    await flame.getByRole('button', { name: /^inner \(.*tasks\.mjs:\d+\): / }).waitFor();
    const prefix = page.getByLabel('Tasks of');
    expect(await prefix.innerText()).toMatch(/all prefixes\s+long/);
    expect(await prefix.innerText()).not.toContain('early');
    await prefix.selectOption('long');
    expect(await flame.getByRole('button').first().getAttribute('aria-label')).toMatch(
      /^long: 100\.0 %/,
    );
    expect(await page.innerText('main')).toMatch(/\d samples of 2 workers since .*, every 20 ms/);
    expect(await violationsIn(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  it('says why there is none when workers cannot be sampled, and what to do', async () => {
    const file = join(folder, 'inline.html');
    const cluster = await LocalCluster.start({ mode: 'inline', workers: 2 });
    const client = await cluster.client();
    await client.report(file, () => client.submit(spin, 50).result());
    await cluster.close();
    const flame = await open(file);
    expect(await flame.getByRole('button').count()).toBe(0);
    expect(await page.innerText('main')).toMatch(
      /2 workers cannot be sampled: .*in the modes "threads" and "processes" they are/,
    );
  });
});
