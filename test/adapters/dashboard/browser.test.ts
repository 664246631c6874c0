import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import type { Future } from '../../../adapters/client/index.ts';
import { startCluster } from './bench.ts';
import { hasBrowser, misdeedsOf, startBrowser, violationsIn, openPage } from './browser.ts';
import { add, fail, spin } from './fixtures/tasks.mjs';

const PAGES = ['status', 'tasks', 'graph', 'memory', 'decisions', 'workers', 'log'];

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
    expect(await bar.getAttribute('aria-label')).toBe('1 failed');
  });

  it('tells the story of a task that is clicked', async () => {
    await page.goto(`${at}/status`);
    await page.getByRole('link', { name: 'parse-1' }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('erred').first().waitFor();
    expect(await dialog.innerText()).toContain('onerror=alert(1)');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
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
