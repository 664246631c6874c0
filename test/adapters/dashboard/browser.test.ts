import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { GraphAnswer } from '../../../adapters/dashboard/page-messages.ts';
import type { Future } from '../../../adapters/client/index.ts';
import { startCluster } from './bench.ts';
import { hasBrowser, misdeedsOf, startBrowser, violationsIn, openPage } from './browser.ts';
import { add, blob, fail, firstOf, hang, spin } from './fixtures/tasks.mjs';

const PAGES = [
  'status',
  'tasks',
  'graph',
  'profile',
  'system',
  'memory',
  'decisions',
  'workers',
  'log',
];

describe.skipIf(!hasBrowser)('the dashboard in a browser', () => {
  let cluster: LocalCluster;
  let browser: Browser;
  let page: Page;
  let at: string;
  let misdeeds: readonly string[];
  /** Keeps their tasks: what is garbage is released. */
  const held: Future<unknown>[] = [];

  beforeAll(async () => {
    ({ cluster, at } = await startCluster({ recordsAlways: true }));
    const client = await cluster.client();
    const loads = [1, 2, 3, 4].map((k) => client.with({ key: `load-${k}` }).submit(spin, 10));
    const total = client.with({ key: 'total-1' }).submit(add, loads);
    const failed = client.with({ key: 'parse-1' }).submit(fail, '<img src=x onerror=alert(1)>');
    const bold = client.with({ key: '<b>bold</b>-1' }).submit(spin, 1);
    held.push(...loads, total, failed, bold);
    await Promise.all(held.map((future) => future.settled()));
    expect(failed.status).toBe('error');
    browser = await startBrowser();
    page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
    misdeeds = misdeedsOf(page, at);
  });
  afterAll(async () => {
    await browser.close();
    await cluster.close();
  });

  const text = (): Promise<string> => page.innerText('main');

  it('shows progress, workers, and what failed first, with keys as text', async () => {
    await page.goto(`${at}/status`);
    await page.getByText('load', { exact: true }).waitFor();
    await expect.poll(text).toContain('worker-0');
    expect(await text()).toContain('<img src=x onerror=alert(1)>');
    expect(await text()).toContain('b>bold</b');
    expect(await page.locator('main img, main b').count()).toBe(0);
    const bar = page.locator('tr', { hasText: 'parse' }).getByRole('img');
    expect(await bar.getAttribute('aria-label')).toBe('1 erred');
  });

  it('labels failures of now and ever, and tells their worker', async () => {
    await page.goto(`${at}/status`);
    await expect.poll(text).toMatch(/parse-1 on worker-\d: Error/);
    expect(await text()).toMatch(
      /1 task failed of its own since the scheduler began. 1 is erred now\./,
    );
  });

  it('fills no bar of memory that has no limit', async () => {
    await page.goto(`${at}/memory`);
    const bar = page.getByRole('row', { name: /^worker-0/ }).getByRole('img');
    await expect.poll(() => bar.getAttribute('aria-label')).toContain('no limit');
    expect(await filledShare(bar)).toBeLessThan(0.8);
  });

  it('shows the scheduler and each worker over time', async () => {
    await page.goto(`${at}/system`);
    const chart = (title: string): Locator => page.getByRole('img', { name: title });
    const label = (title: string) => (): Promise<string | null> =>
      chart(title).getAttribute('aria-label');
    await expect.poll(label('CPU')).toMatch(/scheduler \d+ %, worker-0 .*worker-1/);
    await expect.poll(label('Memory')).toMatch(/scheduler [\d.]+ MiB, worker-0 .*worker-1/);
    await expect.poll(label('Event-loop delay')).toMatch(/scheduler \d/);
  });

  it('sorts a table by the column whose title is clicked, and keeps the focus in it', async () => {
    await page.goto(`${at}/status`);
    const table = page.getByRole('group', { name: 'Tasks by prefix' });
    const first = (): Promise<string> => table.locator('tbody th').first().innerText();
    await expect.poll(text).toContain('load');
    await table.getByRole('button', { name: 'computed ever' }).click();
    await expect.poll(first).toBe('load');
    await table.getByRole('button', { name: 'prefix' }).click();
    await expect.poll(first).toBe('b>bold</b');
    const link = page.getByRole('link', { name: 'worker-1' });
    await link.focus();
    const client = await cluster.client();
    held.push(client.with({ key: 'later-1' }).submit(spin, 1));
    await expect.poll(text).toContain('later');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('worker-1');
  });

  it('tells the story of a task that is clicked', async () => {
    await page.goto(`${at}/status`);
    await page.getByRole('link', { name: 'parse-1' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('erred').first().waitFor();
    expect(await dialog.innerText()).toContain('onerror=alert(1)');
    expect(await dialog.innerText()).toMatch(/at .*tasks\.mjs[^]*It failed on inmemory:/);
    expect(page.url()).toBe(`${at}/status?task=parse-1`);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => page.url()).toBe(`${at}/status`);
  });

  it('changes nothing while it is paused', async () => {
    await page.goto(`${at}/status`);
    await expect.poll(text).toContain('load');
    const pause = page.getByRole('button', { name: 'Pause' });
    await pause.click();
    const client = await cluster.client();
    held.push(client.with({ key: 'unseen-1' }).submit(spin, 1));
    const other = await openPage(browser);
    await other.goto(`${at}/status`);
    await expect.poll(() => other.innerText('main')).toContain('unseen');
    await other.context().close();
    expect(await text()).not.toContain('unseen');
    await pause.click();
    await expect.poll(text).toContain('unseen');
  });

  it('finds tasks in the graph by name and state', async () => {
    await page.goto(`${at}/graph`);
    await expect.poll(text).toMatch(/tasks with all dependencies/);
    await page.getByLabel('State').selectOption('erred');
    await expect.poll(text).toMatch(/1 of \d+ fit the search/);
    await page.getByLabel('Search').fill('load');
    await expect.poll(text).toMatch(/0 of \d+ fit the search/);
    await page.getByLabel('State').selectOption('memory');
    await expect.poll(text).toMatch(/4 of \d+ fit the search/);
  });

  it('shows what ran, zooms and moves with the keyboard', async () => {
    await page.goto(`${at}/tasks`);
    await expect.poll(text).toContain('actions in this window');
    const canvas = page.getByRole('img', { name: 'Task stream' });
    await canvas.focus();
    await page.keyboard.press('Home');
    await expect.poll(text).toMatch(/load\s+4/);
    await page.keyboard.press('+');
    const live = page.getByRole('button', { name: 'Live' });
    expect(await live.getAttribute('aria-pressed')).toBe('false');
    await page.keyboard.press('l');
    expect(await live.getAttribute('aria-pressed')).toBe('true');
  });

  it('tells tasks that run from those that wait at their worker', async () => {
    const client = await cluster.client();
    const [one = ''] = cluster.scheduler.cluster.workers.keys();
    const stuck = ['a', 'b', 'c'].map((name) =>
      client.with({ key: `stuck-${name}`, workers: [one] }).submit(hang),
    );
    await page.goto(`${at}/tasks`);
    await expect.poll(text).toMatch(/Now 1 run \(pale, with a frame\), 2 wait at workers and 0 at/);
    await page.goto(`${at}/workers`);
    await expect.poll(text).toMatch(/running\s+1\s+running\s*2|\trunning\t1\t2\t/);
    for (const future of stuck) future.cancel();
  });

  it('replaces a policy after a confirmation', async () => {
    // With the token that permits changes.
    await page.goto((cluster.dashboardUrl ?? '').replace('/status', '/decisions'));
    const card = page.locator('.card', { hasText: 'queuing' });
    await card.getByLabel('Another policy').selectOption('direct');
    page.once('dialog', (dialog) => void dialog.accept());
    await card.getByRole('button', { name: 'Replace' }).click();
    await page.getByText('direct is in charge of queuing').waitFor();
    expect(cluster.scheduler.policies.current.queuing).toBe('direct');
  });

  it.each(PAGES)('has no violation of accessibility rules on the page %s', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${at}/${path}`);
      await page.getByText('live', { exact: true }).waitFor();
      expect(await violationsIn(page)).toEqual([]);
    }
  });

  it('fits a narrow screen', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const path of PAGES) {
      await page.goto(`${at}/${path}`);
      await page.getByRole('navigation').waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    }
  });

  it('has written no error, and fetched nothing from elsewhere', () => {
    expect(misdeeds).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)('the graph of many tasks', () => {
  it('is folded, and a click shows the tasks of one with their neighbours', async () => {
    const { cluster, at } = await startCluster();
    const client = await cluster.client();
    const parts = Array.from({ length: 600 }, (_, k) =>
      client.with({ key: `part-${k}-${k}` }).submit(spin, 0),
    );
    const pair = client.with({ key: 'pair-1' }).submit(add, parts.slice(0, 2));
    await Promise.all([...parts, pair].map((future) => future.settled()));
    const answer = async (name: string): Promise<GraphAnswer> =>
      (await (await fetch(`${at}/api/graph?name=${name}`)).json()) as GraphAnswer;
    const { kind, nodes, edges } = await answer('');
    expect(kind).toBe('groups');
    expect(nodes.map(({ name }) => name)).toEqual(['part', 'pair']);
    expect(edges).toEqual([{ from: 0, to: 1 }]);
    const opened = await answer('pair');
    expect(opened.nodes.map(({ name }) => name).toSorted()).toEqual([
      'pair-1',
      'part-0-0',
      'part-1-1',
    ]);
    expect(opened.edges).toHaveLength(2);
    const browser = await startBrowser();
    const page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
    await page.goto(`${at}/graph`);
    await expect.poll(() => page.innerText('main')).toMatch(/601 tasks/);
    const canvas = page.getByRole('img', { name: 'Graph of tasks' });
    const { height = 0 } = (await canvas.boundingBox()) ?? {};
    // The first node stands at the left, in the middle.
    await canvas.click({ position: { x: 30, y: Math.round(height / 2) } });
    await page.getByRole('button', { name: 'Whole graph' }).click();
    await expect.poll(() => page.getByRole('button', { name: 'Whole graph' }).count()).toBe(0);
    await browser.close();
    await cluster.close();
  });
});

describe.skipIf(!hasBrowser)('the bar of the memory of a worker', () => {
  it('leaves out what is on disk, and tells it beside', async () => {
    const { cluster, at } = await startCluster(
      {},
      { workers: 1, config: { worker: { memoryLimit: 40 * 1024 ** 2 } } },
    );
    const client = await cluster.client();
    const big = client.submit(blob, 30 * 1024 ** 2);
    await big.settled();
    const browser = await startBrowser();
    const page = await openPage(browser);
    await page.goto(`${at}/memory`);
    const row = page.getByRole('row', { name: /^worker-0/ });
    await expect.poll(() => row.innerText()).toMatch(/of 40\.0 MiB \+ 30\.0 MiB on disk/);
    expect(await filledShare(row.getByRole('img'))).toBeLessThan(0.5);
    await browser.close();
    await cluster.close();
  });
});

describe.skipIf(!hasBrowser)('the page System', () => {
  it('shows network and disk over time, bandwidths, and what the memory manager did', async () => {
    const { cluster, at } = await startCluster(
      {},
      { mode: 'processes', config: { worker: { threads: 1, memoryLimit: 256 * 1024 ** 2 } } },
    );
    const client = await cluster.client();
    const [one = '', other = ''] = [...cluster.scheduler.cluster.workers.values()]
      .toSorted((a, b) => a.name.localeCompare(b.name))
      .map(({ address }) => address);
    const browser = await startBrowser();
    const page = await openPage(browser);
    await page.goto(`${at}/system`);
    let made = 0;
    /** Moves 40 MB between the workers; the copy is dropped, and what both hold is spilled in the end. */
    const kept: Future<unknown>[] = [];
    const move = async (): Promise<void> => {
      const key = `block-${++made}`;
      const block = client.with({ key, workers: [one] }).submit(blob, 40_000_000);
      const first = client.with({ key: `first-${made}`, workers: [other] }).submit(firstOf, block);
      await first.settled();
      kept.push(block);
    };
    const shows = (chart: string, pattern: RegExp): Promise<void> =>
      expect
        .poll(
          async () => {
            await move();
            return page.getByRole('img', { name: chart }).getAttribute('aria-label');
          },
          { timeout: 60_000 },
        )
        .toMatch(pattern);
    await shows('Network: received', /worker-1 [\d.]+ MiB\/s/);
    await shows('Network: sent', /worker-0 [\d.]+ MiB\/s/);
    await shows('Disk: written', /worker-0 [\d.]+ MiB\/s/);
    await shows('Copies and drops of results', /ReduceReplicas: drops \d/);
    const pair = page.getByRole('row', { name: /^worker-0 worker-1 [\d.]+ [MG]iB\/s$/ });
    await pair.waitFor();
    await page.getByRole('row', { name: /^Uint8Array [\d.]+ [MG]iB\/s$/ }).waitFor();
    const metrics = await (await fetch(`${at}/metrics`)).text();
    expect(metrics).toMatch(/yardmaster_worker_bytes_per_second\{worker="worker-0",type="sent"\}/);
    expect(metrics).toMatch(
      /yardmaster_amm_results_total\{policy="ReduceReplicas",type="drop"\} \d/,
    );
    await browser.close();
    await cluster.close();
  });
});

/** Share of the width of a bar that its parts take. */
async function filledShare(bar: Locator): Promise<number> {
  const widthOf = async (one: Locator): Promise<number> => (await one.boundingBox())?.width ?? 0;
  const parts = await Promise.all((await bar.locator('span').all()).map(widthOf));
  return parts.reduce((sum, width) => sum + width, 0) / (await widthOf(bar));
}
