import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';

import { startLiveView } from '../../../adapters/cli/demo-run.ts';
import { wrapped } from '../../../adapters/client/progress-bars.ts';

it('a line of text leaves every bar on the screen, also one that has not changed', async () => {
  let written = '';
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 100 });
  stream.on('data', (part: Buffer) => (written += part.toString()));
  const stages = new Map([
    ['index', 10],
    ['answer', 2],
  ]);
  const view = startLiveView(
    stages,
    ['worker-0'],
    stream as unknown as NodeJS.WriteStream,
    () => undefined,
  );
  view.done('index', 'worker-0');
  await expect.poll(() => written).toContain('answer');
  written = '';
  view.print('worker-0 was killed');
  await expect.poll(() => written).toMatch(/worker-0 was killed[^]*index[^]*answer/);
  view.stop();
});

it('a line of text that is wider than the terminal is split at spaces, and nothing is lost', () => {
  const line =
    'Kill       worker-0, process 13176, after 307 tasks: what it held is computed again';
  const indent = ' '.repeat(11);
  expect(wrapped(line, 60, indent)).toEqual([
    'Kill       worker-0, process 13176, after 307 tasks: what it',
    '           held is computed again',
  ]);
  expect(wrapped(line, line.length, indent)).toEqual([line]);
  expect(wrapped('x'.repeat(100), 60, indent).map(({ length }) => length)).toEqual([60, 51]);
  expect(wrapped('x'.repeat(100), 5, indent).join('').replaceAll(' ', '')).toBe('x'.repeat(100));
});

it('a terminal that knows no codes gets lines, and no codes', () => {
  vi.stubEnv('TERM', 'dumb');
  let written = '';
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  stream.on('data', (part: Buffer) => (written += part.toString()));
  const view = startLiveView(
    new Map([['index', 1]]),
    [],
    stream as unknown as NodeJS.WriteStream,
    () => undefined,
  );
  vi.unstubAllEnvs();
  view.done('index');
  view.stop();
  expect(written).toBe('1 of 1 task done\n');
});

it('bars fit a narrow terminal, and each worker has one before its first task ends', async () => {
  const narrow = await barsOf({ columns: 30, rows: 24 });
  const bars = narrow.match(/[a-z][a-z0-9-]* +[█░]+ +[\d,]+ of [\d,]+/g)!;
  expect(bars.slice(-2)).toEqual([
    'worker-0    ░░         0 of 0',
    'worker-1    ░░         0 of 0',
  ]);
  for (const bar of bars) expect(bar.length).toBeLessThan(30);
});

it('the bars of workers say how they share the runs so far, and the others how far the work is', async () => {
  const wide = await barsOf({ columns: 80, rows: 24 }, 300);
  const bar = (filled: number): string => '█'.repeat(filled) + '░'.repeat(30 - filled);
  for (const line of [
    `fingerprint ${bar(8)}  25 %   300 of 1,200`,
    `all         ${bar(8)}  25 %   300 of 1,200`,
    `worker-0    ${bar(30)} 100 %     300 of 300 runs`,
    `worker-1    ${bar(0)}   0 %       0 of 300 runs`,
  ]) {
    expect(wide).toContain(line);
  }
});

it('a terminal with fewer rows than there are bars gets lines', async () => {
  expect(await barsOf({ columns: 80, rows: 3 })).toBe('120 of 1,200 tasks done\n');
});

/** What is written for two workers until so much of the work is done; as lines, a tenth of it. */
async function barsOf(size: { columns: number; rows: number }, count = 0): Promise<string> {
  let written = '';
  const stream = Object.assign(new PassThrough(), { isTTY: true, ...size });
  stream.on('data', (part: Buffer) => (written += part.toString()));
  const stages = new Map([['fingerprint', 1200]]);
  const names = ['worker-0', 'worker-1'];
  const view = startLiveView(
    stages,
    names,
    stream as unknown as NodeJS.WriteStream,
    () => undefined,
  );
  const hasBars = size.rows > names.length + 2;
  for (let done = 0; done < (hasBars ? count : 120); done++) view.done('fingerprint', 'worker-0');
  if (hasBars) await expect.poll(() => written).toContain('worker-1');
  view.stop();
  return written;
}
