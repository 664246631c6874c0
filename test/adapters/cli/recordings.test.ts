/** Recording a scheduler process, and what reads its recording. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VERSION } from '../../../core/api/index.ts';
import { Client, task } from '../../../adapters/client/index.ts';
import { type Ended, Runs } from '../../kit/runs.ts';
import { square } from './fixtures/tasks.js';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-recordings-'));
const record = join(folder, 'run.ylog');
const runs = new Runs();

beforeAll(async () => {
  const scheduler = runs.yardmaster('scheduler', '--port', '0', '--record', record);
  const address = await scheduler.firstLine();
  const worker = runs.yardmaster('worker', address, '-t', '1', '-n', 'ann', '--no-nanny');
  await worker.firstLine();
  const client = await Client.connect(address);
  expect(await client.gather(client.map(square, [1, 2, 3]))).toEqual([1, 4, 9]);
  await client.close();
  await runs.end('SIGTERM');
});

afterAll(async () => {
  await runs.end('SIGKILL');
  rmSync(folder, { recursive: true });
});

const cli = (...args: string[]): Promise<Ended> => runs.command(...args);

test('a recording of a scheduler process is replayed identically by another process', async () => {
  const { code, out } = await cli('replay', record);
  expect(out).toMatch(/^identical: \d+ stimuli, \d+ checks, 1 of the whole state$/m);
  expect(code).toBe(0);
});

test('a recording has a schedule of what ran where, and when', async () => {
  const output = join(folder, 'schedule.json');
  expect((await cli('report', record, '-o', output)).code).toBe(0);
  const { version, schedule } = JSON.parse(readFileSync(output, 'utf8')) as {
    version: string;
    schedule: { worker: string; prefix: string; thread: number }[];
  };
  expect(version).toBe(VERSION);
  expect(schedule.map(({ worker, prefix, thread }) => [worker, prefix, thread])).toEqual([
    ['ann', 'square', 1],
    ['ann', 'square', 1],
    ['ann', 'square', 1],
  ]);
});

test('a replay says why a task was where it was', async () => {
  const { out: lines } = await cli('log', 'export', record);
  const frames = lines
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Frame);
  const finished = frames.find(({ payload }) => payload.op === 'task-finished')!;
  const key = finished.payload.key!;
  const { out, code } = await cli(
    'replay',
    record,
    '--until',
    String(finished.sequence - 1),
    '--why',
    key,
  );
  expect(code).toBe(0);
  expect(out).toContain(`${key} is processing`);
  expect(out).toMatch(/placement by family: tls:/);
});

test('a replay by steps shows what each stimulus caused, and goes where it is asked to', async () => {
  const { out: lines } = await cli('log', 'export', record);
  const frames = lines
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Frame);
  const [first, second] = frames.filter(({ payload }) => payload.op === 'task-finished');
  const program = createRequire(import.meta.url).resolve('#cli');
  const out = execFileSync(
    process.execPath,
    [program, 'replay', record, '--step', '--until', String(first!.sequence)],
    { encoding: 'utf8', input: `why ${second!.payload.key}\n1\n${second!.sequence}\nquit\n` },
  );
  expect(out).toMatch(new RegExp(`^${first!.sequence}  [\\d.]+ s  task-finished of `, 'm'));
  expect(out).toContain(`    ${first!.payload.key}: processing -> memory\n`);
  expect(out).toContain('> frame 1 is over; start again with --step --until 1\n');
  expect(out).toContain(`    ${second!.payload.key}: processing -> memory\n`);
  expect(out).toMatch(/^identical: /m);
});

interface Frame {
  readonly sequence: number;
  readonly payload: { readonly op?: string; readonly key?: string };
}

test('a replay by steps is asked for the story of a task on the way, and not beforehand', async () => {
  const { code, err } = await cli('replay', record, '--step', '--why', 'square');
  expect([code, err]).toEqual([1, expect.stringContaining("'--step' cannot be used with")]);
});

test.each(['report', 'log export', 'simulate'])(
  'a recording is not replaced by what `yardmaster %s` makes of it',
  async (command) => {
    const before = readFileSync(record);
    const { code, err } = await cli(...command.split(' '), record, '-o', record);
    expect([code, err]).toEqual([1, expect.stringContaining('name another one')]);
    expect(readFileSync(record)).toEqual(before);
  },
);

test('inspect shows what it holds', async () => {
  const { out, code } = await cli('log', 'inspect', record);
  expect(code).toBe(0);
  expect(out).toMatch(/^ends {7}in good order$/m);
  expect(out).toMatch(/^task-finished +3$/m);
});

test('verify says that all is readable', async () => {
  const { out, code } = await cli('log', 'verify', record);
  expect([out, code]).toEqual([
    expect.stringMatching(/^\d+ frames, all readable; the recording is closed\n$/),
    0,
  ]);
});

test('an export for trace viewers has a rectangle for each task', async () => {
  const output = join(folder, 'trace.json');
  const { code } = await cli('log', 'export', record, '--format', 'chrome-trace', '-o', output);
  expect(code).toBe(0);
  const trace = JSON.parse(readFileSync(output, 'utf8')) as {
    traceEvents: { ph: string; cat?: string; dur?: number; pid: number; tid: number }[];
  };
  const computed = trace.traceEvents.filter(({ cat }) => cat === 'compute');
  expect(computed).toHaveLength(3);
  expect(new Set(computed.map(({ pid, tid }) => `${pid}.${tid}`)).size).toBe(1);
  expect(trace.traceEvents.filter(({ ph }) => ph === 'M')).toHaveLength(1);
});

describe('a recording that is damaged', () => {
  const damaged = join(folder, 'damaged.ylog');

  beforeAll(() => {
    const bytes = readFileSync(record);
    bytes[bytes.length - 30]! ^= 0x40;
    writeFileSync(damaged, bytes);
  });

  test.each(['log verify', 'log inspect', 'replay'])(
    'makes `yardmaster %s` name file and byte',
    async (command) => {
      const { out, code } = await cli(...command.split(' '), damaged);
      expect(out).toMatch(/the log .*damaged\.ylog .* at byte \d+ \(frame \d+\)/);
      expect(code).toBe(1);
    },
  );
});

test('a file that is no recording is refused', async () => {
  const other = join(folder, 'other.txt');
  writeFileSync(other, 'something else entirely');
  const { err, code } = await cli('replay', other);
  expect(err).toContain(`the log ${other} is no log of Yardmaster`);
  expect(code).toBe(1);
});

test('a file that is not there is refused', async () => {
  const { err, code } = await cli('log', 'inspect', join(folder, 'nowhere.ylog'));
  expect(err).toContain('nowhere.ylog cannot be read: ENOENT');
  expect(code).toBe(1);
});

describe('a recording with a damaged frame', () => {
  const damaged = join(folder, 'damaged.ylog');

  beforeAll(() => {
    const bytes = readFileSync(record);
    // A frame of a stimulus: what a log holds before its first state would be of no use.
    bytes[Math.floor((3 * bytes.length) / 4)]! ^= 1;
    writeFileSync(damaged, bytes);
  });

  test('has a report that says so, and exit code 1', async () => {
    const { code, out } = await cli('report', damaged);
    expect(out).toMatch(/wrong checksum, at byte \d+ .*what comes before it is in this report/);
    expect(code).toBe(1);
  });

  test('leaves the file alone that its export was to replace', async () => {
    const output = join(folder, 'precious.ndjson');
    writeFileSync(output, 'precious');
    const { code } = await cli('log', 'export', damaged, '-o', output);
    expect(code).not.toBe(0);
    expect(readFileSync(output, 'utf8')).toBe('precious');
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
  });
});

test('a replay until a frame that is not there ends with exit code 1', async () => {
  const { code, out } = await cli('replay', record, '--until', '99999999');
  expect(out).toContain('there is no frame 99999999');
  expect(code).toBe(1);
});

test('a recording does not replace a file, and says what to do', async () => {
  const { code, err } = await cli('scheduler', '--port', '0', '--record', record);
  expect(err).toContain('choose another name, or remove what is there');
  expect(code).not.toBe(0);
});

describe('a recording of another one', () => {
  const hostile = join(folder, 'hostile.ylog');
  const marker = join(folder, 'the-policy-was-loaded');
  const ESCAPE = '\u001B]0;title\u0007\u009B31mred\u202E';
  const KEY = `key${ESCAPE}\nforged line`;

  beforeAll(async () => {
    writeFileSync(
      join(folder, 'policy.mjs'),
      `import { writeFileSync } from 'node:fs';
       writeFileSync(${JSON.stringify(marker)}, '');
       export default { name: 'planted', order: (tasks) => tasks.map((_, index) => index) };`,
    );
    const policies = { ordering: { use: './policy.mjs' } };
    const config = join(folder, 'config.json');
    writeFileSync(config, JSON.stringify({ scheduler: { policies } }));
    const flags = ['--port', '0', '--record', hostile, '--config', config];
    const address = await runs.yardmaster('scheduler', ...flags).firstLine();
    await runs.yardmaster('worker', address, '-t', '1', '--no-nanny').firstLine();
    const client = await Client.connect(address);
    expect(await client.compute({ [KEY]: task(square, 3) }, KEY).result()).toBe(9);
    const { out } = await cli('why', KEY, '--scheduler', address);
    expectPrintable(out);
    expectPrintable((await cli('why', KEY, '--scheduler', address, '--json')).out);
    expectPrintable((await cli('tasks', '--scheduler', address)).out);
    await client.close();
    await runs.end('SIGTERM');
    rmSync(marker);
  });

  function expectPrintable(out: string): void {
    expect(out).toContain('title');
    expect(out).not.toMatch(/[^\P{Cc}\t\n]|[\u202A-\u202E\u2066-\u2069]/u);
    expect(out).not.toMatch(/^forged/m);
  }

  test.each(['replay', 'report', 'dashboard'])(
    'runs no code of its policies when it is opened by `yardmaster %s`',
    async (command) => {
      const { err, code } = await cli(command, hostile);
      expect(err).toMatch(/the policy "\.\/policy\.mjs" in the slot ordering.*--allow-policies/);
      expect(code).toBe(1);
      expect(existsSync(marker)).toBe(false);
    },
  );

  test('is replayed with its policies when the reader permits it', async () => {
    const { out, code } = await cli('replay', hostile, '--allow-policies');
    expect(out).toMatch(/^identical: /m);
    expect(code).toBe(0);
    expect(existsSync(marker)).toBe(true);
  });

  test('moves no cursor and forges no line by its keys', async () => {
    expectPrintable((await cli('replay', hostile, '--allow-policies', '--why', KEY)).out);
    expectPrintable((await cli('log', 'export', hostile)).out);
    const program = createRequire(import.meta.url).resolve('#cli');
    const steps = [program, 'replay', hostile, '--step', '--allow-policies'];
    expectPrintable(
      execFileSync(process.execPath, steps, { encoding: 'utf8', input: '\n'.repeat(40) }),
    );
  });
});
