/** `node main.js [PARTS] [ROWS] [MODE] [DATA]`: orders in CSV, to totals of each region in Parquet, without outliers. */
import { stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import process from 'node:process';
import { all, LocalCluster } from 'yardmaster';
import { toColumns } from './duckdb.js';
import { generate } from './generate.js';
import { tasks } from './tasks.js';

const [parts = '8', rows = '20000', mode = 'processes', data = 'data'] = process.argv.slice(2);
const { orders, customers } = await generate(resolve(data), Number(parts), Number(rows));
const changedMs = async (path) => (await stat(path)).mtimeMs;

const cluster = await LocalCluster.start({ mode, workers: 2, memoryLimitBytes: 512e6 });
try {
  const client = await cluster.client({ resultStore: resolve('results') });
  const kept = client.with({ persist: true });

  const parsed = kept.map(tasks.parse, orders, await Promise.all(orders.map(changedMs)));
  const histogram = kept.reduce(tasks.add, kept.map(tasks.histogram, parsed));
  const place = kept.submit(tasks.findBin, histogram, 0.99);
  const amounts = kept.reduce(tasks.concat, kept.map(tasks.amountsIn, parsed, all(place)));
  const amountMax = kept.submit(tasks.amountAt, amounts, place);
  const totals = kept.reduce(tasks.combine, kept.map(tasks.totals, parsed, all(amountMax)));
  const regions = kept.submit(tasks.byRegion, totals, customers, await changedMs(customers));

  await writeFile('regions.parquet', await regions.result());
  const columns = await toColumns("select region, total::varchar, orders from 'regions.parquet'");
  for (const [index, region] of columns[0].entries())
    process.stdout.write(`${region}: ${columns[1][index]} in ${columns[2][index]} orders\n`);
  process.stdout.write(`99 % of the amounts are at most ${await amountMax.result()}\n`);
} finally {
  await cluster.close();
}
