import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';

import { decodeMessage } from '../../../../adapters/dask/wire/codec.ts';
import { mergeProfiles } from '../../../../adapters/dask/cluster.ts';
import { DaskBench, until } from '../peers.ts';

let bench: DaskBench;
beforeEach(async () => {
  bench = await DaskBench.start({ workStealing: { start: false } });
});
afterEach(() => bench.close());

describe('questions about tasks and workers', () => {
  it('whether there is nothing to do: since when, in seconds, or None', async () => {
    await bench.runningWorker(4001);
    await bench.call('check_idle');
    const since = await bench.call('check_idle');
    expect(Math.abs(Number(since) - Date.now() / 1000)).toBeLessThan(60);
    const client = await bench.client();
    client.submit('inc-1');
    await until(() => bench.scheduler.cluster.tasks.get('inc-1')?.state === 'processing');
    expect(await bench.call('check_idle')).toBeNull();
    expect(await bench.call('check_idle')).toBeNull();
  });

  it('are answered from the tables', async () => {
    const worker = await bench.runningWorker(4001, { name: 7, nthreads: 2 });
    const client = await bench.client();
    client.submit('inc-1');
    await worker.next('compute-task');
    const { address } = worker;
    expect(await bench.call('processing')).toEqual({ [address]: ['inc-1'] });
    expect(await bench.call('get_task_status', { keys: ['inc-1', 'no'] })).toEqual({
      'inc-1': 'processing',
      no: null,
    });
    worker.finish('inc-1');
    await client.next('key-in-memory');
    expect(await bench.call('who_has')).toEqual({ 'inc-1': [address] });
    expect(await bench.call('who_has', { keys: ['no'] })).toEqual({ no: [] });
    expect(await bench.call('has_what', { workers: [7] })).toEqual({ [address]: ['inc-1'] });
    expect(await bench.call('ncores_running')).toEqual({ [address]: 2 });
    expect(await bench.call('nbytes', { keys: ['inc-1'], summary: true })).toEqual({ inc: 28 });
    expect(await bench.call('get_task_prefix_states')).toMatchObject({ inc: { memory: 1 } });
    await expect(bench.call('nbytes', { keys: ['no'] })).rejects.toThrow(/KeyError/);
  });

  it('return the story of a task in the form of Dask', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('inc-1');
    await worker.next('compute-task');
    worker.finish('inc-1');
    await client.next('key-in-memory');
    const story = (await bench.call('get_story', { keys_or_stimuli: ['inc-1'] })) as unknown[][];
    expect(story.map(([, start, finish]) => `${start as string}-${finish as string}`)).toEqual([
      'released-waiting',
      'waiting-processing',
      'processing-memory',
    ]);
    expect(story.at(-1)?.[4]).toBe('task-finished-inc-1');
  });

  it('list the workers, with names as the workers gave them', async () => {
    await bench.runningWorker(4001, { name: 7 });
    const identity = await bench.call('identity');
    expect(identity).toMatchObject({
      type: 'Scheduler',
      address: bench.address,
      n_workers: 1,
      workers: { 'tcp://127.0.0.1:4001': { type: 'Worker', name: 7, status: 'running' } },
    });
  });
});

describe('metadata', () => {
  it('is a tree that clients share', async () => {
    await bench.call('set_metadata', { keys: ['a', 'b'], value: { c: 1.5 } });
    await bench.call('set_metadata', { keys: ['a', 'd'], value: 2 });
    expect(await bench.call('get_metadata', { keys: ['a'] })).toEqual({ b: { c: 1.5 }, d: 2 });
    expect(await bench.call('get_metadata', { keys: ['a', 'b', 'c'] })).toBe(1.5);
    expect(await bench.call('get_metadata', { keys: ['x'], default: null })).toBe(null);
    const missing = bench.call('get_metadata', { keys: ['x'], default: '__no_default__' });
    await expect(missing).rejects.toThrow(/KeyError/);
  });
});

describe('events', () => {
  it('reach those who subscribed, and can be looked up', async () => {
    const client = await bench.client();
    client.send({ op: 'subscribe-topic', topic: 'news', client: 'Client-1' });
    await bench.call('log_event', { topic: ['other', 'news'], msg: { a: 1.5 } });
    const { topic, event } = (await client.next('event')) as { topic: string; event: unknown[] };
    expect([topic, event[1]]).toEqual(['news', { a: 1.5 }]);
    expect(await bench.call('events', { topic: 'other' })).toMatchObject([
      [expect.anything(), { a: 1.5 }],
    ]);
    client.send({ op: 'unsubscribe-topic', topic: 'news', client: 'Client-1' });
    client.submit('inc-1');
    await until(() => bench.scheduler.cluster.tasks.has('inc-1'));
    await bench.call('log_event', { topic: 'news', msg: 2 });
    expect(client.of('event')).toHaveLength(1);
  });
});

describe('what ran', () => {
  it('is recorded from the first question on', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client();
    expect(await bench.call('get_task_stream', { start: 0 })).toEqual([]);
    await bench.call('start_task_metadata', { name: 'mine' });
    for (const key of ['inc-1', 'inc-2']) client.submit(key);
    await worker.next('compute-task', 1);
    worker.finish('inc-1', { metadata: { a: 1 } });
    await worker.next('compute-task', 2);
    worker.finish('inc-2');
    await client.next('key-in-memory', 2);
    const stream = (await bench.call('get_task_stream', { start: 1, count: 1 })) as unknown[];
    expect(stream).toMatchObject([{ key: 'inc-1', worker: worker.address, thread: 1 }]);
    expect(await bench.call('get_task_stream_index')).toBe(2);
    expect(await bench.call('get_task_stream', { start_index: 1 })).toMatchObject([
      { key: 'inc-2' },
    ]);
    expect(await bench.call('stop_task_metadata', { name: 'mine' })).toEqual({
      metadata: { 'inc-1': { a: 1 }, 'inc-2': {} },
      state: { 'inc-1': 'memory', 'inc-2': 'memory' },
    });
    await expect(bench.call('stop_task_metadata', { name: 'mine' })).rejects.toThrow(/ValueError/);
  });

  it('is recorded when the scheduler takes it as the end of the task, with the fields that Dask records', async () => {
    const worker = await bench.runningWorker(4001, {}, '2026.8.0');
    const client = await bench.client();
    await bench.call('get_task_stream', { start: 0 });
    await bench.call('start_task_metadata', { name: 'tries' });
    client.submit('inc-1', { annotations: { retries: 1 } });
    const { run_id } = await worker.next('compute-task', 1);
    worker.fail('inc-1', { run_id, startstops: [{ action: 'compute', start: 1, stop: 1.1 }] });
    const again = await worker.next('compute-task', 2);
    worker.finish('inc-1', { run_id: again['run_id'], metadata: { tries: 2 } });
    await client.next('key-in-memory', 1);
    const stream = (await bench.call('get_task_stream', { start: 0 })) as object[];
    const names =
      'key metadata nbytes startstops status stimulus_id thread type typename worker'.split(' ');
    expect(stream.map((entry) => Object.keys(entry).toSorted())).toEqual([names]);
    expect(await bench.call('stop_task_metadata', { name: 'tries' })).toEqual({
      metadata: { 'inc-1': { tries: 2 } },
      state: { 'inc-1': 'memory' },
    });
  });

  it('is not what a worker reports that does not have the task', async () => {
    await bench.close();
    bench = await DaskBench.start({ allowedFailures: 0 });
    const worker = await bench.runningWorker(4001, {}, '2026.8.0');
    const client = await bench.client();
    await bench.call('get_task_stream', { start: 0 });
    client.submit('inc-1');
    const { run_id } = await worker.next('compute-task');
    const other = await bench.runningWorker(4002, {}, '2026.8.0');
    other.finish('inc-1', { run_id });
    await other.next('free-keys');
    worker.comm.abort(new Error('gone'));
    await client.next('task-erred');
    expect(await bench.call('get_task_stream', { start: 0 })).toEqual([]);
  });
});

describe('looks into the cluster', () => {
  it('name all benchmarks of the hardware, also without workers', async () => {
    expect(await bench.call('benchmark_hardware')).toEqual({ disk: {}, memory: {}, network: {} });
  });

  it('are served as a page, and as JSON', async () => {
    const { services } = (await bench.call('identity')) as { services: { dashboard: number } };
    const at = `http://127.0.0.1:${services.dashboard}`;
    await bench.runningWorker(4001, { name: '<b>' });
    const page = await (await fetch(`${at}/status`)).text();
    expect(page).toContain('<title>Yardmaster</title>');
    // Names come later, as data.
    expect(page).not.toContain('<b>');
    const json = (await (await fetch(`${at}/json`)).json()) as object;
    expect(json).toMatchObject({ type: 'Scheduler', n_workers: 1 });
    expect((await fetch(at, { method: 'POST' })).status).toBe(405);
  });

  it('are dumped to files in both formats', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'yardmaster-dump-'));
    await bench.close();
    bench = await DaskBench.start({ workStealing: { start: false } }, undefined, {
      dumpFolder: folder,
      schedulerPython: false,
    });
    try {
      const client = await bench.client();
      client.submit('inc-1');
      await until(() => bench.scheduler.cluster.tasks.has('inc-1'));
      const url = `file://${folder}/dump`;
      await bench.call('dump_cluster_state_to_url', { url, format: 'yaml', exclude: [] });
      await bench.call('dump_cluster_state_to_url', { url, format: 'msgpack', exclude: [] });
      const yaml: unknown = parse(await readFile(join(folder, 'dump.yaml'), 'utf8'));
      const packed = decodeMessage([gunzipSync(await readFile(join(folder, 'dump.msgpack.gz')))]);
      for (const state of [yaml, packed]) {
        expect(state).toMatchObject({
          scheduler: { tasks: { 'inc-1': { state: 'queued' } } },
          workers: {},
          versions: {},
        });
      }
      const elsewhere = { url: 's3://bucket/dump', format: 'yaml', exclude: [] };
      await expect(bench.call('dump_cluster_state_to_url', elsewhere)).rejects.toThrow(
        /Python beside the scheduler, which is switched off/,
      );
      await symlink(join(tmpdir(), 'nothing.yaml'), join(folder, 'link.yaml'));
      for (const url of ['/tmp/dump', '../dump', `file://${folder}/../dump`, 'link']) {
        await expect(
          bench.call('dump_cluster_state_to_url', { url, format: 'yaml', exclude: [] }),
        ).rejects.toThrow(/dumpFolder/);
      }
      const dump = (name: string): Promise<unknown> =>
        bench.call('dump_cluster_state_to_url', { url: name, format: 'yaml', exclude: [] });
      await expect(dump('local:///tmp/dump')).rejects.toThrow(/dumpFolder/);
      await expect(dump('simplecache::file:///tmp/dump')).rejects.toThrow(/chained/);
      await writeFile(join(folder, 'cluster.yaml'), 'workers: 3');
      await expect(dump('cluster')).rejects.toThrow(/no dump/);
      expect(await readFile(join(folder, 'cluster.yaml'), 'utf8')).toBe('workers: 3');
      await expect(dump('dump')).resolves.toBeNull();
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it('merge the profiles of workers', () => {
    const leaf = (count: number): object => ({
      identifier: 'f',
      count,
      children: {},
      description: {},
    });
    const tree = (count: number): object => ({
      identifier: 'root',
      count,
      children: { f: leaf(count) },
      description: {},
    });
    expect(mergeProfiles([tree(1), tree(2)])).toMatchObject({
      count: 3,
      children: new Map([['f', { identifier: 'f', count: 3 }]]),
    });
    expect(mergeProfiles([])).toMatchObject({ count: 0, identifier: 'root' });
  });
});

describe('the memory manager', () => {
  const amm = (method: string, more: object = {}): Promise<unknown> =>
    bench.call('amm_handler', { method, ...more });

  it('is what AMMClientProxy of Dask expects: None, and whether it runs', async () => {
    expect(await amm('running')).toBe(true);
    expect(await amm('stop')).toBeNull();
    expect(await amm('stop')).toBeNull();
    expect(await amm('running')).toBe(false);
    expect(await amm('start')).toBeNull();
    expect(await amm('running')).toBe(true);
    expect(await amm('run_once')).toBeNull();
    await expect(amm('close')).rejects.toThrow(/AttributeError.*there are start, stop, run_once/);
    await expect(amm('constructor')).rejects.toThrow(/AttributeError/);
  });

  it("has the other attributes of Dask's extension by keyword", async () => {
    expect(await amm('interval')).toBe(2);
    expect(await amm('measure')).toBe('optimistic');
    const options = { key: 'x' };
    expect(await amm('add_policy', { policy: 'ReduceReplicas' })).toBe('reduce-replicas-2');
    await amm('add_policy', { policy: 'ensure-broadcast', options });
    expect(await amm('policies')).toEqual([
      'keep-replicas-1',
      'reduce-replicas-1',
      'reduce-replicas-2',
      'ensure-broadcast-1',
    ]);
    expect(await amm('remove_policy', { policy: 'ensure-broadcast' })).toEqual([
      'ensure-broadcast-1',
    ]);
    await expect(amm('add_policy', { policy: 'my_package.MyPolicy' })).rejects.toThrow(
      /a client cannot add the policy .*my_package.MyPolicy.*; name others in the configuration/,
    );
  });

  it('rebalances by what the call says, or the configuration', async () => {
    expect(await bench.call('rebalance')).toEqual({ status: 'OK' });
    const rules = { measure: 'managed_in_memory', sender_min: 0, sender_recipient_gap: 0.2 };
    expect(await bench.call('rebalance', rules)).toEqual({ status: 'OK' });
    await expect(bench.call('rebalance', { measure: 'rss' })).rejects.toThrow(
      /ValueError.*measure must be one of process, managed/,
    );
  });
});
