/** `node main.js [--parts 8] [--rows 20000]`: orders in CSV, to totals of each region in Parquet, without outliers. */
import { stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { all, LocalCluster } from 'yardmaster';
import { toColumns } from './duckdb.js';
import { generate } from './generate.js';
import { tasks } from './tasks.js';

const options = parseArgs({
  options: {
    data: { type: 'string', default: 'data' },
    parts: { type: 'string', default: '8' },
    rows: { type: 'string', default: '20000' },
    store: { type: 'string', default: 'results' },
    out: { type: 'string', default: 'regions.parquet' },
    mode: { type: 'string', default: 'processes' },
    workers: { type: 'string', default: '2' },
    memory: { type: 'string', default: '512' },
  },
}).values;
const { orders, customers } = await generate(resolve(options.data), {
  parts: Number(options.parts),
  rows: Number(options.rows),
});
const changedMs = async (path) => (await stat(path)).mtimeMs;

const cluster = await LocalCluster.start({
  mode: options.mode,
  workers: Number(options.workers),
  memoryLimitBytes: Number(options.memory) * 1e6,
});
try {
  const client = await cluster.client({ resultStore: resolve(options.store) });
  const kept = client.with({ persist: true });

  const parsed = kept.map(tasks.parse, orders, await Promise.all(orders.map(changedMs)));
  const histogram = kept.reduce(tasks.add, kept.map(tasks.histogram, parsed));
  const place = kept.submit(tasks.findBin, histogram, 0.99);
  const amounts = kept.reduce(tasks.concat, kept.map(tasks.amountsIn, parsed, all(place)));
  const amountMax = kept.submit(tasks.amountAt, amounts, place);
  const totals = kept.reduce(tasks.combine, kept.map(tasks.totals, parsed, all(amountMax)));
  const regions = kept.submit(tasks.byRegion, totals, customers, await changedMs(customers));

  await writeFile(options.out, await regions.result());
  const columns = await toColumns(`select region, total::varchar, orders from '${options.out}'`);
  for (const [index, region] of columns[0].entries())
    process.stdout.write(`${region}: ${columns[1][index]} in ${columns[2][index]} orders\n`);
  process.stdout.write(`99 % of the amounts are at most ${await amountMax.result()}\n`);
} finally {
  await cluster.close();
}
