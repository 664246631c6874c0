import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { type ScheduledRun, scheduleOf } from '../../../adapters/report/index.ts';
import { loadWorkload } from '../../../adapters/simulator/index.ts';
import { historyOf } from './synthetic.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-schedule-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const WORKLOAD = 'shuffle:6@100ms,20MB';

/** Simulates on four workers with two threads each. */
async function simulated(file: string): Promise<string> {
  const output = join(folder, file);
  const cluster = ['--workers', '4', '--threads', '2', '--spread', '0.2', '--seed', '7'];
  const command = [createRequire(import.meta.url).resolve('#cli'), 'simulate', WORKLOAD];
  await promisify(execFile)(process.execPath, [...command, ...cluster, '--output', output]);
  return readFileSync(output, 'utf8');
}

it('runs that overlap are in different rows, and failed ones without computing are there', () => {
  const timings = [{ action: 'deserialize', startS: 3, stopS: 3.5 }];
  const schedule = scheduleOf(
    historyOf([
      { key: 'c-0', startS: 2, stopS: 3, transferS: 0.5 },
      { key: 'b-0', startS: 1, stopS: 2.5 },
      { key: 'a-0', startS: 0, stopS: 2 },
      { key: 'd-0', startS: 3, stopS: 3.5, timings, isError: true },
    ]),
  );
  expect(schedule.map(({ key, thread, startS, endS }) => [key, thread, startS, endS])).toEqual([
    ['a-0', 1, 0, 2],
    ['b-0', 2, 1, 2.5],
    ['c-0', 1, 2, 3],
    ['d-0', 1, 3, 3.5],
  ]);
  expect(schedule[2]).toMatchObject({ prefix: 'c', worker: 'w0', transferS: 0.5, isError: false });
});

it('the schedule of a simulation has every task after what it needs, and repeats with its seed', async () => {
  const text = await simulated('schedule.json');
  const { schedule, ...about } = JSON.parse(text) as { schedule: ScheduledRun[] };
  expect(about).toMatchObject({ seed: 7, workload: WORKLOAD, options: { workers: 4 } });
  expect(about).toHaveProperty('version');
  const byKey = new Map(schedule.map((run) => [run.key, run]));
  const { tasks } = await loadWorkload(WORKLOAD);
  expect(schedule).toHaveLength(tasks.length);
  for (const { key, dependencies } of tasks) {
    const { startS, endS, transferS, movedBytes } = byKey.get(key)!;
    expect(startS).toBeLessThan(endS);
    if (transferS > 0) expect(movedBytes).toBeGreaterThan(0);
    for (const need of dependencies) {
      expect(byKey.get(need)!.endS).toBeLessThanOrEqual(startS);
    }
  }
  expect(schedule.some(({ transferS }) => transferS > 0)).toBe(true);
  expect(new Set(schedule.map(({ worker, thread }) => `${worker} ${thread}`)).size).toBe(8);
  expect(await simulated('again.json')).toBe(text);
});

it('the page of a simulation is a report that repeats with its seed', async () => {
  const page = await simulated('schedule.html');
  expect(page).toContain(`<h1>${WORKLOAD}, seed 7</h1>`);
  expect(page).toContain('report of a simulation');
  expect(page).toContain('fetching inputs');
  expect(await simulated('again.html')).toBe(page);
});
