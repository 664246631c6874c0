/** The demo with a scheduler that is killed and continues from its journal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { killPlan } from '../../../adapters/cli/demo-run.ts';
import { Runs } from '../../kit/runs.ts';

const runs = new Runs();
const folder = mkdtempSync(join(tmpdir(), 'yardmaster-demo-chaos-'));
afterAll(async () => {
  await runs.end();
  rmSync(folder, { recursive: true });
});

function makePages(count: number): string {
  const pages = mkdtempSync(join(folder, 'pages-'));
  const text = Array.from({ length: 300 }, (_, at) => `term${(at * 7) % 89}`).join(' ');
  for (let index = 0; index < count; index++) {
    writeFileSync(join(pages, `p${index}.txt`), `${text} anchor${index % 5}`);
  }
  return pages;
}

describe('the demo whose scheduler is killed', () => {
  test('comes to the right result, and each of its recordings replays identically', async () => {
    const record = join(folder, 'run.ylog');
    const kills = ['--chaos-scheduler', '3', '--chaos', '1', '--seed', '7'];
    const pages = ['--path', makePages(400)];
    const run = runs.yardmaster('demo', ...pages, ...kills, '--record', record);
    expect([await run.exit, run.stderr]).toEqual([0, expect.any(String)]);
    const lines = run.stdout.split('\n');
    const killed = lines.filter((line) => /^Kill {7}the scheduler, process \d+, after/.test(line));
    expect(killed).toHaveLength(3);
    expect(
      lines.filter((line) => /^Kill {7}worker-\d, process \d+, after/.test(line)),
    ).toHaveLength(1);
    expect(run.stdout).toContain(
      'Chaos      3 kills of the scheduler, 1 of workers: nothing was lost',
    );
    expect(run.stdout).toMatch(/\nCheck {6}passed: .*\nTime {7}\d worker/);
    for (const name of ['run.ylog', 'run-2.ylog', 'run-3.ylog', 'run-4.ylog']) {
      const replay = await runs.command('replay', join(folder, name));
      expect([name, replay.code, replay.out]).toEqual([
        ...[name, 0],
        expect.stringMatching(/^identical: /m),
      ]);
    }
  });

  test('leaves no process behind when it is interrupted', async () => {
    const kills = ['--chaos-scheduler', '3', '--seed', '7'];
    const pages = ['--path', 'node_modules'];
    const run = runs.yardmaster('demo', ...pages, ...kills);
    while (!run.stdout.includes('Graph')) await run.output();
    const pids = [...run.stdout.matchAll(/process(?:es)? ([\d, ]+)/g)].flatMap(([, list]) =>
      list!.split(', ').filter(Boolean).map(Number),
    );
    expect(pids).toHaveLength(3);
    run.child.kill('SIGINT');
    expect(await run.exit).toBe(130);
    expect(run.stdout).not.toContain('Check');
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  test('refuses a report, which needs a scheduler that lives to the end', async () => {
    const run = runs.yardmaster('demo', '--chaos-scheduler', '--report', 'report.html');
    expect(await run.exit).toBe(1);
    expect(run.stderr).toContain('ERR_CONFIG: --report needs a scheduler that lives to the end');
  });

  test('kills at moments that follow from the seed', () => {
    const options = { taskCount: 100, schedulerKills: 20, workerKills: 5, workers: 2 };
    const plan = killPlan({ ...options, seed: 7 });
    expect(killPlan({ ...options, seed: 7 })).toEqual(plan);
    expect(killPlan({ ...options, seed: 8 })).not.toEqual(plan);
    expect(plan.filter(({ worker }) => worker === undefined)).toHaveLength(20);
    const moments = plan.map(({ after }) => after);
    expect(moments).toEqual(moments.toSorted((a, b) => a - b));
  });
});
