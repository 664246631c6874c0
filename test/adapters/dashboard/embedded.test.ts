import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { startCluster } from './bench.ts';
import { spin } from './fixtures/tasks.mjs';
import { openPage, hasBrowser, startBrowser } from './browser.ts';

/** Where a notebook server puts what it passes on. */
const PREFIX = '/user/ada/proxy/8787';

describe.skipIf(!hasBrowser)('the dashboard in JupyterLab', () => {
  let cluster: LocalCluster;
  let at: string;
  let browser: Browser;
  let notebook: Server;
  let outside: string;

  beforeAll(async () => {
    ({ cluster, at } = await startCluster({ recordsAlways: true }));
    const client = await cluster.client();
    await client.with({ key: 'load-1' }).submit(spin, 1).result();
    notebook = await notebookServer(at);
    outside = `http://localhost:${(notebook.address() as AddressInfo).port}`;
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    notebook.closeAllConnections();
    notebook.close();
    await cluster.close();
  });

  it('works below another path, as a notebook server passes it on', async () => {
    const page = await openPage(browser);
    const failed: string[] = [];
    page.on('response', (response) => {
      if (response.status() >= 400) failed.push(response.url());
    });
    await page.goto(`${outside}${PREFIX}/info/main/workers.html`);
    await page.getByText('live', { exact: true }).waitFor();
    expect(page.url()).toBe(`${outside}${PREFIX}/workers`);
    await page.getByRole('link', { name: 'worker-0' }).click();
    await page.getByRole('heading', { name: 'worker-0' }).waitFor();
    await page.getByRole('link', { name: 'Graph' }).click();
    await page.waitForURL(`${outside}${PREFIX}/graph`);
    expect(failed).toEqual([]);
    await page.close();
  });

  it('is shown in a frame of a page of this machine, without its header, and changes nothing there', async () => {
    const page = await openPage(browser);
    await page.goto(`${outside}/lab?show=${at}/individual-decisions`);
    const frame = page.frameLocator('iframe');
    await frame.getByText('Policies in charge').waitFor();
    expect(await frame.getByRole('navigation').count()).toBe(0);
    const card = frame.locator('.card', { hasText: 'queuing' });
    const before = cluster.scheduler.policies.current.queuing;
    await card.getByLabel('Another policy').selectOption('direct');
    await card.getByRole('button', { name: 'Replace' }).click();
    await frame.getByText('Open the dashboard in a tab of its own').waitFor();
    expect(cluster.scheduler.policies.current.queuing).toBe(before);
    await page.close();
  });

  it('is not shown in a frame of a page from elsewhere', async () => {
    const elsewhere = await notebookServer(at, '127.0.0.2');
    const { port } = elsewhere.address() as AddressInfo;
    const page = await openPage(browser);
    await page.goto(`http://127.0.0.2:${port}/lab?show=${at}/individual-progress`);
    await expect.poll(() => page.frames()[1]?.url()).toContain('chrome-error');
    await page.close();
    elsewhere.closeAllConnections();
    elsewhere.close();
  });
});

/** Passes requests below {@link PREFIX} on, WebSockets too, and shows any page in a frame, as JupyterLab does. */
async function notebookServer(at: string, host = 'localhost'): Promise<Server> {
  const { hostname, port } = new URL(at);
  const server = createServer((asked, answer) => {
    const url = new URL(asked.url ?? '/', 'http://localhost');
    if (url.pathname === '/lab') {
      const sandbox = 'allow-scripts allow-same-origin';
      const src = url.searchParams.get('show') ?? '';
      answer.setHeader('content-type', 'text/html');
      answer.end(`<iframe sandbox="${sandbox}" src="${src}" width="900" height="700"></iframe>`);
      return;
    }
    const { method, headers } = asked;
    const path = asked.url?.replace(PREFIX, '');
    const passed = request({ hostname, port, path, method, headers }, (given) => {
      answer.writeHead(given.statusCode ?? 500, given.headers);
      given.pipe(answer);
    });
    asked.pipe(passed);
  });
  server.on('upgrade', (asked, socket) => {
    const path = asked.url?.replace(PREFIX, '');
    const passed = request({ hostname, port, path, headers: asked.headers });
    passed.on('upgrade', (given, other) => {
      const lines = Object.entries(given.headers).map(
        ([name, value]) => `${name}: ${String(value)}`,
      );
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
      other.pipe(socket).pipe(other);
      for (const end of [other, socket]) end.on('error', () => other.destroy());
    });
    passed.end();
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return server;
}
