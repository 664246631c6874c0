import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { LocalCluster } from '../../../adapters/app/local-cluster.ts';
import { Bandwidths } from '../../../adapters/dashboard/bandwidths.ts';
import {
  PrefixNumbers,
  streamWindow,
  TaskRecorder,
} from '../../../adapters/dashboard/task-recorder.ts';
import { TableDelta } from '../../../adapters/dashboard/feed.ts';
import { fromColumns } from '../../../adapters/dashboard/page-messages.ts';
import type { Client } from '../../../adapters/client/index.ts';
import { ask, startCluster } from './bench.ts';
import { blob, fail, spin } from './fixtures/tasks.mjs';
import { TestViewer } from './viewer.ts';

describe('the feed of the pages', () => {
  let cluster: LocalCluster;
  let client: Client;
  let at: string;
  beforeAll(async () => {
    ({ cluster, at } = await startCluster());
    client = await cluster.client();
  });
  afterAll(() => cluster.close());

  const hookCalls = (): number => {
    const plugin = cluster.scheduler.plugins.find(({ name }) => name === 'dashboard');
    return plugin?.hooks.find(({ hook }) => hook === 'taskTransition')?.calls ?? 0;
  };

  it('has no hook and no timer before a page is opened', async () => {
    await client.with({ key: 'early-1' }).submit(spin, 0).result();
    expect(hookCalls()).toBe(0);
  });

  it('sends the whole state once, and then only the rows that changed', async () => {
    const viewer = await TestViewer.open(at);
    await expect.poll(() => viewer.frames.length).toBeGreaterThan(1);
    expect(viewer.frames[0]).toMatchObject({ isWhole: true, totals: { workers: 2, clients: 1 } });
    expect(viewer.frames[0]?.workers.changed).toHaveLength(2);
    const before = viewer.frames.length;
    const future = client.with({ key: 'late-1' }).submit(spin, 5);
    await future.result();
    const names = (): string[] =>
      viewer.frames
        .slice(before)
        .flatMap((frame) => frame.prefixes.changed.map(({ name = '' }) => name));
    await expect.poll(names).toContain('late');
    expect(names()).not.toContain('early');
    expect(viewer.frames.slice(before).every(({ isWhole }) => isWhole === undefined)).toBe(true);
    viewer.close();
  });

  it('shows what ran on which thread in the window that is asked for', async () => {
    const viewer = await TestViewer.open(at);
    await expect.poll(() => viewer.frames.length).toBeGreaterThan(0);
    await client.with({ key: 'seen-1' }).submit(spin, 20).result();
    const nowS = Date.now() / 1000;
    viewer.send({ type: 'stream', id: 1, fromS: nowS - 60, toS: nowS + 60, width: 800 });
    await expect.poll(() => viewer.streams.length).toBe(1);
    const [answer] = viewer.streams;
    const span = fromColumns(answer!.spans!).find(({ key }) => key === 'seen-1')!;
    expect(span.stopMs - span.startMs).toBeGreaterThanOrEqual(19);
    expect(answer?.rows[span.row]?.worker).toMatch(/^inmemory:/);
    viewer.close();
  });

  it('answers the newest of many requests of a page for parts of the task stream', async () => {
    const viewer = await TestViewer.open(at);
    for (let id = 1; id <= 500; id++) {
      viewer.send({ type: 'stream', id, fromS: -id, toS: 1e9, width: 800 });
    }
    await expect.poll(() => viewer.streams.at(-1)?.id).toBe(500);
    expect(viewer.streams.length).toBeLessThan(100);
    viewer.close();
  });

  it('counts bytes that were produced, also of tasks that are forgotten', async () => {
    const viewer = await TestViewer.open(at);
    const produced = (): number | undefined =>
      viewer.frames
        .flatMap(({ prefixes }) => prefixes.changed.filter(({ name }) => name === 'made'))
        .findLast(({ producedBytes }) => producedBytes !== undefined)?.producedBytes;
    const first = client.with({ key: 'made-1' }).submit(blob, 1000);
    await first.result();
    await expect.poll(produced).toBeGreaterThanOrEqual(1000);
    first.release();
    await expect.poll(() => cluster.scheduler.cluster.tasks.has('made-1')).toBe(false);
    await client.with({ key: 'made-2' }).submit(blob, 2000).result();
    await expect.poll(produced).toBeGreaterThanOrEqual(3000);
    viewer.close();
  });

  it('says why tasks wait, and which one failed first', async () => {
    const viewer = await TestViewer.open(at);
    const impossible = client.with({ key: 'gpu-1', resources: { GPU: 1 } }).submit(spin, 0);
    const failed = client.with({ key: 'broken-1' }).submit(fail, '<i>no</i>');
    await expect(failed.result()).rejects.toThrow('<i>no</i>');
    await expect
      .poll(() => viewer.frames.at(-1)?.waiting)
      .toContainEqual({
        text: 'No worker takes 1 task, such as gpu-1: no running worker satisfies its restrictions: 1 GPU (no worker offers any).',
        keys: ['gpu-1'],
      });
    await expect
      .poll(() => viewer.frames.at(-1)?.failures.first[0])
      .toMatchObject({ key: 'broken-1', text: expect.stringContaining('<i>no</i>') as string });
    impossible.release();
    viewer.close();
  });

  it('sends no second frame to a viewer that has not acknowledged the first', async () => {
    const silent = await TestViewer.open(at, false);
    const viewer = await TestViewer.open(at);
    await expect.poll(() => viewer.frames.length).toBeGreaterThan(3);
    expect(silent.frames).toHaveLength(1);
    silent.send({ type: 'ack', n: silent.frames[0]?.n });
    await expect.poll(() => silent.frames.length).toBe(2);
    expect(silent.frames[1]?.isWhole).toBe(true);
    silent.close();
    viewer.close();
  });

  it('sends ten viewers the same frames, and fewer of them than it sends one', async () => {
    const viewers = await Promise.all(Array.from({ length: 10 }, () => TestViewer.open(at)));
    const numbers = viewers.map(
      ({ frames }) =>
        () =>
          frames.map(({ n }) => n),
    );
    // Each page gets a frame as soon as it is opened.
    const opened = Math.max(...numbers.flatMap((of) => of())) + 1;
    await expect
      .poll(() => Math.min(...numbers.map((of) => of().at(-1)!)))
      .toBeGreaterThan(opened + 3);
    const later = viewers[0]!.frames.filter(({ n }) => n > opened).slice(0, 3);
    const gapsS = later.slice(1).map(({ nowS }, k) => nowS - later[k]!.nowS);
    expect(Math.min(...gapsS)).toBeGreaterThan(0.5);
    for (const of of numbers) expect(of()).toEqual(expect.arrayContaining(later.map(({ n }) => n)));
    for (const viewer of viewers) viewer.close();
  });

  it('drops a viewer that sends something else', async () => {
    for (const text of ['{', '[]', '{"type":"stream","id":1}', '{"type":"ack","n":"1"}', 'null']) {
      const viewer = await TestViewer.open(at);
      viewer.send(text);
      await expect.poll(() => viewer.isClosed).toBe(true);
    }
  });

  it('refuses a page of another site', async () => {
    const { host } = new URL(at);
    const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    const key = { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' };
    const origin = 'http://attacker.example';
    const asked = await ask(`${at}/feed`, { host, origin, ...upgrade, ...key });
    expect(asked.status).toBe(403);
  });

  it('changes nothing without the token of a page that was opened with the token of its address', async () => {
    const body = JSON.stringify({ slot: 'queuing', use: 'direct' });
    const plain = { 'content-type': 'application/json' };
    const url = `${at}/api/policy`;
    const refused = await fetch(url, { method: 'POST', headers: plain, body });
    expect(refused.status).toBe(403);
    expect(cluster.scheduler.policies.current.queuing).toBe('family');
    const headersOf = async (address: string): Promise<Record<string, string>> => {
      const page = await (await fetch(address)).text();
      const token = /name="change-token" content="([^"]*)"/.exec(page)?.[1];
      return { ...plain, 'x-yardmaster-change': token! };
    };
    // Another user of this machine may look.
    for (const address of [`${at}/status`, `${at}/status?token=wrong`]) {
      const headers = await headersOf(address);
      expect(headers['x-yardmaster-change']).toBe('');
      const looking = await fetch(url, { method: 'POST', headers, body });
      expect([looking.status, await looking.text()]).toEqual([
        403,
        expect.stringContaining('--log-level info'),
      ]);
    }
    const headers = await headersOf(cluster.dashboardUrl ?? '');
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(200);
    expect(cluster.scheduler.policies.current.queuing).toBe('direct');
    const unknown = JSON.stringify({ slot: 'queuing', use: './mine.js' });
    const answer = await fetch(url, { method: 'POST', headers, body: unknown });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code: 'ERR_PLUGIN_LOAD' });
  });
});

describe('bandwidths', () => {
  it('from a worker that left are forgotten, also when another one comes at its address', () => {
    const bandwidths = new Bandwidths();
    const [a, b] = ['a', 'b'].map((name) => ({
      ...{ address: `sim://${name}`, name },
      metrics: name === 'a' ? { transfers: [{ from: 'sim://b', bandwidth: 5 }] } : {},
    }));
    const read = (...there: (typeof a)[]): number => {
      const workers = new Map(there.map((worker) => [worker!.address, worker]));
      bandwidths.read({ workers } as never);
      return bandwidths.answer().pairs.length;
    };
    expect([read(a, b), read(a), read(a, b)]).toEqual([1, 0, 0]);
  });
});

describe('the task recorder', () => {
  const timing = (startS: number, stopS: number) => [{ action: 'compute', startS, stopS }];

  it('keeps the newest, and puts tasks that overlap into different rows', () => {
    const recorder = new TaskRecorder(4, new PrefixNumbers());
    const add = (key: string, startS: number, stopS: number): void =>
      recorder.add(key, 'x', { worker: 'a', timings: timing(startS, stopS), isError: false });
    add('x-1', 0, 1);
    add('x-2', 0.5, 1.5);
    add('x-3', 1, 2);
    add('x-4', 1.5, 2.5);
    add('x-5', 2, 3);
    const { spans, rows, count } = streamWindow(recorder, { fromS: 0, toS: 10, width: 100 });
    expect(count).toBe(4);
    expect(spans).toMatchObject({ row: [1, 0, 1, 0], key: ['x-2', 'x-3', 'x-4', 'x-5'] });
    expect(rows).toEqual([
      { worker: 'a', lane: 0 },
      { worker: 'a', lane: 1 },
    ]);
  });

  it('has rows of workers that left only as long as what they did is remembered and looked at', () => {
    const recorder = new TaskRecorder(10, new PrefixNumbers());
    for (let k = 0; k < 500; k++) {
      const timings = timing(k, k + 0.5);
      recorder.add(`x-${k}`, 'x', { worker: `w-${k}`, timings, isError: false });
      if (k < 499) recorder.lanes.forget(`w-${k}`, `worker ${k}`);
    }
    const { spans, rows } = streamWindow(recorder, { fromS: 496.7, toS: 500, width: 100 });
    const named = spans?.row?.map((row) => [rows[row]?.worker, rows[row]?.name]);
    expect(named).toEqual([
      ['w-497', 'worker 497'],
      ['w-498', 'worker 498'],
      ['w-499', undefined],
    ]);
    expect(rows).toHaveLength(3);
    const all = new Set(Array.from({ length: 500 }, (_, row) => row));
    expect(recorder.lanes.shown(all).rows.length).toBeLessThan(13);
  });

  it('sums a window with too many tasks by pixel', () => {
    const recorder = new TaskRecorder(10_000, new PrefixNumbers());
    for (let k = 0; k < 6000; k++) {
      const timings = timing(k / 100, (k + 0.5) / 100);
      recorder.add(`x-${k}`, 'x', { worker: 'a', timings, isError: k === 5 });
    }
    const { spans, bins } = streamWindow(recorder, { fromS: 0, toS: 60, width: 60 });
    expect(spans).toEqual({});
    const all = fromColumns(bins!);
    expect(all).toHaveLength(60);
    expect(all[0]).toEqual({ row: 0, bin: 0, prefix: 0, busyPercent: 50, hasError: true });
    expect(all[1]).toEqual({ row: 0, bin: 1, prefix: 0, busyPercent: 50, hasError: false });
  });

  it('stays small when there are very many threads', () => {
    const recorder = new TaskRecorder(20_000, new PrefixNumbers());
    for (let k = 0; k < 20_000; k++) {
      const startS = Math.floor(k / 1000);
      const timings = [{ action: 'compute', startS, stopS: startS + 1 }];
      recorder.add(`x-${k}`, 'x', { worker: `w-${k % 1000}`, timings, isError: false });
    }
    const { rows, bins } = streamWindow(recorder, { fromS: 0, toS: 20, width: 1100 });
    expect(rows).toHaveLength(1000);
    expect(bins?.row?.length).toBeLessThanOrEqual(30_000);
    expect(new Set(bins?.row).size).toBe(1000);
  });
});

describe('a table of the feed', () => {
  it('tells which rows are new, which fields changed, and which rows are gone', () => {
    const table = new TableDelta<{ name: string; n: number; m: number }>('name');
    const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ name, n: 1, m: 1 }));
    expect(table.next([a!, b!])).toEqual({ changed: [a, b], gone: [] });
    expect(table.next([{ ...b!, m: 2 }, c!])).toEqual({
      changed: [{ name: 'b', m: 2 }, c],
      gone: ['a'],
    });
    expect(table.next([{ ...b!, m: 2 }, c!])).toEqual({ changed: [], gone: [] });
    expect(table.all()).toEqual({ changed: [{ ...b!, m: 2 }, c], gone: [] });
  });
});
