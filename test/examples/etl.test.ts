import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleProject } from './example-project.ts';
import { eventually } from '../kit/eventually.ts';

const run = promisify(execFile);
const ROWS = 3000;

let folder: string;
beforeAll(() => {
  folder = exampleProject('etl', ['@duckdb/node-api']);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** What killed processes leave behind is removed with the folder. */
function inFolder(): { cwd: string; env: NodeJS.ProcessEnv } {
  return { cwd: folder, env: { ...process.env, TMPDIR: folder } };
}

const ARGS = ['main.js', '8', String(ROWS)];

/**
 * The results that are kept, as often as they were written: a small one is a record of a pack, which begins with a
 * mark and has its key there; a large one is a file, which has another inode when it is written again.
 */
function kept(store: string): string[] {
  const path = join(folder, store);
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names.flatMap((name) => {
    const file = join(path, name);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats?.isFile() !== true || name.endsWith('.part')) return [];
    if (!name.endsWith('.pack')) return [`${name} ${stats.ino}`];
    const [, ...records] = readFileSync(file, 'latin1').split('YMP1LIVE');
    return records.map((record) => Buffer.from(record.slice(0, 32), 'latin1').toString('hex'));
  });
}

/** The same by one query. */
async function expected(): Promise<string> {
  const connection = await (await DuckDBInstance.create()).connect();
  const data = join(folder, 'data');
  const result = await connection.runAndReadAll(`
    with parsed as (
      select customer::int as customer, try_cast(amount as decimal(12, 2)) as amount
      from read_csv('${data}/orders-*.csv', all_varchar = true)),
    percentile as (select quantile_disc(amount::double, 0.99) as most from parsed)
    select region || ': ' || sum(amount)::decimal(18, 2) || ' in ' || count(*) || ' orders', any_value(most)
    from parsed, percentile, read_csv('${data}/customers.csv') as customers
    where amount <= most and parsed.customer = customers.customer
    group by region order by region`);
  const [lines, [most]] = result.getColumnsJS() as [string[], [number]];
  connection.closeSync();
  return [...lines, `99 % of the amounts are at most ${most}`, ''].join('\n');
}

async function killAll(group: ChildProcess): Promise<void> {
  const ended = once(group, 'exit');
  process.kill(-(group.pid ?? Number.NaN), 'SIGKILL');
  await ended;
}

test('killed at half time with all its processes, the ETL continues, and finds what one query of DuckDB finds', async () => {
  const first = spawn(process.execPath, ARGS, { ...inFolder(), detached: true });
  await eventually(() => expect(kept('results').length).toBeGreaterThan(8));
  await killAll(first);
  const before = kept('results');
  const { stdout } = await run(process.execPath, ARGS, inFolder());
  expect(stdout).toBe(await expected());
  const after = kept('results');
  expect(after.length).toBeGreaterThan(before.length);
  for (const result of before) expect(after.filter((other) => other === result)).toHaveLength(1);
});
