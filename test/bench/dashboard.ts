/**
 * The dashboard in a browser, over a scheduler with very many tasks and workers: `npm run bench -- dashboard`.
 * Needs Chromium (`CHROMIUM`, default `/usr/bin/chromium`). Prints one JSON line.
 */
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { Command } from 'commander';
import { type Browser, chromium, type Page } from 'playwright-core';

import { tuneEngine } from '../../adapters/cli/flags.ts';
import { answerOf, pause, startLoaded } from './dashboard-load.ts';
import { print, type Result, round } from './side-by-side.ts';

tuneEngine();

const program = new Command('npm run bench -- dashboard')
  .description('First paint, frames each second, memory and traffic of the dashboard in a browser.')
  .option('--tasks <number>', 'tasks that are finished before the page is opened', '1000000')
  .option('--workers <number>', 'workers', '1000')
  .option('--rate <number>', 'tasks each second while the page is open', '2000')
  .parse();
const options = program.opts<{
  readonly tasks: string;
  readonly workers: string;
  readonly rate: string;
}>();

/** How long frames and bytes are counted. */
const COUNTED_MS = 5000;

const tasks = Number(options.tasks);
const loaded = await startLoaded(Number(options.workers), { history: tasks, recordsAlways: true });
const first = loaded.client(30_000, tasks, 'keep');
await answerOf(first);
const rate = Number(options.rate);
loaded.client(rate, rate * 300, 'keep');
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--enable-precise-memory-info'],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
print({
  ...{ bench: 'dashboard', tasks, workers: Number(options.workers) },
  ...(await overview(page)),
  ...(await stream(page)),
  ...(await memory(browser, page)),
  load: round(loadavg()[0] ?? 0),
});
await browser.close();
await loaded.close();
process.exit(0);

async function overview(page: Page): Promise<Result> {
  let bytes = 0;
  page.on('websocket', (socket) => {
    socket.on('framereceived', ({ payload }) => (bytes += payload.length));
  });
  const startMs = performance.now();
  await page.goto(`${loaded.at}/status`);
  await page.getByRole('link', { name: 'zero-0', exact: true }).first().waitFor();
  const filledMs = performance.now() - startMs;
  const paintMs = await page.evaluate<number>(
    "performance.getEntriesByName('first-contentful-paint')[0].startTime",
  );
  await pause(2000);
  bytes = 0;
  const framesPerS = await frames(page, 'undefined');
  return {
    firstPaintMs: Math.round(paintMs),
    filledMs: Math.round(filledMs),
    liveKBPerS: round(bytes / COUNTED_MS),
    overviewFramesPerS: framesPerS,
  };
}

async function stream(page: Page): Promise<Result> {
  await page.goto(`${loaded.at}/tasks`);
  await page.getByText('actions in this window').waitFor();
  const startMs = performance.now();
  await page.getByRole('button', { name: 'All' }).click();
  await page.waitForFunction(
    `Number(/([\\d,]+) actions/.exec(document.body.innerText)[1].replace(/,/g, '')) >= ${tasks / 2}`,
  );
  const windowMs = performance.now() - startMs;
  const zoom = `document.querySelector('canvas').dispatchEvent(new WheelEvent('wheel', {
    deltaY: Math.sin(now / 300), clientX: 700, clientY: 300, cancelable: true }))`;
  return { windowMs: Math.round(windowMs), zoomFramesPerS: await frames(page, zoom) };
}

/** Frames each second while something is done in each of them. */
async function frames(page: Page, action: string): Promise<number> {
  const count = await page.evaluate<number>(`new Promise((resolve) => {
    let count = 0;
    const startMs = performance.now();
    const turn = (now) => {
      ${action};
      count++;
      if (performance.now() - startMs < ${COUNTED_MS}) requestAnimationFrame(turn);
      else resolve(count);
    };
    requestAnimationFrame(turn);
  })`);
  return round((1000 * count) / COUNTED_MS);
}

/** Of the tab: its heap, and the private memory of its process. */
async function memory(browser: Browser, page: Page): Promise<Result> {
  const heap = await page.evaluate<number>('performance.memory.usedJSHeapSize');
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const privates = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => {
      const text = readFileSync(`/proc/${id}/smaps_rollup`, 'utf8');
      const kB = [...text.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].map(([, amount]) =>
        Number(amount),
      );
      return kB.reduce((sum, amount) => sum + amount, 0) / 1000;
    });
  return { heapMB: round(heap / 1e6), tabMB: round(Math.max(...privates)) };
}
