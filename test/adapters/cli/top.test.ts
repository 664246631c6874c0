import { expect, it } from 'vitest';
import { clipped, coloured, type Look, topText } from '../../../adapters/cli/commands/top.ts';

function worker(name: string, processingCount: number): Look['workers'][number] {
  return {
    name,
    address: `tcp://${name}:1`,
    status: 'running',
    threadCount: 2,
    processingCount,
    resultCount: 3,
    nbytes: 2048,
    memoryLimitBytes: 0,
    metrics: { memoryBytes: 1024, ...(name === 'bob' ? { cpuPercent: 150 } : {}) },
  } as unknown as Look['workers'][number];
}

function look(atMs: number, done: number): Look {
  return {
    atMs,
    workers: [worker('ann', 1), worker('bob', 4)],
    prefixes: [
      { prefix: 'load', states: {}, ever: { done: 5, failed: 0 } },
      { prefix: 'sum', states: { processing: 2, memory: 7 }, ever: { done, failed: 1 } },
      { prefix: 'train', states: { 'no-worker': 1 }, ever: { done: 0, failed: 0 } },
    ],
    waiting: [
      { text: 'No worker takes 1 task, such as train-1: none has GPU.', keys: ['train-1'] },
    ],
  };
}

it('one look says nothing of the rate, which takes two', () => {
  expect(topText('tcp://s:1', look(0, 10), undefined).split('\n')).toEqual([
    'tcp://s:1: 2 workers, 4 threads',
    '1 task has failed.',
    '',
    'worker  status   tasks  cpu    memory   threads  stored   results',
    'bob     running      4  150 %  1.0 KiB        2  2.0 KiB        3',
    'ann     running      1         1.0 KiB        2  2.0 KiB        3',
    '',
    'prefix  not begun  processing  done  erred  memory',
    'sum             0           2    10      0       7',
    'train           1           0     0      0       0',
    '',
    'No worker takes 1 task, such as train-1: none has GPU.',
  ]);
});

it('what is done a second is measured between two looks', () => {
  const text = topText('tcp://s:1', look(2000, 50), look(0, 10));
  expect(text).toContain('2 workers, 4 threads, 20 tasks done a second');
  expect(text).toMatch(/^sum +0 +2 +20 +50 /m);
});

it('what does not fit on the screen is counted', () => {
  const text = topText('tcp://s:1', look(0, 10), undefined, { linesMax: 1 });
  expect(text).toContain('and 1 more worker');
  expect(text).toContain('and 1 more prefix');
  expect(text).not.toContain('ann');
});

it('a text is cut to the screen, so that no line wraps and the first ones stay', () => {
  expect(clipped('one\nthe second line\nthree\nfour', 3, 8)).toBe('one\nthe sec…\nthree');
});

it('one worker with one thread is not plural', () => {
  const alone = { ...look(0, 10), workers: [{ ...worker('ann', 1), threadCount: 1 }] };
  expect(topText('tcp://s:1', alone, undefined)).toMatch(/^tcp:\/\/s:1: 1 worker, 1 thread\n/);
});

it('workers are sorted by the column that was chosen', () => {
  const first = (sort: 'name' | 'cpu' | 'tasks'): string | undefined =>
    topText('tcp://s:1', look(0, 10), undefined, { sort }).split('\n')[4]?.slice(0, 3);
  expect([first('tasks'), first('cpu'), first('name')]).toEqual(['bob', 'bob', 'ann']);
});

it('memory beside its limit has a bar, which is coloured where it is full', () => {
  const limited = (memoryBytes: number): string => {
    const one = { ...worker('ann', 1), memoryLimitBytes: 2048, metrics: { memoryBytes } };
    return topText('tcp://s:1', { ...look(0, 10), workers: [one] }, undefined);
  };
  expect(limited(1024)).toContain('████░░░░ 1.0 KiB of 2.0 KiB');
  expect(coloured(limited(1024))).toContain('\u001b[32m████░░░░\u001b[0m');
  expect(coloured(limited(2000))).toContain('\u001b[31m████████\u001b[0m');
});

it('characters that take two columns keep the columns aligned, and are cut as such', () => {
  const wide = { ...look(0, 10), workers: [worker('工人', 1), worker('bobo', 4)] };
  const rows = topText('tcp://s:1', wide, undefined).split('\n').slice(4, 6);
  expect(rows.map((row) => row.slice(0, row.indexOf('running')))).toEqual(['bobo    ', '工人    ']);
  expect(clipped('工人工人', 1, 6)).toBe('工人…');
});

it('every line fits the terminal: sentences are wrapped, and the less important columns left out', () => {
  const one = { ...worker('tls://192.168.100.117:45671', 4), memoryLimitBytes: 2 ** 34 };
  const prefixes = [
    { prefix: 'p'.repeat(90), states: { queued: 3 }, ever: { done: 0, failed: 0 } },
  ];
  const waiting = [{ text: `3 tasks wait for ${'the results of others, '.repeat(6)}`, keys: [] }];
  const text = topText(
    'tcp://s:1',
    { ...look(0, 10), workers: [one], prefixes, waiting },
    undefined,
    {
      columns: 80,
    },
  );
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(text.replaceAll('\n', ' ')).toContain(waiting[0]?.text.trim());
  expect(text).toMatch(/^worker +status +tasks +cpu +memory$/m);
  expect(text).toMatch(/^p{25}… +3 /m);
});

it('tasks that have not begun are counted as on the dashboard; failures and results on disk have a line', () => {
  const states = { waiting: 1000, queued: 200, 'no-worker': 30, erred: 2 };
  const prefixes = [{ prefix: 'sum', states, ever: { done: 0, failed: 2 } }];
  const metrics = { memoryBytes: 1024, spilledDiskBytes: 2 ** 30 };
  const workers = [{ ...worker('ann', 0), metrics }] as unknown as Look['workers'];
  const lines = topText('tcp://s:1', { ...look(0, 0), prefixes, workers }, undefined).split('\n');
  expect(lines[1]).toBe('2 tasks have failed; 1.0 GiB of results are on disk.');
  expect(lines.find((line) => line.startsWith('sum'))).toMatch(/^sum +1230 /);
});
