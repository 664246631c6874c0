import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Client, Future } from '../../../adapters/client/index.ts';
import { type PluginContext } from '../../../core/api/index.ts';
import { startCluster } from './bench.ts';
import { add, fail, hang, spin } from './fixtures/tasks.mjs';
import { openPage, hasBrowser, startBrowser } from './browser.ts';

/** A reader who starts at the overview needs at most so many clicks for an answer. */
const CLICKS_MAX = 3;

describe.skipIf(!hasBrowser)('from the overview a reader learns within three clicks', () => {
  let cluster: LocalCluster;
  let browser: Browser;
  let page: Page;
  let client: Client;
  let clicks = 0;
  const held: Future<unknown>[] = [];

  beforeAll(async () => {
    ({ cluster } = await startCluster(
      { recordsAlways: true },
      { config: { scheduler: { decisionLogLength: 1000 } } },
    ));
    client = await cluster.client();
    const loads = [1, 2, 3].map((k) => client.with({ key: `load-${k}` }).submit(spin, 1));
    const broken = client.with({ key: 'parse-7' }).submit(fail, 'line 3 has no date');
    const after = client.with({ key: 'report-7' }).submit(add, [broken]);
    await Promise.all([...loads, after].map((future) => future.settled()));
    const slow = client.with({ key: 'train-1' }).submit(hang);
    const waits = client.with({ key: 'score-1' }).submit(add, [slow, ...loads]);
    held.push(...loads, broken, after, slow, waits);
    await pauseWorker(cluster);
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await cluster.close();
  });
  beforeEach(async () => {
    page = await openPage(browser, { viewport: { width: 1280, height: 900 } });
    clicks = 0;
    await page.goto(cluster.dashboardUrl ?? '');
    await page.getByText('live', { exact: true }).waitFor();
  });
  afterEach(async () => {
    expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
    await page.close();
  });

  const click = async (what: Locator): Promise<void> => {
    clicks++;
    await what.click();
  };
  const read = async (where: string, text: string | RegExp): Promise<void> => {
    await expect.poll(() => page.innerText(where)).toMatch(text);
  };

  it('which worker is full', async () => {
    await read('main', /1 worker takes no new tasks: worker-1/);
    await click(page.getByRole('link', { name: 'worker-1' }));
    await read('main', /status\s+paused/);
  });

  it('what waits for what', async () => {
    await read('main', /1 task waits for the results of others, such as score-1 for train-1\./);
    await click(page.getByRole('link', { name: 'score-1' }));
    await read('dialog', /train-1/);
    await click(page.getByRole('dialog').getByRole('link', { name: 'train-1' }).first());
    await read('dialog', /processing/);
  });

  it('why a task went where it is', async () => {
    await click(page.getByRole('link', { name: 'Decisions' }));
    await page.getByLabel('Key of a task').fill('load-2');
    await click(page.getByRole('button', { name: 'Why is it there?' }));
    await read('dialog', /family/);
    await read('dialog', /worker\s+score\s+bytes to move/);
  });

  it('what a policy costs beside another one', async () => {
    await click(page.getByRole('link', { name: 'Decisions' }));
    const card = page.locator('.card', { hasText: 'queuing' });
    await card.getByLabel('Another policy').selectOption('root-ish');
    await click(card.getByRole('button', { name: 'Compare' }));
    await read('main', /queuing\s+root-ish/);
    held.push(...[1, 2, 3].map((k) => client.with({ key: `again-${k}` }).submit(add, [k])));
    await read('main', /queuing\s+root-ish\s+3\s+\d+\s+[\d.]+ \S?s/);
  });

  it('what failed first', async () => {
    await read('main', /What failed first\s+\d\d:\d\d:\d\d parse-7 .*line 3 has no date/);
    await click(page.getByRole('link', { name: 'parse-7' }));
    await read('dialog', /Needed by: report-7/);
  });
});

/** As a worker does whose memory is full. */
async function pauseWorker(cluster: LocalCluster): Promise<void> {
  await cluster.scheduler.addPlugin({
    name: 'full',
    apiVersion: 1,
    setup: (context: PluginContext) => {
      const worker = [...context.cluster.workers.values()].find(({ name }) => name === 'worker-1');
      if (worker === undefined) throw new Error('there is no worker-1');
      context.enqueue({ op: 'set-worker-status', worker: worker.address, status: 'paused' });
      return {};
    },
  });
}
