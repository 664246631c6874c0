/** `node main.js [--pages 40] [--port 8123] [--store results] [--mode threads]`: crawls a site, and says which page is nearest to a question. */
import { resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { LocalCluster } from 'yardmaster';
import { startSite } from './site.js';
import { tasks } from './tasks.js';

const {
  pages: pageCount,
  port,
  store,
  mode,
} = parseArgs({
  options: {
    pages: { type: 'string', default: '40' },
    port: { type: 'string', default: '8123' },
    store: { type: 'string', default: 'results' },
    mode: { type: 'string', default: 'threads' },
  },
}).values;
const site = await startSite({ pageCount: Number(pageCount), port: Number(port) });
const cluster = await LocalCluster.start({ mode });
try {
  const client = await cluster.client();
  const day = new Date().toISOString().slice(0, 10);
  const options = { day, depthMax: 20, resultStore: resolve(store) };
  const pages = await client.submit(tasks.crawl, site.url, options).result();
  const question = tasks.embed({ text: 'When do signals switch freight trains?' });
  const nearness = ({ vector }) =>
    vector.reduce((sum, value, at) => sum + value * question.vector[at], 0);
  const [best] = pages.sort((a, b) => nearness(b) - nearness(a));
  process.stdout.write(`${pages.length} pages, nearest: ${best.title}\n`);
  const { requests, served, mostAtOnce } = site.figures;
  process.stdout.write(`${requests} requests, ${served} served, ${mostAtOnce} at once\n`);
} finally {
  await cluster.close();
  await site.close();
}
