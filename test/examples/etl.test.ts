import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { exampleProject } from './example-project.ts';

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

function args(store: string): string[] {
  return ['main.js', '--rows', String(ROWS), '--store', store];
}

/** Path and inode of each result that is kept: a result that is written again has another inode. */
function kept(store: string): Map<string, number> {
  const path = join(folder, store);
  if (!existsSync(path)) return new Map();
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return new Map(
    names.flatMap((name) => {
      const stats = statSync(join(path, name), { throwIfNoEntry: false });
      return stats?.isFile() === true ? [[name, stats.ino]] : [];
    }),
  );
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
  const first = spawn(process.execPath, args('results'), { ...inFolder(), detached: true });
  await vi.waitFor(() => expect(kept('results').size).toBeGreaterThan(8), { timeout: 30_000 });
  await killAll(first);
  const before = kept('results');
  const { stdout } = await run(process.execPath, args('results'), inFolder());
  expect(stdout).toBe(await expected());
  const after = kept('results');
  expect(after.size).toBeGreaterThan(before.size);
  for (const [name, inode] of before) {
    if (!name.includes('.tmp')) expect([name, after.get(name)]).toEqual([name, inode]);
  }
}, 60_000);
