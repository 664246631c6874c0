import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { TaskView } from '../../../../core/api/index.ts';
import { Progress } from '../../../../adapters/dask/tasks.ts';
import { DaskBench, type FakePeer, until } from '../peers.ts';

let bench: DaskBench;
beforeEach(async () => {
  bench = await DaskBench.start({ workStealing: { start: false } });
});
afterEach(() => bench.close());

type Message = Readonly<Record<string, unknown>>;

async function computed(key: string, port = 4001): Promise<{ worker: FakePeer; client: FakePeer }> {
  const worker = await bench.runningWorker(port);
  const client = await bench.client();
  client.submit(key);
  await worker.next('compute-task');
  worker.finish(key);
  await client.next('key-in-memory');
  return { worker, client };
}

async function errorOf(op: string, fields: Message): Promise<string> {
  const answer = (await bench.ask(op, fields)) as Message;
  expect(answer['status']).toBe('uncaught-error');
  return String(answer['exception_text']);
}

describe('retry', () => {
  it('names the tasks that start again, so that a client does not wait for finished ones', async () => {
    const { worker, client } = await computed('good-1');
    client.submit('bad-1');
    await worker.next('compute-task', 2);
    worker.fail('bad-1');
    await client.next('task-erred');
    const fields = { keys: ['good-1', 'bad-1'], client: 'Client-1' };
    expect(await bench.call('retry', fields)).toEqual(['bad-1']);
    await worker.next('compute-task', 3);
  });

  it.each([undefined, null, ''])('in the name of no client (%j) has no events', async (nobody) => {
    const { worker, client } = await computed('good-1');
    client.submit('bad-1');
    await worker.next('compute-task', 2);
    worker.fail('bad-1');
    await client.next('task-erred');
    const fields = nobody === undefined ? {} : { client: nobody };
    expect(await bench.call('retry', { keys: ['bad-1'], ...fields })).toEqual(['bad-1']);
    await worker.next('compute-task', 3);
    expect(await bench.call('events', { topic: String(nobody) })).toEqual([]);
  });

  it('of a key that is not known is a KeyError', async () => {
    expect(await errorOf('retry', { keys: ['nowhere'], client: 'Client-1' })).toContain('KeyError');
  });
});

it.each([
  ['cancel', { keys: ['inc-1'], client: '' }],
  ['update_data', { who_has: {}, nbytes: {}, client: '' }],
])('%s in the name of no client is no failure', async (op, request) => {
  await bench.call(op, request);
  const { plugins } = bench.scheduler;
  expect(plugins.find(({ name }) => name === 'dask')?.errorCount).toBe(0);
});

describe('metadata', () => {
  /** As each release says that no default was given. */
  const NO_DEFAULTS: readonly (readonly [string, unknown])[] = [
    ['2022.12.1', '__no_default__'],
    [
      '2026.8.0',
      { __Enum__: true, name: 'no_default', __module__: 'dask.typing', __name__: 'NoDefault' },
    ],
  ];

  it.each(NO_DEFAULTS)('of an unknown key is a KeyError in %s', async (_, otherwise) => {
    const fields = { keys: ['a', 'b'], default: otherwise };
    expect(await errorOf('get_metadata', fields)).toContain('KeyError("a")');
  });

  it('of an unknown key is the default, whatever that is', async () => {
    for (const otherwise of [null, 5, { x: 1 }]) {
      expect(await bench.call('get_metadata', { keys: ['a'], default: otherwise })).toEqual(
        otherwise,
      );
    }
  });

  it('can be read into lists, and fails as Python does where there is nothing to enter', async () => {
    await bench.call('set_metadata', { keys: ['l'], value: [1, 2] });
    expect(await bench.call('get_metadata', { keys: ['l', 1] })).toBe(2);
    expect(await errorOf('get_metadata', { keys: ['l', 'x'], default: 1 })).toContain('TypeError');
    expect(await errorOf('get_metadata', { keys: ['l', 7] })).toContain('IndexError');
  });
});

describe('workers that come and go', () => {
  it('are sent to each subscriber once', async () => {
    await bench.worker(4001);
    const watcher = await bench.connect();
    const first = (await watcher.call('subscribe_worker_status')) as { workers: Message };
    expect(Object.keys(first.workers)).toEqual(['tcp://127.0.0.1:4001']);
    const told: unknown[] = [];
    watcher.attach({
      onMessage: (batch) => told.push(...(batch as unknown[])),
      onClose: () => undefined,
    });
    const second = await bench.worker(4002);
    await until(() => told.length === 1);
    expect(told[0]).toMatchObject([
      'add',
      { workers: { [second.address]: { name: second.address } } },
    ]);
    await bench.call('unregister', { address: second.address, stimulus_id: 'u' });
    await until(() => told.length === 2);
    expect(told[1]).toEqual(['remove', second.address]);
  });

  it('are removed once; a second time they are said to be removed already', async () => {
    const { address } = await bench.worker(4001);
    for (const op of ['unregister', 'remove_worker']) {
      const fields = { address: 'tcp://127.0.0.1:1', stimulus_id: 'x' };
      expect(await bench.call(op, fields)).toBe('already-removed');
    }
    expect(await bench.call('remove_worker', { address, stimulus_id: 'x' })).toBe('OK');
    expect(await bench.call('remove_worker', { address, stimulus_id: 'x' })).toBe(
      'already-removed',
    );
  });

  it.each([
    ['is forgotten at once', {}, undefined, 'missing'],
    [
      'stays without tasks when it is not to be removed',
      { remove: false },
      'closing_gracefully',
      'OK',
    ],
  ])('that are retired and not closed: one %s', async (_what, more, status, heartbeat) => {
    const [one, two] = [await bench.runningWorker(4001), await bench.runningWorker(4002)];
    const fields = { workers: [one.address], close_workers: false, ...more };
    const retired = (await bench.call('retire_workers', fields)) as Message;
    expect(Object.keys(retired)).toEqual([one.address]);
    const identity = (await bench.call('identity')) as { workers: Record<string, Message> };
    expect(identity.workers[one.address]?.['status']).toBe(status);
    expect(identity.workers[two.address]?.['status']).toBe('running');
    // A worker that is told that it is missing ends by itself.
    const report = { address: one.address, now: 0, metrics: {}, executing: {} };
    expect(await bench.call('heartbeat_worker', report)).toMatchObject({ status: heartbeat });
    expect(one.ops).not.toContain('close');
  });

  it('cannot gain keys when they are not known', async () => {
    const fields = { worker: 'tcp://127.0.0.1:1', keys: ['inc-1'] };
    expect(await bench.call('add_keys', fields)).toBe('not found');
  });
});

describe('workers in a request', () => {
  it('may be named by their host', async () => {
    const [one, two] = [await bench.runningWorker(4001), await bench.runningWorker(4002)];
    const nthreads = await bench.call('ncores', { workers: ['127.0.0.1'] });
    expect(nthreads).toEqual({ [one.address]: 1, [two.address]: 1 });
    const held = (await bench.call('has_what', { workers: ['127.0.0.1'] })) as Message;
    expect(Object.keys(held)).toEqual([one.address, two.address]);
    expect(await bench.call('rebalance', { workers: ['127.0.0.1'] })).toEqual({ status: 'OK' });
    const gone = (await bench.call('retire_workers', { workers: ['127.0.0.1'] })) as Message;
    expect(Object.keys(gone)).toEqual([one.address, two.address]);
  });

  it('are a KeyError when neither a worker nor a host has the name', async () => {
    const fields = { msg: { op: 'identity' }, workers: ['nowhere'] };
    expect(await errorOf('broadcast', fields)).toContain('KeyError("nowhere")');
  });

  it('have attributes, and an AttributeError for others', async () => {
    await bench.runningWorker(4001, { name: 'alice' });
    for (const [attribute, value] of [
      ['name', 'alice'],
      ['host', '127.0.0.1'],
      ['nthreads', 1],
      ['status', 'running'],
    ]) {
      expect(await bench.call('workers_to_close', { n: 1, attribute })).toEqual([value]);
    }
    const unknown = { n: 1, attribute: 'nowhere' };
    expect(await errorOf('workers_to_close', unknown)).toContain('AttributeError');
  });
});

describe('hosts and services', () => {
  it('are known by the workers', async () => {
    const { address } = await bench.runningWorker(4001, {
      nthreads: 3,
      services: { dashboard: 4567 },
    });
    expect(await bench.call('host_info')).toMatchObject({
      '127.0.0.1': { addresses: [address], nthreads: 3 },
    });
    const service = { worker: address, service_name: 'dashboard' };
    expect(await bench.call('get_worker_service_addr', service)).toEqual(['127.0.0.1', 4567]);
    const asUrl = await bench.call('get_worker_service_addr', { ...service, protocol: 'http' });
    expect(asUrl).toBe('http://127.0.0.1:4567');
    const other = { worker: address, service_name: 'constructor' };
    expect(await bench.call('get_worker_service_addr', other)).toBeNull();
  });
});

describe('logs', () => {
  it('come newest first, limited by number and time, with times when they are asked for', async () => {
    await bench.worker(4001);
    await bench.worker(4001); // Refused with a warning.
    await bench.worker(4002, { nbytes: { x: 1 } });
    type Row = [number, string, string];
    const rows = (await bench.call('get_logs', { timestamps: true })) as Row[];
    expect(rows.length).toBeGreaterThan(1);
    const times = rows.map(([time]) => time);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const plain = rows.map(([, level, message]) => [level, message]);
    expect(await bench.call('get_logs')).toEqual(plain);
    expect(await bench.call('get_logs', { n: 1 })).toEqual([plain[0]]);
    expect(await bench.call('get_logs', { start: times[0]! + 60 })).toEqual([]);
    expect(await bench.call('get_logs', { start: 0, n: null })).toEqual(plain);
  });
});

describe('stories', () => {
  it('distinguish graphs that come without a stimulus id', async () => {
    const { worker, client } = await computed('inc-1');
    client.submit('inc-2');
    await worker.next('compute-task', 2);
    expect(await bench.call('get_story', { keys_or_stimuli: ['update-graph'] })).toEqual([]);
    const [one, two] = (await Promise.all(
      ['inc-1', 'inc-2'].map((key) => bench.call('get_story', { keys_or_stimuli: [key] })),
    )) as unknown[][][];
    expect(one![0]![4]).toMatch(/^update-graph-/);
    expect(one![0]![4]).not.toBe(two![0]![4]);
  });

  it('of what cannot be a key are empty', async () => {
    await computed('inc-1');
    expect(await bench.call('get_story', { keys_or_stimuli: [{ a: 1 }] })).toEqual([]);
  });
});

describe('a dump of the cluster', () => {
  it('has the fields that readers of Dask look for, and leaves out what is excluded', async () => {
    const { worker, client } = await computed('inc-1');
    client.submit('bad-1', {
      annotations: { workers: ['nowhere'], allow_other_workers: true, x: 1 },
    });
    await worker.next('compute-task', 2);
    worker.fail('bad-1');
    await client.next('task-erred');
    const dumpOf = async (exclude: string[]): Promise<Record<string, Message>> => {
      worker.comm.abort(new Error('the test needs no answers of workers'));
      const state = (await bench.call('get_cluster_state', { exclude })) as { scheduler: Message };
      return state.scheduler as Record<string, Message>;
    };
    const { tasks, transition_log: log, ...rest } = await dumpOf([]);
    for (const part of ['task_groups', 'memory', 'services', 'extensions', 'events', 'clients']) {
      expect(rest).toHaveProperty(part);
    }
    expect((log as unknown as unknown[][])[0]!.slice(0, 3)).toEqual([
      'inc-1',
      'released',
      'waiting',
    ]);
    expect(tasks!['bad-1']).toMatchObject({
      key: 'bad-1',
      exception_text: "ValueError('no')",
      annotations: { x: 1 },
      loose_restrictions: true,
      worker_restrictions: [],
      waiters: [],
      waiting_on: [],
    });
    const less = await dumpOf(['transition_log', 'run_spec', 'annotations']);
    expect(less).not.toHaveProperty('transition_log');
    expect(less['tasks']!['bad-1']).not.toHaveProperty('annotations');
    expect(less['tasks']!['bad-1']).not.toHaveProperty('run_spec');
  });
});

describe('what one client says', () => {
  it('takes effect in its order, also wants after releases in the same batch', async () => {
    const { client } = await computed('inc-1');
    for (let round = 0; round < 20; round++) {
      client.comm.write([{ op: 'client-desires-keys', keys: ['inc-1'], client: 'keeper' }]);
      client.comm.write([{ op: 'client-releases-keys', keys: ['inc-1'], client: 'Client-1' }]);
      client.comm.write([{ op: 'client-desires-keys', keys: ['inc-1'], client: 'Client-1' }]);
      client.comm.write([{ op: 'client-releases-keys', keys: ['inc-1'], client: 'keeper' }]);
    }
    await bench.call('cancel', { keys: [], client: 'Client-1' }); // After all of it.
    const wanted = bench.scheduler.cluster.clients.get('Client-1')!.wantsWhat;
    expect([...wanted].map(({ key }) => key)).toEqual(['inc-1']);
  });
});

it('progress is shown for a task of very many inputs', () => {
  const task = (key: string, dependencies: readonly TaskView[] = []): TaskView =>
    ({ key, prefix: { name: key }, whoHas: new Set(), dependencies }) as unknown as TaskView;
  const inputs = Array.from({ length: 200_000 }, (_, index) => task(`in-${index}`));
  const request = { tasks: [task('sum', inputs)], complete: true, byPrefix: false };
  expect(new Progress(request, () => null).describe()).toMatchObject({ all: 200_001 });
});
