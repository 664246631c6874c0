import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openPast } from '../../../adapters/app/past.ts';
import { openPastDashboard, type PastDashboard } from '../../../adapters/dashboard/past.ts';
import { hasBrowser, misdeedsOf, startBrowser, violationsIn, openPage } from './browser.ts';
import { expectPicture } from './pictures.ts';
import { recordSimulation } from './simulated-recording.ts';

const PAGES = ['status', 'tasks', 'graph', 'system', 'memory', 'decisions', 'workers', 'log'];

/** A moment right after a worker has died. */
const MOMENT_S = 1.7;

describe.skipIf(!hasBrowser)('the dashboard over a recording, in a browser', () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-past-browser-'));
  let dashboard: PastDashboard;
  let browser: Browser;
  let page: Page;
  let at: string;
  let misdeeds: readonly string[];

  beforeAll(async () => {
    const file = join(folder, 'pipeline.ylog');
    await recordSimulation(file);
    dashboard = await openPastDashboard(await openPast(file), { host: '127.0.0.1', port: 0 });
    at = new URL(dashboard.url).origin;
    browser = await startBrowser();
    page = await openPage(browser, {
      ...{ viewport: { width: 1280, height: 900 }, timezoneId: 'UTC', locale: 'en-GB' },
      ...{ reducedMotion: 'reduce', deviceScaleFactor: 1 },
    });
    misdeeds = misdeedsOf(page, at);
  });
  afterAll(async () => {
    await browser.close();
    await dashboard.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const text = (): Promise<string> => page.innerText('main');

  /** Opens a page and moves its slider, as a hand does. */
  const open = async (path: string, momentS = MOMENT_S): Promise<void> => {
    await page.goto(`${at}/${path}`);
    const moment = page.getByRole('slider', { name: 'Moment' });
    await page.getByText('recording', { exact: true }).waitFor();
    const endS = await page.evaluate<number>(
      `JSON.parse(document.querySelector('meta[name=past]').content).toS`,
    );
    await moment.fill(String(Math.round((1000 * momentS) / endS)));
    const shown = page.locator('.moment output');
    await expect.poll(() => shown.innerText()).toMatch(/^00:00:01\.[67]/);
    await moment.blur();
  };

  it('opens where there is something to see, and the arrow keys move the moment', async () => {
    await page.goto(`${at}/status`);
    await expect.poll(text).toContain('load');
    const slider = page.getByRole('slider', { name: 'Moment' });
    const shown = page.locator('.moment output');
    const before = await shown.innerText();
    await slider.focus();
    await page.keyboard.press('Home');
    await expect.poll(() => shown.innerText()).toMatch(/^00:00:00\.0/);
    await expect.poll(() => shown.innerText()).not.toBe(before);
    for (let k = 0; k < 3; k++) await page.keyboard.press('PageUp');
    await expect.poll(() => shown.innerText()).not.toMatch(/^00:00:00\.0/);
  });

  it('shows on each page what there was at the moment', async () => {
    await open('status');
    await expect.poll(text).toMatch(/wait for the results of others/);
    expect(await text()).toMatch(/What failed first\s+00:00:0\d parse-header/);
    await page.getByRole('link', { name: 'Graph' }).click();
    await expect.poll(text).toContain('81 tasks with all dependencies');
    await page.getByRole('link', { name: 'Task stream' }).click();
    await expect.poll(text).toMatch(/load\s+\d+/);
    await page.getByRole('link', { name: 'Log' }).click();
    await expect.poll(text).toContain('processing');
  });

  it('tells the story of a task with the candidates of its placement', async () => {
    await open('decisions');
    await page.getByLabel('Key of a task').fill('load-3');
    await page.getByRole('button', { name: 'Why is it there?' }).click();
    const dialog = page.getByRole('dialog');
    await expect.poll(() => dialog.innerText()).toMatch(/worker\s+score\s+bytes to move/);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  });

  it('has no button that would change something', async () => {
    const worker = await page.evaluate<string>(
      `fetch('api/graph?at=1').then(() => fetch('api/memory?at=1')).then((r) => r.json()).then(({ results }) => results[0].workers[0])`,
    );
    for (const path of ['decisions', `workers?worker=${encodeURIComponent(worker)}`]) {
      await page.goto(`${at}/${path}`);
      await expect.poll(text).toMatch(/locality-first|status\s+running/);
      const names = await page.locator('button:visible:not(.sort)').allInnerTexts();
      expect(names.filter((name) => !['Theme', 'Why is it there?'].includes(name))).toEqual([]);
    }
  });

  it.each(PAGES)(
    'looks on the page %s as it did, light and dark, and breaks no rule of accessibility',
    async (path) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await open(path);
        await settled(page);
        await expectPicture(page, `past-${path}-${colorScheme}`);
        expect(await violationsIn(page)).toEqual([]);
      }
    },
  );

  it.each(['status', 'tasks', 'workers'])(
    'looks on a narrow screen on the page %s as it did',
    async (path) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.emulateMedia({ colorScheme: 'light' });
      await open(path);
      await settled(page);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
      await expectPicture(page, `past-${path}-narrow`);
      await page.setViewportSize({ width: 1280, height: 900 });
    },
  );

  it.skipIf(process.env['UPDATE_IMAGES'] === '1')(
    'notices when a part of a page is missing, or its colours',
    async () => {
      await page.emulateMedia({ colorScheme: 'light' });
      await open('tasks');
      await expect(expectPicture(page, 'past-tasks-dark')).rejects.toThrow('looks otherwise');
      await page.evaluate(`document.querySelector('canvas').hidden = true`);
      await expect(expectPicture(page, 'past-tasks-light')).rejects.toThrow('looks otherwise');
      await open('status');
      await page.evaluate(`document.querySelector('.tiles').hidden = true`);
      await expect(expectPicture(page, 'past-status-light')).rejects.toThrow('looks otherwise');
    },
  );

  it('tells a story that looks as it did', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await open('status');
      await page.goto(`${at}/status?task=merge-1`);
      await page.getByRole('dialog').getByText('Story').waitFor();
      await settled(page);
      await expectPicture(page, `past-story-${colorScheme}`);
    }
  });

  it('has written no error, and fetched nothing from elsewhere', () => {
    expect(misdeeds).toEqual([]);
  });
});

/** Waits until two looks a moment apart see the same. */
async function settled(page: Page): Promise<void> {
  let before = '';
  await expect
    .poll(async () => {
      const now = (await page.screenshot()).toString('base64');
      const isSame = now === before;
      before = now;
      return isSame;
    })
    .toBe(true);
}
