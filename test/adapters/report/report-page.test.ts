import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { History } from '../../../adapters/report/history.ts';
import { html } from '../../../adapters/report/report-html.ts';
import { reportOf } from '../../../adapters/report/report.ts';
import { type BriefRun, historyOf } from './synthetic.ts';
import { openPage } from '../dashboard/browser.ts';

/** Debian's; `.ci/run` installs it. */
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const EVIL = '</script><script>alert(1)</script>';
const WORKERS = 8;

/** So many tasks on eight workers, one after the other; one with a key that is markup failed. */
function manyTasks(count: number): History {
  const runs: BriefRun[] = Array.from({ length: count }, (_, k) => {
    const startS = 1e9 + Math.floor(k / WORKERS) * 0.02;
    const lengthS = k === 99 ? 8 : 0.015;
    const transferS = k % 5 === 0 ? 0.004 : 0;
    const key = `${k % 3 === 0 ? 'load' : 'sum'}-${k}`;
    return { key, startS, stopS: startS + lengthS, transferS, worker: k % WORKERS };
  });
  runs.push({ key: EVIL, startS: 1e9, stopS: 1e9 + 1, worker: 0, isError: true });
  const failures = [{ key: EVIL, text: 'Error: <img src=x onerror=alert(2)>', atS: 1e9 + 1 }];
  const bandwidths = {
    pairs: [
      {
        from: 'tcp://w1:1',
        fromName: 'w1',
        to: 'tcp://w2:1',
        toName: 'w2',
        bandwidth: 50 * 2 ** 20,
      },
    ],
    types: [{ type: 'Uint8Array', bandwidth: 60 * 2 ** 20 }],
  };
  return historyOf(runs, WORKERS, { fromS: 1e9, failures, failureCount: 1, bandwidths });
}

function pageOf(history: History): Promise<string> {
  return html(reportOf(history), { title: `run of ${EVIL}`, createdAtMs: 1e12 });
}

describe('the page of a report', () => {
  it('has names of tasks as text, in its words and in its data', async () => {
    const text = await pageOf(manyTasks(10));
    expect(text).not.toContain('<script>alert');
    expect(text).not.toContain('<img');
    expect(text).toContain('&#60;script&#62;alert(1)');
    expect(text.match(/<script/g)).toHaveLength(2);
  });

  it('permits nothing that it does not bring along', async () => {
    const text = await pageOf(manyTasks(10));
    expect(text).toMatch(
      /content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-/,
    );
    expect(text).not.toMatch(/(?:src|href)="(?!data:)/);
  });
});

describe.skipIf(!existsSync(CHROMIUM))('the page of a report in a browser', () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-report-'));
  const file = join(folder, 'report.html');
  const errors: string[] = [];
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    writeFileSync(file, await pageOf(manyTasks(120_000)));
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    page = await openPage(browser, { viewport: { width: 1280, height: 800 } });
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('request', (request) => {
      const { protocol } = new URL(request.url());
      if (protocol !== 'file:' && protocol !== 'data:') errors.push(`fetched ${request.url()}`);
    });
    await page.goto(pathToFileURL(file).href);
    await page.locator('html[data-shown]').waitFor();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  const text = (): Promise<string> => page.innerText('main');

  it('says what happened and what could be better, for 120 000 tasks in a file to mail', async () => {
    expect(await text()).toContain('120,001 tasks took 5 min on 8 threads of 8 workers');
    expect(await text()).toContain('1 task failed');
    expect(await text()).toContain(EVIL);
    expect(await text()).toContain('shows the 100,000 longest runs; 20,001 shorter ones are in');
    expect(statSync(file).size).toBeLessThan(5_000_000);
  });

  it('zooms into the task stream with the keyboard', async () => {
    await expect.poll(text).toContain('Each pixel shows the longest of its tasks');
    await page.getByRole('img', { name: 'Task stream' }).focus();
    for (let k = 0; k < 8; k++) await page.keyboard.press('+');
    await expect.poll(text).not.toContain('Each pixel');
    await page.keyboard.press('Home');
    await expect.poll(text).toContain('Each pixel');
  });

  it('shows the runs of a task of the critical path', async () => {
    await page.locator('section', { hasText: 'Critical path' }).getByRole('link').first().click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.innerText()).toContain('waited at the scheduler');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  });

  it('shows the bandwidth between workers, by their names, and of types of results', async () => {
    await page.getByRole('row', { name: 'w1 w2 50.0 MiB/s', exact: true }).waitFor();
    await page.getByRole('row', { name: 'Uint8Array 60.0 MiB/s', exact: true }).waitFor();
  });

  it('has no violation of accessibility rules, light and dark, and fits a narrow screen', async () => {
    const { source } = createRequire(import.meta.url)('axe-core') as { readonly source: string };
    await page.evaluate(source);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const violations = await page.evaluate<readonly { readonly id: string }[]>(
        'axe.run().then(({ violations }) => violations)',
      );
      expect(violations.map(({ id }) => id)).toEqual([]);
    }
    await page.setViewportSize({ width: 390, height: 844 });
    const width = (): Promise<unknown> => page.evaluate('document.documentElement.scrollWidth');
    await expect.poll(width).toBeLessThanOrEqual(390);
  });

  it('has no flame graph of work that nobody sampled', async () => {
    expect(await page.getByRole('group', { name: 'Flame graph' }).count()).toBe(0);
    expect(await text()).not.toContain('samples');
  });

  it('has written no error, and fetched nothing', () => {
    expect(errors).toEqual([]);
  });
});
