import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { definePlugin } from '../../../adapters/app/entries/plugin.ts';
import { DaskBench, registration, until } from './peers.ts';

let bench: DaskBench;
beforeEach(async () => {
  bench = await DaskBench.start({ workStealing: { start: false } });
});
afterEach(() => bench.close());

describe('requests', () => {
  it('of an unknown operation are answered with an error that names it, never with None', async () => {
    const answer = await bench.ask('make_coffee');
    expect(answer).toMatchObject({ status: 'uncaught-error' });
    const { exception } = answer as { exception: Uint8Array };
    const text = Buffer.from(exception).toString('latin1');
    expect(text).toContain('NotImplementedError');
    expect(text).toContain('make_coffee');
  });

  it('that need the dashboard are refused by the name of the feature', async () => {
    await expect(bench.call('eventstream')).rejects.toThrow(/dashboard/);
  });

  it('for Python beside the scheduler are refused when the operator does not allow it', async () => {
    const strict = await DaskBench.start({}, undefined, { schedulerPython: false });
    await expect(strict.call('run_function', { function: new Uint8Array() })).rejects.toThrow(
      /none is registered from 127\.0\.0\.1/,
    );
    await strict.client();
    const refused = /run_on_scheduler.*switched off.*--no-scheduler-python/;
    await expect(strict.call('run_function', { function: new Uint8Array() })).rejects.toThrow(
      refused,
    );
    const plugin = strict.call('register_scheduler_plugin', {
      plugin: new Uint8Array(),
      name: 'a',
    });
    await expect(plugin).rejects.toThrow(/switched off/);
    await strict.close();
  });

  it('follow one another on one connection, and end with it', async () => {
    const comm = await bench.connect();
    expect(await comm.call('ncores')).toEqual({});
    expect(await comm.call('echo', { data: [1, 2.5] })).toEqual([1, 2.5]);
    expect(await comm.call('echo', { data: 'last', close: true })).toBe('last');
    await comm.closed;
  });

  it('with wrong fields are errors, and the connection lives on', async () => {
    const comm = await bench.connect();
    await expect(comm.call('who_has', { keys: 5 })).rejects.toThrow(/list of keys/);
    expect(await comm.call('echo', { data: 1 })).toBe(1);
  });
});

describe('workers', () => {
  it('get no task before they run', async () => {
    const worker = await bench.worker(4001);
    expect(worker.first).toMatchObject({ status: 'OK', 'heartbeat-interval': 0.5 });
    const client = await bench.client();
    client.submit('inc-1');
    await until(() => bench.scheduler.cluster.tasks.has('inc-1'));
    expect(worker.of('compute-task')).toEqual([]);
    worker.run();
    expect(await worker.next('compute-task')).toMatchObject({ key: 'inc-1', run_spec: null });
  });

  it('whose name is taken, or that bring results, are refused with a reason', async () => {
    await bench.worker(4001, { name: 'alice' });
    const second = await bench.worker(4002, { name: 'alice' });
    expect(second.first).toMatchObject({ status: 'error', message: 'name taken, alice' });
    const third = await bench.worker(4003, { nbytes: { x: 1 } });
    expect(third.first).toMatchObject({ status: 'error' });
    const fourth = await bench.worker(4001, { name: 'bob', server_id: 'another' });
    expect(fourth.first).toMatchObject({ status: 'uncaught-error' });
    expect([...bench.scheduler.cluster.workers.keys()]).toEqual(['tcp://127.0.0.1:4001']);
  });

  it('of an unknown version speak the newest', async () => {
    const worker = await bench.runningWorker(4001, {}, 'unknown');
    const client = await bench.client('Client-1', '2022.12.1');
    client.submit('inc-1');
    const message = await worker.next('compute-task');
    expect(Object.keys(message)).toContain('run_id');
    expect(Object.keys(message)).not.toContain('function');
  });

  it.each(['2022.12.1', '2024.12.1', '2026.8.0'])(
    'of %s give a thread back with a task that goes on without one',
    async (version) => {
      const worker = await bench.runningWorker(4001, { nthreads: 1 }, version);
      const client = await bench.client();
      client.submit('inc-1');
      const { run_id: runId } = await worker.next('compute-task');
      // Only releases since 2025.2 report the number of the run.
      const told = version.startsWith('2026') ? { run_id: runId } : {};
      worker.send({
        op: 'long-running',
        key: 'inc-1',
        compute_duration: 0.1,
        stimulus_id: 'l',
        ...told,
      });
      await until(
        () => bench.scheduler.cluster.workers.get(worker.address)?.longRunning.size === 1,
      );
    },
  );

  it('that are unknown get an error when they report', async () => {
    const answer = await bench.call('heartbeat_worker', { address: 'tcp://a:1', metrics: {} });
    expect(answer).toEqual({ status: 'missing' });
  });

  it('send heartbeats on a separate connection', async () => {
    await bench.runningWorker(4001);
    const metrics = { memory: 1000, spilled_bytes: { memory: 0, disk: 7 }, managed_bytes: 1 };
    const address = 'tcp://127.0.0.1:4001';
    const answer = await bench.call('heartbeat_worker', { address, metrics, executing: {} });
    expect(answer).toMatchObject({ status: 'OK' });
    await until(() => bench.scheduler.cluster.workers.get(address)?.metrics.spilledDiskBytes === 7);
  });

  it('that vanish leave their tasks to others', async () => {
    const client = await bench.client();
    const first = await bench.runningWorker(4001);
    client.submit('inc-1');
    await first.next('compute-task');
    const second = await bench.runningWorker(4002);
    first.comm.abort(new Error('killed'));
    expect(await second.next('compute-task')).toMatchObject({ key: 'inc-1' });
  });

  it('that break the rules for messages are not believed, and stay', async () => {
    const worker = await bench.runningWorker(4001);
    worker.send({ op: 'never-heard-of' }, { op: 'add-keys', keys: 5 });
    const client = await bench.client();
    client.submit('inc-1');
    await worker.next('compute-task');
    expect(worker.closed).toBe(false);
  });
});

describe('clients', () => {
  it('get their first batch alone', async () => {
    const client = await bench.client();
    expect(client.first).toEqual([{ op: 'stream-start' }]);
  });

  it('see results, and may ask for them as often as they like', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('inc-1');
    await worker.next('compute-task');
    worker.finish('inc-1');
    expect(await client.next('key-in-memory')).toMatchObject({
      key: 'inc-1',
      type: new Uint8Array([1]),
      workers: [worker.address],
    });
    const other = await bench.client('Client-2');
    other.send({ op: 'client-desires-keys', keys: ['inc-1'], client: 'Client-2' });
    expect(await other.next('key-in-memory')).toMatchObject({ key: 'inc-1' });
    client.send({ op: 'client-desires-keys', keys: ['inc-1'], client: 'Client-1' });
    await client.next('key-in-memory', 2);
  });

  it('may want a key before it exists: the graph of another client brings it', async () => {
    const worker = await bench.runningWorker(4001);
    const early = await bench.client('Client-1');
    const late = await bench.client('Client-2');
    early.send({ op: 'client-desires-keys', keys: ['inc-1'], client: 'Client-1' });
    await bench.call('ncores');
    late.submit('inc-1');
    await worker.next('compute-task');
    worker.finish('inc-1');
    expect(await early.next('key-in-memory')).toMatchObject({ key: 'inc-1' });
    expect(early.of('cancelled-key')).toEqual([]);
  });

  it('get the failure as the worker sent it; before a new attempt the worker forgets the old one', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('bad-1', { annotations: { retries: 1 } });
    await worker.next('compute-task');
    worker.fail('bad-1');
    await worker.next('compute-task', 2);
    expect(worker.ops.filter((op) => op !== 'worker-status-change')).toEqual([
      'compute-task',
      'free-keys',
      'compute-task',
    ]);
    worker.fail('bad-1');
    const erred = await client.next('task-erred');
    expect(erred).toMatchObject({ key: 'bad-1', exception: { kind: 'serialized' } });
    client.send({ op: 'client-releases-keys', keys: ['bad-1'], client: 'Client-1' });
    await worker.next('free-keys', 2);
  });

  it('of before 2023.4 make themselves known by an empty list of tasks', async () => {
    const worker = await bench.runningWorker(4001);
    const client = await bench.client('Client-1');
    const other = await bench.client('Client-2');
    other.send({ op: 'update-graph', tasks: {}, keys: ['inc-1'], client: 'Client-2' });
    client.submit('inc-1');
    await worker.next('compute-task');
    worker.finish('inc-1');
    expect(await other.next('key-in-memory')).toMatchObject({ key: 'inc-1' });
    const spec = { function: new Uint8Array([1]), args: new Uint8Array([2]) };
    const tasks = { 'inc-2': spec };
    other.send({
      op: 'update-graph',
      tasks,
      keys: ['inc-2'],
      dependencies: { 'inc-2': ['inc-1'] },
    });
    expect(await worker.next('compute-task', 2)).toMatchObject({
      key: 'inc-2',
      who_has: { 'inc-1': [worker.address] },
    });
  });

  it('that leave get stream-closed, and what they wanted is released', async () => {
    const client = await bench.client();
    client.submit('inc-1');
    await until(() => bench.scheduler.cluster.tasks.has('inc-1'));
    client.send({ op: 'close-client' }, { op: 'close-stream' });
    await client.next('stream-closed');
    await until(() => client.closed);
    await until(() => bench.scheduler.cluster.tasks.size === 0);
  });

  it('that break off half way through a frame take nothing with them', async () => {
    const { hostname, port } = new URL(bench.address.replace('tcp:', 'http:'));
    const socket = connect(Number(port), hostname);
    const client = await bench.client();
    client.submit('inc-1');
    await until(() => bench.scheduler.cluster.tasks.has('inc-1'));
    socket.write(Buffer.from([200, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]));
    socket.destroy();
    // The registered one, too: a length table that promises more than comes.
    (
      client.comm as unknown as { socket: { write(b: Buffer): void; destroy(): void } }
    ).socket.write(Buffer.from([200, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 99]));
    client.comm.abort(new Error('gone'));
    await until(() => !bench.scheduler.cluster.clients.has('Client-1'));
    expect(await bench.call('ncores')).toEqual({});
  });

  it('that leave while their graph is unpacked want nothing any more', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'yardmaster-front-'));
    const python = join(folder, 'python');
    writeFileSync(python, '#!/bin/sh\nsleep 0.5\nexit 1\n', { mode: 0o755 });
    const slow = await DaskBench.start({}, python);
    const worker = await slow.runningWorker(4001);
    const keeper = await slow.client('Client-k');
    keeper.submit('inc-1');
    await worker.next('compute-task');
    worker.finish('inc-1');
    await keeper.next('key-in-memory');
    const client = await slow.client('Client-g', '2024.12.1');
    const { tasks, clients } = slow.scheduler.cluster;
    client.send(
      {
        op: 'update-graph',
        graph_header: {},
        graph_frames: [],
        expr_ser: new Uint8Array([1]),
        keys: ['zz'],
        code: [],
        annotations: {},
        fifo_timeout: '60s',
        internal_priority: null,
        span_metadata: {},
        submitting_task: null,
      },
      { op: 'client-desires-keys', keys: ['inc-1'], client: 'Client-g' },
    );
    await sleep(100);
    client.comm.abort(new Error('killed'));
    await until(() => !clients.has('Client-g'));
    await sleep(2000);
    expect([...clients.keys()]).not.toContain('Client-g');
    expect([...(tasks.get('inc-1')?.whoWants ?? [])].map(({ key }) => key)).toEqual(['Client-k']);
    await slow.close();
    rmSync(folder, { recursive: true });
  });

  it('whose graph does not unpack get the reason for each key', async () => {
    const client = await bench.client();
    client.send({ op: 'update-graph-hlg', hlg: { layers: [] }, keys: ['x'], priority: null });
    const none = await client.next('cancelled-key');
    expect(none).toMatchObject({ key: 'x' });
  });
});

describe('stealing over the wire', () => {
  it('asks one by one, and a task that was given up goes to the thief', async () => {
    const victim = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('inc-1');
    await victim.next('compute-task');
    const thief = await bench.runningWorker(4002);
    bench.scheduler.enqueue({
      op: 'steal-tasks',
      proposals: [
        { key: 'inc-1', victim: victim.address, thief: thief.address, victimS: 1, thiefS: 1 },
      ],
    });
    const request = await victim.next('steal-request');
    expect(Object.keys(request).sort()).toEqual(['key', 'op', 'stimulus_id']);
    victim.send({
      op: 'steal-response',
      key: 'inc-1',
      state: 'ready',
      stimulus_id: request['stimulus_id'],
    });
    expect(await thief.next('compute-task')).toMatchObject({ key: 'inc-1' });
  });

  it('leaves a task that has begun where it is', async () => {
    const victim = await bench.runningWorker(4001);
    const client = await bench.client();
    client.submit('inc-1');
    await victim.next('compute-task');
    const thief = await bench.runningWorker(4002);
    const wish = { key: 'inc-1', victim: victim.address, thief: thief.address };
    bench.scheduler.enqueue({ op: 'steal-tasks', proposals: [{ ...wish, victimS: 1, thiefS: 1 }] });
    await victim.next('steal-request');
    victim.send({ op: 'steal-response', key: 'inc-1', state: 'executing', stimulus_id: 's' });
    victim.finish('inc-1');
    await client.next('key-in-memory');
    expect(thief.of('compute-task')).toEqual([]);
  });
});

it.each([
  ['a client', 'register-client', { client: 'C' }],
  ['a worker', 'register-worker', registration('tcp://127.0.0.1:1', '2022.12.1', {})],
])(
  '%s that registers while the scheduler closes loses its connection, and may come again',
  async (_who, op, fields) => {
    let isClosing = false;
    let goOn = (): void => undefined;
    const beforeClose = async (): Promise<void> => {
      isClosing = true;
      await new Promise<void>((resolve) => (goOn = resolve));
    };
    await bench.scheduler.addPlugin(
      definePlugin({
        name: 'slow',
        apiVersion: 1,
        setup: () => ({ beforeClose }),
      }),
    );
    const comm = await bench.connect();
    const closed = bench.scheduler.close();
    await until(() => isClosing);
    comm.write({
      versions: { packages: { distributed: '2022.12.1' } },
      ...fields,
      op,
      reply: false,
    });
    await expect(comm.read()).rejects.toMatchObject({ code: 'ERR_CLOSED' });
    goOn();
    await closed;
  },
);
