import { PassThrough } from 'node:stream';
import stringWidth from 'string-width';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { type Client, progress, showProgress } from '../../../adapters/client/index.ts';
import { ProgressBars } from '../../../adapters/client/progress-bars.ts';
import { startCluster } from '../dashboard/bench.ts';
import { fail, spin } from '../dashboard/fixtures/tasks.mjs';

describe('the progress of futures', () => {
  let cluster: LocalCluster;
  let client: Client;
  beforeAll(async () => {
    ({ cluster } = await startCluster());
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  const some = (round: string) => [
    ...[1, 2, 3].map((k) => client.with({ key: `good-${round}-${k}` }).submit(spin, 1)),
    client.with({ key: `bad-${round}` }).submit(fail, 'no'),
    client.with({ key: `never-${round}`, resources: { GPU: 1 } }).submit(spin, 1),
  ];

  it('tells those that are finished, failed and cancelled apart, and ends with the last', async () => {
    const futures = some('a');
    const seen: number[] = [];
    let last: unknown;
    for await (const counts of progress(futures, { intervalMs: 1 })) {
      seen.push(counts.pending);
      last = counts;
      if (counts.pending === 1) futures.at(-1)?.cancel();
    }
    expect(seen[0]).toBe(5);
    expect(seen).toEqual(seen.toSorted((a, b) => b - a));
    expect(last).toMatchObject({ total: 5, finished: 3, failed: 1, cancelled: 1, pending: 0 });
    expect((last as { prefixes: Map<string, unknown> }).prefixes.get('good-a')).toMatchObject({
      total: 3,
      finished: 3,
    });
  });

  it('is a method of the client, which finds the futures in any structure', async () => {
    const [first, ...others] = some('c').slice(0, 4);
    const seen = [];
    for await (const { finished, failed, pending, total } of client.progress({ first, others })) {
      seen.push([finished, failed, pending, total]);
    }
    expect(seen.at(-1)).toEqual([3, 1, 0, 4]);
  });

  it('reports once when there are no futures', async () => {
    const seen = [];
    for await (const counts of progress([])) seen.push(counts.total);
    expect(seen).toEqual([0]);
  });

  it('is written as lines where there is no terminal', async () => {
    const futures = some('b').slice(0, 4);
    const stream = new PassThrough().setEncoding('utf8');
    let text = '';
    stream.on('data', (part: string) => (text += part));
    const end = await showProgress(futures, { stream: stream as unknown as NodeJS.WriteStream });
    expect(end).toMatchObject({ total: 4, finished: 3, failed: 1 });
    await expect.poll(() => text).toMatch(/4 of 4 tasks done, 1 failed\n$/);
  });

  it.each([
    [4, 5],
    [40, 1],
  ])(
    'of %d prefixes is written to a terminal as %d bars, one of them of all',
    async (count, bars) => {
      const futures = Array.from({ length: count }, (_, k) =>
        client
          .with({ key: `${'abcdefgh'[k % 8]}${'xyzuv'[Math.floor(k / 8)]}${count}` })
          .submit(spin, 0),
      );
      const stream = Object.assign(new PassThrough().setEncoding('utf8'), {
        ...{ isTTY: true, columns: 100, rows: 25 },
        ...{ cursorTo: () => true, clearLine: () => true, moveCursor: () => true },
        clearScreenDown: () => true,
      });
      let text = '';
      stream.on('data', (part: string) => (text += part));
      await showProgress(futures, { stream: stream as unknown as NodeJS.WriteStream });
      const done = new Set(
        Array.from(text.matchAll(/1G(\w+) +█+ 100 % +(\d+) of \2/g), ([, name]) => name),
      );
      expect([done.size, done.has('all')]).toEqual([bars, true]);
    },
  );

  it('keeps to 80 columns of a terminal whatever names are, and says what failed and the time left', async () => {
    const stream = Object.assign(new PassThrough().setEncoding('utf8'), {
      ...{ isTTY: true, columns: 80, rows: 25 },
    });
    let text = '';
    stream.on('data', (part: string) => (text += part));
    const whole = { name: 'all', done: 0, total: 30_000 };
    const wide = { name: '工人'.repeat(20), done: 0, total: 28_000, note: '2,000 failed' };
    const rows = [whole, wide, { name: 'a', done: 0, total: 2000 }];
    const bars = new ProgressBars(whole, rows, stream as unknown as NodeJS.WriteStream);
    [whole.done, wide.done] = [1, 1];
    await expect.poll(() => text).toContain('1 of 28,000');
    [whole.done, wide.done] = [20_000, 20_000];
    await expect.poll(() => text).toMatch(/ 71 % 20,000 of 28,000 2,000 failed [\d.]+ m?s left/);
    bars.stop();
    const lines = text.split('\u001b[').map((part) => part.replace(/^[?\d;]*[A-Za-z]/, ''));
    expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThan(80);
  });
});
