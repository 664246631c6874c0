import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadWorkload, simulate } from '../../../adapters/simulator/index.ts';
import {
  hasBrowser,
  misdeedsOf,
  openPage,
  startBrowser,
  violationsIn,
} from '../dashboard/browser.ts';

const ROOT = join(import.meta.dirname, '../../..');
const BASE = '/yardmaster/';
/** A page of each kind; that of the API is there after `npm run docs`. */
const PAGES = ['index', 'client', '404', 'api/yardmaster/policy'].filter(
  (name) => !name.startsWith('api/') || existsSync(join(ROOT, 'docs', `${name}.md`)),
);
const WORKLOAD = 'shuffle:6@200ms,20MB';
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
};

it('the worker of the playground imports no module of Node, and nothing by name', async () => {
  const { metafile } = await build({
    entryPoints: [join(ROOT, 'dist/adapters/playground/worker.js')],
    ...{ bundle: true, write: false, metafile: true, platform: 'node', format: 'esm' },
  });
  const imports = Object.entries(metafile.inputs).flatMap(([file, { imports: all }]) =>
    all.filter(({ external }) => external === true).map(({ path }) => `${file}: ${path}`),
  );
  expect(imports).toEqual([]);
  expect(Object.keys(metafile.inputs)).toContain('dist/core/kernel/kernel.js');
});

describe.skipIf(!hasBrowser)('the site and its playground, in a browser', () => {
  const folder = mkdtempSync(join(tmpdir(), 'yardmaster-site-'));
  const server = createServer(({ url = '' }, response) => {
    const path = url.split('?')[0]?.slice(BASE.length) ?? '';
    try {
      const content = readFileSync(join(folder, path));
      response.setHeader('content-type', TYPES[extname(path)] ?? 'application/octet-stream');
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  let browser: Browser;
  let page: Page;
  let at: string;
  let misdeeds: readonly string[];

  beforeAll(async () => {
    const command = [
      join(ROOT, 'node_modules/.bin/vitepress'),
      'build',
      'docs',
      '--outDir',
      folder,
    ];
    const env = { ...process.env, SITE_BASE: BASE };
    await promisify(execFile)(process.execPath, command, { cwd: ROOT, env });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await startBrowser();
  }, 600_000);
  beforeEach(async () => {
    page = await openPage(browser, { colorScheme: 'light', locale: 'en-GB' });
    misdeeds = misdeedsOf(page, at);
    await page.goto(`${at}${BASE}playground.html`);
    await button('Run').waitFor();
  });
  afterEach(() => page.context().close());
  afterAll(async () => {
    await browser.close();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const button = (name: string): Locator => page.getByRole('button', { name, exact: true });
  const editor = (): Locator => page.getByLabel('Policy', { exact: true });
  const alert = (): Promise<string> => page.locator('.playground [role=alert]').innerText();
  const status = (): Promise<string> => page.locator('form [role=status]').innerText();
  const figuresOf = async (name: string): Promise<readonly string[]> =>
    (await page.getByRole('row', { name }).innerText()).split('\t').slice(1);

  const run = async (policy: string, ends = /^Simulated/): Promise<void> => {
    await editor().fill(policy);
    await button('Run').click();
    await expect.poll(status, { timeout: 60_000 }).toMatch(ends);
  };
  const selecting = (body: string): string => `import { definePolicy } from 'yardmaster/policy';

export default definePolicy('workerSelection', {
  name: 'mine',
  apiVersion: 1,
  create: () => ({ select(task, workers) {
    ${body}
  } }),
});
`;

  it('the defaults alone take as long as they take in Node', async () => {
    await run('');
    const options = { workers: 8, worker: { threads: 2 } };
    const { makespanS } = await simulate(await loadWorkload(WORKLOAD), options);
    expect(await figuresOf('Makespan')).toEqual([`${makespanS.toFixed(3)} s`]);
    expect(misdeeds).toEqual([]);
  });

  it('a policy is run beside the defaults, as Node runs it', async () => {
    await run(selecting('return workers[0];'));
    const mine = { select: (_task: unknown, workers: readonly unknown[]) => workers[0] };
    const options = { workers: 8, worker: { threads: 2 } };
    const overrides = { scheduler: { policies: { workerSelection: { use: mine } } } };
    const workload = await loadWorkload(WORKLOAD);
    const base = await simulate(workload, options);
    const own = await simulate(workload, { ...options, overrides });
    const [theirs, ours, difference] = await figuresOf('Makespan');
    expect([theirs, ours]).toEqual([base, own].map(({ makespanS }) => `${makespanS.toFixed(3)} s`));
    expect(ours).not.toBe(theirs);
    expect(difference).toMatch(/^[+−][\d.]+ %$/);
    expect(misdeeds).toEqual([]);
  });

  it('every policy that the page explains runs without a fault', async () => {
    const titles = await page.locator('#sample option').allInnerTexts();
    expect(titles).toHaveLength(3);
    for (const title of titles) {
      await page.locator('#sample').selectOption(title);
      await run(await editor().inputValue());
      expect(await alert()).toBe('');
    }
  });

  it('a moment of virtual time is shown in words and in the charts, and can be played', async () => {
    await run(selecting('return workers[0];'));
    const moment = page.getByRole('slider', { name: 'Moment' });
    await moment.fill('200');
    const words = page.getByText(/^defaults: \d+ of 16 threads busy, \d+ ready tasks wait/);
    await expect.poll(() => words.count()).toBe(1);
    await button('Threads under defaults').click();
    await page.emulateMedia({ colorScheme: 'dark' });
    await button('Play').click();
    await expect.poll(() => moment.inputValue()).not.toBe('200');
    await button('Pause').click();
  });

  it.each([
    ['a syntax error', selecting('return workers[0'), /^Line 9: .*Unexpected|^Line 8: /],
    [
      'an error',
      selecting('return workers.nearest.first;'),
      /^Line 7: .*first.*\n*.*7 \| {5}return/,
    ],
    ['an error while it is loaded', '\n\nnowhere();', /^Line 3: nowhere is not defined/],
    ['an unknown slot', selecting('').replace('workerSelection', 'workers'), /workerSelection/],
    ['another import', "import 'lodash';", /from "yardmaster\/policy" alone/],
    ['no policy', 'export const nothing = 1;', /write export default definePolicy/],
  ])('%s of the policy is shown with its place and what to do', async (_what, policy, says) => {
    await run(policy, /^Simulated|^No result/);
    expect(await alert()).toMatch(says);
  });

  it('a workload that does not exist is refused with the nearest name', async () => {
    await page.getByLabel('Workload').fill('shufle:6');
    await run('', /^No result/);
    expect(await alert()).toMatch(/"shufle:6" is no workload; did you mean "shuffle"/);
  });

  it('a loop without an end is stopped by the button, and by the limit', async () => {
    await page.clock.install();
    await editor().fill(selecting('for (;;);'));
    await button('Run').click();
    await expect.poll(status).toMatch(/^Simulating/);
    await button('Stop').click();
    await expect.poll(alert).toMatch(/^stopped\./);
    await button('Run').click();
    await expect.poll(status).toMatch(/^Simulating/);
    await page.clock.fastForward(21_000);
    await expect.poll(alert).toMatch(/stopped after 20 s. A loop of the policy may have no end/);
    await run(selecting('return workers[0];'));
  });

  it('a link brings settings and policy, and runs nothing by itself', async () => {
    const policy = selecting('return workers.at(-1); // ü');
    await editor().fill(policy);
    await page.getByLabel('Workers').fill('3');
    await button('Link to this').click();
    await expect.poll(status).toMatch(/carries the settings/);
    const link = page.url();
    const other = await openPage(browser);
    await other.goto(link);
    await other.getByText('Nothing has run').waitFor();
    expect(await other.getByLabel('Policy', { exact: true }).inputValue()).toBe(policy);
    expect(await other.getByLabel('Workers').inputValue()).toBe('3');
    expect(await other.getByRole('heading', { name: 'Result' }).count()).toBe(0);
    await other.context().close();
  });

  it.each([390, 820, 1280])(
    'it has no fault of accessibility at %i px, in both themes',
    async (width) => {
      await page.setViewportSize({ width, height: 900 });
      await run(selecting('return workers[0];'));
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await expect
          .poll(() => page.evaluate('document.documentElement.classList.contains("dark")'))
          .toBe(colorScheme === 'dark');
        expect(await violationsIn(page)).toEqual([]);
        const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
        expect(wide).toBe(false);
      }
      expect(misdeeds).toEqual([]);
    },
  );

  const kinds = PAGES.flatMap((name) => [400, 1280].map((width) => [name, width] as const));
  it.each(kinds)(
    'the page %s, its menus and its search have no fault of accessibility at %i px, in both themes',
    async (name, width) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const viewport = { width, height: 900 };
        const shown = await openPage(browser, { colorScheme, viewport, reducedMotion: 'reduce' });
        await shown.goto(`${at}${BASE}${name}.html`);
        expect(await violationsIn(shown)).toEqual([]);
        expect(await shown.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(
          false,
        );
        const outline = shown.getByRole('button', { name: 'On this page' });
        if (await outline.isVisible()) {
          await outline.click();
          await shown.getByRole('link', { name: 'Return to top' }).waitFor();
          expect(await violationsIn(shown)).toEqual([]);
          await outline.click();
        }
        await shown.getByRole('button', { name: 'Search', exact: true }).click();
        await shown.getByRole('dialog', { name: 'Search' }).getByRole('searchbox').fill('policy');
        await shown.getByRole('option', { name: 'policies' }).first().waitFor();
        expect(await violationsIn(shown)).toEqual([]);
        await shown.context().close();
      }
    },
  );

  it('a group of the sidebar says whether it is open, and the keyboard opens and closes it', async () => {
    await page.setViewportSize({ width: 1280, height: 900 });
    const group = page.getByRole('button', { name: 'Reference of the API' });
    const isOpen = (): Promise<string | null> => group.getAttribute('aria-expanded');
    expect(await isOpen()).toBe('false');
    await group.press('Enter');
    await expect.poll(isOpen).toBe('true');
    await group.press('Enter');
    await expect.poll(isOpen).toBe('false');
  });
});
