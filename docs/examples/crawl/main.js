/** `node main.js [PAGES] [MODE] [PORT]`: crawls a site, and says which page is nearest to a question. */
import { resolve } from 'node:path';
import process from 'node:process';
import { LocalCluster } from 'yardmaster';
import { startSite } from './site.js';
import { tasks } from './tasks.js';

const [pageCount = '40', mode = 'threads', port = '8123'] = process.argv.slice(2);
const site = await startSite({ pageCount: Number(pageCount), port: Number(port) });
const cluster = await LocalCluster.start({ mode });
const client = await cluster.client();
const day = new Date().toISOString().slice(0, 10);
const options = { day, depthMax: 20, resultStore: resolve('results') };
const pages = await client.submit(tasks.crawl, site.url, options).result();
const question = tasks.embed({ text: 'When do signals switch freight trains?' });
const nearness = ({ vector }) =>
  vector.reduce((sum, value, at) => sum + value * question.vector[at], 0);
const [best] = pages.sort((a, b) => nearness(b) - nearness(a));
process.stdout.write(`${pages.length} pages, nearest: ${best.title}\n${site.summary}\n`);
await cluster.close();
await site.close();
