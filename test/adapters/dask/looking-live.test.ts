import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { CallTree } from '../../../core/api/index.ts';
import { DaskRuns } from './dask-runs.ts';
import { findDaskPython, skipReason } from './pythons.ts';

const SCRIPT = fileURLToPath(new URL('fixtures/looking.py', import.meta.url));
const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
const found = findDaskPython();

describe.skipIf(found === undefined)(`what users of Dask look at${skipReason(found)}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'looking-'));
  let runs: DaskRuns;
  let seen: Readonly<Record<string, unknown>>;
  let profile: unknown;

  beforeAll(async () => {
    runs = new DaskRuns(found!.command);
    const scheduler = await runs.scheduler('--dashboard', '0');
    for (const name of ['alice', 'bob']) {
      runs.worker(scheduler.dask, ['--nthreads', '1', '--name', name, '--no-nanny']);
    }
    const client = runs.script(SCRIPT, scheduler.dask, folder);
    await client.exit;
    const line = client.stdout.trim().split('\n').at(-1) ?? '';
    if (!line.startsWith('{')) throw new Error(client.stderr + scheduler.run.stderr);
    seen = JSON.parse(line) as typeof seen;
    const page = new URL(/http:\/\/[\w.:/?=-]+/.exec(scheduler.run.stderr)?.[0] ?? '');
    page.pathname = '/api/profile';
    profile = await (await fetch(page)).json();
  });
  afterAll(async () => {
    await runs.end();
    rmSync(folder, { recursive: true, force: true });
  });

  it('is a dashboard behind client.dashboard_link', () => {
    expect(seen['dashboard']).toEqual([true, 200, 'text/html', true]);
  });

  it('is the task stream as data', () => {
    expect(seen['stream']).toEqual({
      ...{ tasks: 9, failed: 1, computed: true, named: true, latest: 2, ago: true },
    });
  });

  it('is a profile of what workers compute', () => {
    expect(seen['profile']).toEqual({
      fields: ['children', 'count', 'description', 'identifier'],
      ...{ children: true, apart: true, 'of one': true, key: true, server: true },
    });
  });

  it('is a flame graph of their workers on the page Profile', () => {
    expect(profile).toMatchObject({ workers: 2, silent: 0, tree: { name: 'all tasks' } });
    const { tree } = profile as { readonly tree: CallTree };
    expect(tree.children.map(({ name }) => name)).toContain('slow');
    expect(JSON.stringify(tree)).toMatch(
      /"name":"slow","url":"[^"]*(?:looking\.py|<dynamic-code>)"/,
    );
  });

  it('is a file of the task stream and of the profile, where the client has bokeh', () => {
    expect([undefined, 'figure']).toContain((seen['drawn_stream'] as unknown[] | undefined)?.[0]);
    if (seen['drawn_stream'] === undefined) return;
    expect(seen['drawn_stream']).toEqual(['figure', true]);
    expect(seen['drawn_profile']).toEqual([true, 'figure', true]);
  });

  it('is a performance report, which needs no bokeh and shows keys as text', () => {
    expect(seen['report']).toEqual([]);
  });

  it.skipIf(!existsSync(CHROMIUM))(
    'is a report that a browser shows without network, errors, and violations of accessibility rules',
    async () => {
      const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
      const page = await browser.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(pathToFileURL(join(folder, 'report.html')).href);
      await page.getByRole('img', { name: 'Task stream' }).waitFor();
      await expect.poll(() => page.innerText('main')).toContain('21 actions in this window');
      await page
        .getByRole('button', { name: /^slow \(.*:\d+\): / })
        .first()
        .waitFor();
      const { source } = createRequire(import.meta.url)('axe-core') as { readonly source: string };
      await page.evaluate(source);
      const violations = await page.evaluate<readonly { readonly id: string }[]>(
        'axe.run().then(({ violations }) => violations)',
      );
      expect(violations.map(({ id }) => id)).toEqual([]);
      expect(complaints).toEqual([]);
      await browser.close();
    },
  );
});
