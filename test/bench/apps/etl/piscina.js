/** piscina, with files between the steps: `node piscina.js ORDERS CUSTOMERS OUT`, where ORDERS is a pattern. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import process from 'node:process';
import { URL } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { Piscina } from 'piscina';

const [pattern, customers, out] = process.argv.slice(2);
const [prefix, suffix] = basename(pattern).split('*');
const names = await readdir(dirname(pattern));
const orders = names
  .filter((name) => name.startsWith(prefix) && name.endsWith(suffix))
  .map((name) => join(dirname(pattern), name));

const filename = new URL('piscina-worker.js', import.meta.url).href;
const pool = new Piscina({ filename, minThreads: 2, maxThreads: 2 });
const folder = await mkdtemp(join(tmpdir(), 'etl-piscina-'));
let files = 0;
const newFile = () => join(folder, `${files++}.parquet`);
const run = async (name, paths, options) => {
  const path = newFile();
  await pool.run({ paths, path, ...options }, { name });
  return path;
};
const each = (paths, name, options) =>
  Promise.all(paths.map((path) => pool.run({ path, ...options }, { name })));

try {
  const parsed = await Promise.all(orders.map((path) => run('parse', [path])));
  const histograms = await each(parsed, 'histogram');
  const histogram = histograms[0].map((_, bin) =>
    histograms.reduce((n, counts) => n + counts[bin], 0),
  );
  let rank = Math.ceil(0.99 * histogram.reduce((total, count) => total + count, 0));
  const bin = histogram.findIndex((count) => (rank -= count) <= 0);
  rank += histogram[bin];
  const amounts = (await each(parsed, 'amountsIn', { bin })).flatMap((part) => [...part]);
  const amountMax = amounts.sort((a, b) => a - b)[rank - 1];
  let totals = await Promise.all(parsed.map((path) => run('totals', [path], { amountMax })));
  while (totals.length > 1) {
    const groups = [];
    for (let at = 0; at < totals.length; at += 8) groups.push(totals.slice(at, at + 8));
    totals = await Promise.all(groups.map((group) => run('combine', group)));
  }
  await pool.run({ paths: totals, path: out, customers }, { name: 'byRegion' });
} finally {
  await pool.destroy();
  await rm(folder, { recursive: true });
}
const connection = await (await DuckDBInstance.create()).connect();
const result = await connection.runAndReadAll(
  `select region, total::varchar, orders from '${out}'`,
);
for (const row of result.getRows())
  process.stdout.write(`${row[0]}: ${row[1]} in ${row[2]} orders\n`);
