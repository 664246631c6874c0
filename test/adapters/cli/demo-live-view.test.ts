import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';

import { startLiveView, wrapped } from '../../../adapters/cli/demo/live-view.ts';

it('a line of text leaves every bar on the screen, also one that has not changed', async () => {
  let written = '';
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 100 });
  stream.on('data', (part: Buffer) => (written += part.toString()));
  const stages = new Map([
    ['index', 10],
    ['answer', 2],
  ]);
  const view = startLiveView(stages, stream as unknown as NodeJS.WriteStream, () => undefined);
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
  expect(wrapped(line, 60)).toEqual([
    'Kill       worker-0, process 13176, after 307 tasks: what it',
    '           held is computed again',
  ]);
  expect(wrapped(line, line.length)).toEqual([line]);
  expect(wrapped('x'.repeat(100), 60).map(({ length }) => length)).toEqual([60, 51]);
  expect(wrapped('x'.repeat(100), 5).join('').replaceAll(' ', '')).toBe('x'.repeat(100));
});

it('a terminal that knows no codes gets lines, and no codes', () => {
  vi.stubEnv('TERM', 'dumb');
  let written = '';
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  stream.on('data', (part: Buffer) => (written += part.toString()));
  const view = startLiveView(
    new Map([['index', 1]]),
    stream as unknown as NodeJS.WriteStream,
    () => undefined,
  );
  vi.unstubAllEnvs();
  view.done('index');
  view.stop();
  expect(written).toBe('1 of 1 tasks are done\n');
});
