import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleProject } from './example-project.ts';

const run = promisify(execFile);
let folder: string;
beforeAll(() => {
  folder = exampleProject('crawl');
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test('the crawl fetches each page once, is polite, and fetches nothing when it is started again', async () => {
  const port = String(await freePort());
  const crawl = async (): Promise<string[]> => {
    const { stdout } = await run(process.execPath, ['main.js', '40', 'threads', port], {
      cwd: folder,
    });
    return stdout.trim().split('\n');
  };
  const [pages, figures = ''] = await crawl();
  expect(pages).toBe('40 pages, nearest: signals 20');
  // Fourteen pages are busy at first.
  expect(figures).toMatch(/^54 requests, 40 served, [1-4] at once$/);
  expect(await crawl()).toEqual([pages, '0 requests, 0 served, 0 at once']);
});
