import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { openPast, recordingHistory } from '../../../adapters/app/past.ts';
import { openScheduler } from '../../../adapters/app/start-scheduler.ts';
import type {
  BandwidthsAnswer,
  GraphAnswer,
  PastSeries,
} from '../../../adapters/dashboard/page-messages.ts';
import {
  openPastDashboard,
  type Past,
  type PastDashboard,
  PastSamples,
} from '../../../adapters/dashboard/past.ts';
import { ClusterState } from '../../../core/state/cluster.ts';
import { startCluster } from './bench.ts';
import { blob, fail, firstOf, hang, spin } from './fixtures/tasks.mjs';
import { recordSimulation } from './simulated-recording.ts';
import { TestViewer } from './viewer.ts';

const folder = mkdtempSync(join(tmpdir(), 'yardmaster-past-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const here = { host: '127.0.0.1', port: 0 };

it('the end can be looked at, however many moments there were before', () => {
  const cluster = new ClusterState({} as never);
  for (let moments = 980; moments < 1020; moments++) {
    const samples = new PastSamples();
    for (let moment = 0; moment < moments; moment++) {
      samples.setTime(10 * moment);
      samples.observe(cluster);
    }
    samples.setTime(10 * moments + 3);
    samples.finish(cluster);
    expect(samples.range.toS).toBe((10 * moments + 3) / 1000);
  }
});

interface Story {
  readonly why: {
    readonly state: string;
    readonly decisions: readonly { readonly candidates: readonly object[] }[];
  };
}

describe('the dashboard over a recording', () => {
  const file = join(folder, 'run.ylog');
  let past: Past;
  let dashboard: PastDashboard;
  let at: string;

  beforeAll(async () => {
    await recordSimulation(file);
    past = await openPast(file);
    dashboard = await openPastDashboard(past, here);
    at = new URL(dashboard.url).origin;
  });
  afterAll(() => dashboard.close());

  it('is of a run that is the same each time', async () => {
    const again = join(folder, 'again.ylog');
    await recordSimulation(again);
    expect(readFileSync(again).equals(readFileSync(file))).toBe(true);
    expect(past).toMatchObject({ kind: 'recording', title: 'run.ylog', notes: [] });
  });

  it('shows the moment that is asked for, first the last one with tasks', async () => {
    const viewer = await TestViewer.open(at);
    await expect.poll(() => viewer.frames.length).toBe(1);
    expect(viewer.frames[0]?.totals.tasks).toBeGreaterThan(0);
    viewer.send({ type: 'at', atS: 1.7 });
    await expect.poll(() => viewer.frames.length).toBe(2);
    const [, frame] = viewer.frames;
    expect(frame?.nowS).toBeLessThanOrEqual(1.7);
    expect(frame?.nowS).toBeGreaterThan(1.5);
    expect(frame?.totals).toMatchObject({ workers: 3, threads: 6 });
    expect(frame?.failures.first[0]?.key).toBe('parse-header');
    viewer.send({ type: 'at', atS: 0 });
    await expect.poll(() => viewer.frames.length).toBe(3);
    expect(viewer.frames[2]?.failures.first).toEqual([]);
    viewer.close();
  });

  it('shows what ran in any time, also on a worker that has died', async () => {
    const viewer = await TestViewer.open(at);
    viewer.send({ type: 'stream', id: 1, fromS: 0, toS: 60, width: 800 });
    await expect.poll(() => viewer.streams.length).toBe(1);
    const [answer] = viewer.streams;
    const keys = new Set(answer?.spans?.key);
    expect(keys).toContain('total');
    expect(answer?.rows.filter(({ name }) => name === 'w3')).toHaveLength(2);
    viewer.close();
  });

  it('tells the story of a task up to the moment, with candidates, forwards and backwards', async () => {
    const story = async (key: string, atS: number): Promise<Story['why']> => {
      const answer = await fetch(`${at}/api/task?key=${key}&at=${atS}`);
      return ((await answer.json()) as Story).why;
    };
    expect((await story('merge-0', 0.1)).state).toBe('waiting');
    const late = await story('load-3', 2);
    expect(late.state).toBe('released');
    expect(late.decisions[0]?.candidates.length).toBeGreaterThan(1);
    expect((await story('load-3', 1)).state).toBe('processing');
    const states = await Promise.all([1, 2, 1].map((atS) => story('load-3', atS)));
    expect(states.map(({ state }) => state)).toEqual(['processing', 'released', 'processing']);
  });

  it('holds its file open once at most, however often the moment changes', async () => {
    const { fromS, toS } = past.samples.range;
    for (let jumps = 0; jumps < 5; jumps++) {
      await past.at(500 * (fromS + toS), false);
      await past.at(1000 * fromS + 1, false);
    }
    const open = readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readlinkSync(join('/proc/self/fd', fd)) === realpathSync(file);
      } catch {
        return false; // The one that read the folder.
      }
    });
    expect(open.length).toBeLessThanOrEqual(2); // One more is for explained moments.
  });

  it('draws the graph of the moment', async () => {
    const answer = await fetch(`${at}/api/graph?at=1`);
    const { total, nodes } = (await answer.json()) as GraphAnswer;
    expect(total).toBe(81);
    expect(nodes.find(({ name }) => name === 'total')?.states).toEqual({ waiting: 1 });
  });

  it('shows the bandwidth between workers, and what the memory manager dropped by then', async () => {
    const { pairs } = (await (await fetch(`${at}/api/bandwidths`)).json()) as BandwidthsAnswer;
    expect(pairs.map(({ from, to }) => [from, to])).toContainEqual(['sim://w4', 'sim://w1']);
    const { moves } = (await (await fetch(`${at}/api/history`)).json()) as PastSeries;
    expect(moves[0]).toEqual([{ policy: 'all policies', copies: 0, drops: 0 }]);
    expect(moves.at(-1)).toEqual([{ policy: 'all policies', copies: 0, drops: 4 }]);
  });

  it('has no way to change anything, and nothing to ask of workers', async () => {
    const changed = await fetch(`${at}/api/restart`, { method: 'POST' });
    expect(changed.status).toBe(405);
    const stacks = await fetch(`${at}/api/stacks?worker=a`);
    expect(stacks.status).toBe(400);
    expect(await stacks.text()).toContain('this one is gone');
    expect((await fetch(`${at}/api/graph?at=soon`)).status).toBe(400);
  });

  it('says what is missing in a file that is torn, and shows the rest', async () => {
    const torn = join(folder, 'torn.ylog');
    const bytes = readFileSync(file);
    writeFileSync(torn, bytes.subarray(0, bytes.length - 200));
    const { notes, samples } = await openPast(torn);
    expect(notes).toEqual([expect.stringMatching(/torn\.ylog.*; what comes before it is shown\./)]);
    expect(samples.recorder.count).toBeGreaterThan(50);
  });
});

it('the bandwidths of workers that have left are in their recording, for pages and reports', async () => {
  const record = join(folder, 'transfers.ylog');
  const { cluster } = await startCluster({}, { mode: 'processes', record });
  const client = await cluster.client();
  const [one = '', other = ''] = cluster.scheduler.cluster.workers.keys();
  const workers = cluster.scheduler.cluster.workers;
  const [fromName, toName] = [one, other].map((address) => workers.get(address)?.name);
  const block = client.with({ key: 'block-1', workers: [one] }).submit(blob, 40_000_000);
  await client
    .with({ key: 'first-1', workers: [other] })
    .submit(firstOf, block)
    .result();
  // The heartbeat after the next one was sent after the transfer, in any case.
  const heartbeats = new Set<unknown>();
  await expect
    .poll(() => heartbeats.add(workers.get(other)?.metrics).size, { timeout: 30_000 })
    .toBeGreaterThan(2);
  await cluster.close();
  const past = await openPast(record);
  const { history } = await recordingHistory(record);
  expect(past.cluster.workers.size).toBe(0);
  expect(history.bandwidths.pairs).toMatchObject([{ from: one, fromName, to: other, toName }]);
  expect(history.bandwidths.types).toMatchObject([{ type: 'Uint8Array' }]);
  expect(past.samples.bandwidths.answer()).toEqual(history.bandwidths);
}, 60_000);

it('what a killed scheduler knew is read from its journal, and what it lacks is said', async () => {
  const journal = join(folder, 'journal');
  const { cluster } = await startCluster({}, { journal });
  const client = await cluster.client();
  const done = client.with({ key: 'done-1' }).submit(spin, 0);
  const failed = client.with({ key: 'broken-1' }).submit(fail, 'no such file');
  await Promise.all([done, failed].map((future) => future.settled()));
  client.with({ key: 'slow-1' }).submit(hang);
  await client.committed();
  // Read as it is on the disk while the scheduler runs: a kill leaves the same.
  const past = await openPast(journal);
  await cluster.close();
  expect(past.kind).toBe('journal');
  expect(past.notes[0]).toContain('not what ran');
  const { cluster: known } = past;
  expect(known.tasks.get('broken-1')?.state).toBe('erred');
  expect(known.tasks.has('slow-1')).toBe(true);
  expect(past.samples.failures.first[0]?.key).toBe('broken-1');
});

it('a report of a journal begins when its scheduler began, and none of its workers lacks memory', async () => {
  const [running, journal] = [join(folder, 'running'), join(folder, 'restarted')];
  const { cluster } = await startCluster({}, { journal: running });
  const client = await cluster.client();
  await client.submit(spin, 0).result();
  // What came before the graph, as the workers did, is on the disk with it.
  await client.committed();
  // A kill leaves what is on the disk while the scheduler runs.
  cpSync(running, journal, { recursive: true, filter: (path) => !path.includes('lock.') });
  await cluster.close();
  const again = await openScheduler({ journal });
  await again.close();
  const { history } = await recordingHistory(journal);
  expect(history.workers.length).toBeGreaterThan(0);
  expect(history.toS - history.fromS).toBeLessThan(3600);
  expect(history.workers.filter(({ pausedS }) => pausedS !== undefined)).toEqual([]);
});

it('a folder without a log is refused with what to give', async () => {
  await expect(openPast(folder)).rejects.toMatchObject({
    code: 'ERR_LOG',
    message: expect.stringContaining('holds no log') as string,
  });
});
