/** What the guides to logs, journals and recordings show runs, and prints what they say. */
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { Runs } from '../../kit/runs.ts';

const ROOT = new URL('../../..', import.meta.url).pathname;
const run = promisify(execFile);
const root = mkdtempSync(join(tmpdir(), 'yardmaster-log-guides-'));
const runs = new Runs();
afterAll(async () => {
  await runs.end('SIGKILL');
  rmSync(root, { recursive: true });
});

const TASKS = `import { defineTasks } from 'yardmaster';
export const { square, work } = defineTasks(import.meta.url, { square: (x) => x * x, work: (x) => x + 1 });
`;
const POLICY = `import { definePolicy } from 'yardmaster/policy';
export const lastFirst = definePolicy('ordering', {
  name: 'last-first', apiVersion: 1,
  create: () => ({ order: (tasks) => tasks.map((_, index) => tasks.length - index) }),
});
`;

/** A folder with the package and the named code of a guide, or of one of its chapters. */
function folderOf(
  guide: string,
  chapter?: string,
  more: Readonly<Record<string, string>> = {},
): string {
  const folder = mkdtempSync(join(root, `${guide}-`));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules', 'yardmaster'));
  const all = readFileSync(join(ROOT, 'docs', guide), 'utf8');
  const text =
    chapter === undefined
      ? all
      : all.split(/^## /m).find((part) => part.startsWith(`${chapter}\n`))!;
  const files = { 'package.json': '{ "type": "module" }', 'tasks.js': TASKS, ...more };
  for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), code);
  for (const [, code = '', name = ''] of text.matchAll(
    /^```(?:js|yaml)\n((?:\/\/|#) ([\w-]+\.\w+)\n.*?)^```$/gms,
  )) {
    writeFileSync(join(folder, name), code);
  }
  return folder;
}

describe('the guide to', () => {
  test('slow jobs: the report says what the guide says, and no longer once the cause is gone', async () => {
    const cwd = folderOf('slow.md', 'One job, from slow to fast');
    const reportFor = async (parts: number): Promise<string> => {
      await run(process.execPath, ['job.js', String(parts)], { cwd });
      return (await runs.command('report', join(cwd, `job-${parts}.ylog`))).out;
    };
    const [, title = ''] = /^1\. (.*?) \(/m.exec(readFileSync(join(ROOT, 'docs/slow.md'), 'utf8'))!;
    /** Seconds that the finding explains; 0: it is not there. On a busy machine that it is busy may cost more. */
    const costIn = (report: string): number => {
      const costs = [...report.matchAll(/^\d+\. (.*?) \(([\d.]+) (m?s),/gm)];
      const [, , amount, unit] = costs.find(([, found]) => found === title) ?? [];
      return Number(amount ?? 0) / (unit === 'ms' ? 1000 : 1);
    };
    const slow = await reportFor(1);
    expect(slow).toContain('Make readIndex faster, or split it');
    expect(costIn(slow)).toBeGreaterThan(1);
    expect(costIn(await reportFor(4))).toBeLessThan(costIn(slow) / 2);
  });

  test('recordings: a recording is replayed by the command and in code, with a policy given as an object', async () => {
    const cwd = folderOf('insight.md', 'Recording and replay', { 'policy.js': POLICY });
    expect((await run(process.execPath, ['record.js'], { cwd })).stdout).toBe('[ 1, 4, 9 ]\n');
    expect((await run(process.execPath, ['replay.js'], { cwd })).stdout).toBe('identical true\n');
  });

  test('recordings: a client records a scheduler that runs, into the folder of its operator', async () => {
    const cwd = folderOf('insight.md', 'Recording and replay');
    const recordings = join(cwd, 'recordings');
    const flags = ['--recordings', recordings, '--no-dashboard', '--log-level', 'error'];
    const scheduler = runs.yardmaster('scheduler', '--port', '0', ...flags);
    const address = await scheduler.firstLine();
    const { stdout } = await run(process.execPath, ['record-slow-hour.js', address], { cwd });
    expect(stdout).toBe(`${join(recordings, 'slow-hour.ylog')}\n`);
    const replay = await runs.command('replay', stdout.trimEnd());
    expect(replay.code).toBe(0);
    expect(replay.out).toContain('identical');
    await scheduler.end('SIGTERM');
  });

  test('journals: what is committed survives a scheduler that is killed', async () => {
    const cwd = folderOf('persistence.md', 'A scheduler that continues after its end');
    const flags = ['--journal', join(cwd, 'journal'), '--no-dashboard', '--log-level', 'error'];
    const first = runs.yardmaster('scheduler', '--port', '0', ...flags);
    const address = await first.firstLine();
    const program = runs.start(process.execPath, [join(cwd, 'submit.js'), address]);
    expect(await program.firstLine()).toBe('committed');
    await first.end('SIGKILL');
    const second = runs.yardmaster('scheduler', '--port', new URL(address).port, ...flags);
    await second.firstLine();
    runs.yardmaster(
      'worker',
      address,
      '--no-nanny',
      '--config',
      join(cwd, 'worker.yaml'),
      '--allow-modules',
      cwd,
    );
    expect([await program.exit, program.stdout]).toEqual([0, 'committed\n43\n']);
    await second.end();
  });

  test('the bytes of a log: thirty lines without the package read a recording and a journal', async () => {
    const cwd = folderOf('log.md');
    const [record, journal] = [join(cwd, 'run.ylog'), join(cwd, 'journal')];
    const written = ['--record', record, '--journal', journal];
    const scheduler = runs.yardmaster('scheduler', '--port', '0', '--no-dashboard', ...written);
    await scheduler.firstLine();
    await scheduler.end('SIGTERM');
    const segment = join(
      journal,
      readdirSync(journal).find((name) => name.endsWith('.ylog'))!,
    );
    for (const file of [record, segment]) {
      const { stdout } = await run(process.execPath, [join(cwd, 'frames.mjs'), file]);
      const exported = await runs.command('log', 'export', file);
      expect(exported.code).toBe(0);
      const frames = exported.out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly sequence: number; readonly kind: string });
      expect(frames.length).toBeGreaterThan(2);
      expect(stdout.trimEnd().split('\n')).toEqual(
        frames.map(({ sequence, kind }) => `${sequence} ${kind}`),
      );
    }
  });
});
