/** p-queue for the network and piscina for what computes: `node p-queue.js PAGES`. It does not resume. */
/* global fetch, AbortSignal */
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { URL } from 'node:url';
import PQueue from 'p-queue';
import { Piscina } from 'piscina';
import { startSite } from '../../../../docs/examples/crawl/site.js';
import { embed } from './p-queue-worker.js';

const PER_HOST = 4;
const DEPTH_MAX = 20;
const TRIES = 4;

const site = await startSite({ pageCount: Number(process.argv[2]), port: 0 });
const queues = new Map();
const filename = new URL('p-queue-worker.js', import.meta.url).href;
const pool = new Piscina({ filename, minThreads: 2, maxThreads: 2 });

function queueOf(host) {
  let queue = queues.get(host);
  if (queue === undefined) queues.set(host, (queue = new PQueue({ concurrency: PER_HOST })));
  return queue;
}

async function fetchPage(url) {
  for (let attempt = 1; ; attempt++) {
    const response = await queueOf(new URL(url).host).add(() =>
      fetch(url, { signal: AbortSignal.timeout(30_000) }),
    );
    if (response.ok) return { url, html: await response.text() };
    await response.body?.cancel();
    const isWorthRetry = response.status === 429 || response.status >= 500;
    if (!isWorthRetry || attempt === TRIES) throw new Error(`${url} answered ${response.status}`);
    await sleep(50 * 2 ** (attempt - 1) * (1 - Math.random() / 2));
  }
}

async function read(url) {
  const text = await pool.run(await fetchPage(url), { name: 'extract' });
  return { text, vector: pool.run(text, { name: 'embed' }) };
}

const seen = new Set([site.url]);
const embedded = [];
let frontier = [site.url];
for (let depth = 0; depth <= DEPTH_MAX && frontier.length > 0; depth++) {
  const pages = await Promise.allSettled(frontier.map(read));
  const found = pages.flatMap(({ status, value }) => (status === 'fulfilled' ? [value] : []));
  embedded.push(...found.map(({ vector }) => vector));
  frontier = [...new Set(found.flatMap(({ text }) => text.links))].filter((url) => !seen.has(url));
  for (const url of frontier) seen.add(url);
}
const pages = await Promise.all(embedded);
const question = embed({ text: 'When do signals switch freight trains?' });
const nearness = ({ vector }) =>
  vector.reduce((sum, value, at) => sum + value * question.vector[at], 0);
const [best] = pages.sort((a, b) => nearness(b) - nearness(a));
process.stdout.write(`${pages.length} pages, nearest: ${best.title}\n`);
await pool.destroy();
await site.close();
