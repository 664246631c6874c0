import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { PluginContext } from '../../../../core/api/index.ts';
import { packArguments, unpackWith } from '../../../../adapters/tasks/index.ts';
import { encodeMessage, Opaque, PyFloat } from '../../../../adapters/dask/wire/codec.ts';
import type { DaskContext } from '../../../../adapters/dask/context.ts';
import { makeMemorySampler } from '../../../../adapters/dask/publish.ts';
import { DaskBench, type FakePeer, until } from '../peers.ts';

let bench: DaskBench;
let context: PluginContext;
beforeEach(async () => {
  bench = await DaskBench.start();
  const probe = { name: 'probe', setup: (given: PluginContext) => void (context = given) };
  await bench.scheduler.addPlugin(probe);
});
afterEach(() => bench.close());

/** As a client in JavaScript asks. */
async function ofNode<T>(command: string, parameters: object): Promise<T> {
  return (await context.run(`coordination.${command}`, parameters, { client: 'n' })) as T;
}

function nodeValue(value: unknown): { value: Uint8Array; keys: string[] } {
  const { bytes } = packArguments([value], () => undefined);
  return { value: bytes, keys: [] };
}

function valueForNode({ value }: { readonly value: Uint8Array }): unknown {
  return unpackWith(value, (key) => `future of ${key}`)[0];
}

async function errorOf(op: string, fields: Readonly<Record<string, unknown>>): Promise<string> {
  const answer = (await bench.ask(op, fields)) as Record<string, unknown>;
  expect(answer['status']).toBe('uncaught-error');
  return String(answer['exception_text']);
}

/** A result that a worker holds. */
async function result(key: string): Promise<FakePeer> {
  const worker = await bench.runningWorker(4001);
  const client = await bench.client();
  client.submit(key);
  await worker.next('compute-task');
  worker.finish(key);
  await client.next('key-in-memory');
  return client;
}

describe('variables', () => {
  it('give back what was stored, floats as floats', async () => {
    const data = { a: [new PyFloat(1), 2, null], b: new Uint8Array([1]), c: new Map([[1, 'x']]) };
    await bench.call('variable_set', { name: 'v', data });
    expect(await bench.call('variable_get', { name: 'v' })).toEqual({
      type: 'msgpack',
      value: data,
    });
  });

  it('are those of Node clients, in both directions', async () => {
    await bench.call('variable_set', { name: 'v', data: { a: new PyFloat(1) } });
    expect(valueForNode(await ofNode('getVariable', { name: 'v' }))).toEqual({ a: 1 });
    await ofNode('setVariable', { name: 'v', ...nodeValue([1.5, 'x']) });
    expect(await bench.call('variable_get', { name: 'v' })).toMatchObject({ value: [1.5, 'x'] });
  });

  it('let who asks wait, and raise TimeoutError', async () => {
    const waiting = bench.call('variable_get', { name: 'late' });
    await bench.call('variable_set', { name: 'late', data: 1 });
    expect(await waiting).toMatchObject({ value: 1 });
    expect(await errorOf('variable_get', { name: 'never', timeout: 0.01 })).toMatch(
      /^TimeoutError/,
    );
  });

  it('hand futures over with a token, and keep their results until then', async () => {
    const client = await result('inc-1');
    await bench.call('variable_set', { name: 'v', key: 'inc-1', client: 'Client-1' });
    client.send({ op: 'client-releases-keys', keys: ['inc-1'] });
    const reader = await bench.client('Client-2', '2024.12.1');
    const got = (await bench.call('variable_get', { name: 'v', client: 'Client-2' })) as object;
    expect(got).toMatchObject({ type: 'Future', value: 'inc-1', state: 'memory' });
    client.send({ op: 'variable_delete', name: 'v' });
    const { token } = got as { token: string };
    const confirm = 'variable-future-received-confirm';
    reader.send({ op: confirm, name: 'v', key: 'inc-1', token, client: 'Client-2' });
    const { tasks } = bench.scheduler.cluster;
    const wanters = (): string[] => [...tasks.get('inc-1')!.whoWants].map(({ key }) => key);
    await until(() => wanters().join() === 'Client-2');
  });

  it('keep a result that a client releases in their name', async () => {
    const client = await result('inc-1');
    await bench.call('variable_set', { name: 'v', key: 'inc-1', client: 'Client-1' });
    const { tasks } = bench.scheduler.cluster;
    const [keeper] = [...tasks.get('inc-1')!.whoWants]
      .map(({ key }) => key)
      .filter((key) => key !== 'Client-1');
    client.send({ op: 'client-releases-keys', keys: ['inc-1'], client: keeper });
    client.send({ op: 'client-releases-keys', keys: ['inc-1'] });
    await until(() => tasks.get('inc-1')?.whoWants.size !== 2);
    expect(tasks.get('inc-1')?.state).toBe('memory');
  });

  it('refuse futures of unknown keys', async () => {
    const text = await errorOf('variable_set', { name: 'v', key: 'unknown', timeout: 0.05 });
    expect(text).toMatch(/^TimeoutError.*unknown/);
  });
});

describe('queues', () => {
  it('are first in, first out, one by one and in batches', async () => {
    await bench.call('queue_create', { name: 'q', client: 'c', maxsize: 0 });
    for (const data of [1, 'two', [3]]) await bench.call('queue_put', { name: 'q', data });
    expect(await bench.call('queue_qsize', { name: 'q' })).toBe(3);
    expect(await bench.call('queue_get', { name: 'q' })).toEqual({ type: 'msgpack', value: 1 });
    const rest = await bench.call('queue_get', { name: 'q', batch: true });
    expect(rest).toEqual([
      { type: 'msgpack', value: 'two' },
      { type: 'msgpack', value: [3] },
    ]);
    expect(await errorOf('queue_get', { name: 'q', timeout: 0.01 })).toMatch(/^TimeoutError/);
  });

  it('hold back who puts too much', async () => {
    await bench.call('queue_create', { name: 'q', client: 'c', maxsize: 1 });
    await bench.call('queue_put', { name: 'q', data: 1 });
    expect(await errorOf('queue_put', { name: 'q', data: 2, timeout: 0.01 })).toMatch(
      /^TimeoutError/,
    );
    const put = bench.call('queue_put', { name: 'q', data: 3 });
    expect(await bench.call('queue_get', { name: 'q' })).toMatchObject({ value: 1 });
    expect(await put).toBeNull();
  });

  it('are those of Node clients', async () => {
    await ofNode('putQueue', { name: 'q', ...nodeValue({ day: 1 }) });
    expect(await bench.call('queue_get', { name: 'q' })).toMatchObject({ value: { day: 1 } });
    await bench.call('queue_put', { name: 'q', data: [1] });
    expect(valueForNode(await ofNode('getQueue', { name: 'q' }))).toEqual([1]);
  });

  it('end with the last object that stands for them', async () => {
    const client = await bench.client();
    await bench.call('queue_create', { name: 'q', client: 'Client-1', maxsize: 0 });
    await bench.call('queue_put', { name: 'q', data: 1 });
    client.send({ op: 'queue_release', name: 'q', client: 'Client-1' });
    await until(() => context.run('coordination.queueSize', { name: 'q' }, { client: 'n' }) === 0);
  });

  it('keep the results of futures for who takes them', async () => {
    const client = await result('inc-1');
    await bench.call('queue_create', { name: 'q', client: 'Client-1', maxsize: 0 });
    await bench.call('queue_put', { name: 'q', key: 'inc-1', client: 'Client-1' });
    const got = await bench.call('queue_get', { name: 'q', client: 'Client-1' });
    expect(got).toEqual({ type: 'Future', value: 'inc-1', state: 'memory' });
    client.send({ op: 'queue-future-release', name: 'q', key: 'inc-1', client: 'Client-1' });
    client.send({ op: 'client-releases-keys', keys: ['inc-1'], client: 'Client-1' });
    await until(() => !bench.scheduler.cluster.tasks.has('inc-1'));
  });

  it.each(['has left', 'is slow'])('end the wait for one taker when another %s', async (what) => {
    const client = await result('inc-1');
    const other = await bench.client('Client-2');
    const futures = { name: 'q', key: 'inc-1' };
    for (const taker of ['Client-2', 'Client-1']) {
      await bench.call('queue_put', { ...futures, client: 'Client-1' });
      await bench.call('queue_get', { name: 'q', client: taker });
    }
    const { tasks, clients } = bench.scheduler.cluster;
    if (what === 'has left') {
      other.comm.abort(new Error('gone'));
      await until(() => !clients.has('Client-2'));
    }
    client.send({ op: 'queue-future-release', ...futures });
    client.send({ op: 'client-releases-keys', keys: ['inc-1'], client: 'Client-1' });
    const ofOthers = what === 'has left' ? 0 : 1;
    await until(() => (tasks.get('inc-1')?.whoWants.size ?? 0) === ofOthers);
  });
});

describe('results on their way to a client', () => {
  it('are kept no longer when who took them without a name has left', async () => {
    const client = await result('inc-1');
    await bench.call('queue_put', { name: 'q', key: 'inc-1', client: 'Client-1' });
    const taker = await bench.connect();
    await taker.call('queue_get', { name: 'q' });
    client.send({ op: 'client-releases-keys', keys: ['inc-1'], client: 'Client-1' });
    taker.abort(new Error('gone'));
    await until(() => !bench.scheduler.cluster.tasks.has('inc-1'));
  });

  it('are not kept for a client that cannot read the value', async () => {
    const client = await result('inc-1');
    const future = {};
    const { bytes: value } = packArguments([{ future }], (part) =>
      part === future ? 'inc-1' : undefined,
    );
    await ofNode('putQueue', { name: 'q', value, keys: ['inc-1'] });
    client.send({ op: 'client-releases-keys', keys: ['inc-1'], client: 'Client-1' });
    expect(await errorOf('queue_get', { name: 'q' })).toContain('NotImplementedError');
    await until(() => !bench.scheduler.cluster.tasks.has('inc-1'));
  });
});

describe('locks', () => {
  it('are held by one at a time, Node clients included', async () => {
    expect(await bench.call('lock_acquire', { name: 'l', id: 'a', timeout: null })).toBe(true);
    expect(await bench.call('lock_acquire', { name: 'l', id: 'b', timeout: 0.01 })).toBe(false);
    await expect(ofNode('acquireLock', { name: 'l', timeoutMs: 0 })).rejects.toMatchObject({
      code: 'ERR_TIMEOUT',
    });
    const waiting = bench.call('lock_acquire', { name: 'l', id: 'c' });
    expect(await errorOf('lock_release', { name: 'l', id: 'b' })).toMatch(/^ValueError/);
    await bench.call('lock_release', { name: 'l', id: 'a' });
    expect(await waiting).toBe(true);
  });

  it('who left while waiting does not get it', async () => {
    await bench.call('lock_acquire', { name: 'l', id: 'a' });
    const comm = await bench.connect();
    comm.write({ op: 'lock_acquire', name: 'l', id: 'gone', reply: true });
    await until(() => lockState('l').waiting === 1);
    comm.abort(new Error('gone'));
    await comm.closed;
    await bench.call('echo', { data: 1 });
    await bench.call('lock_release', { name: 'l', id: 'a' });
    await until(() => lockState('l').held === 0);
    expect(await bench.call('lock_acquire', { name: 'l', id: 'b' })).toBe(true);
  });

  function lockState(name: string): { held: number; waiting: number } {
    return bench.scheduler.command('coordination.lockState', { name }) as never;
  }

  it('of several names are taken at once', async () => {
    const both = { locks: ['x', 'y'], num_locks: 2, timeout: null };
    expect(await bench.call('multi_lock_acquire', { id: 'a', ...both })).toBe(true);
    expect(await bench.call('multi_lock_acquire', { id: 'b', ...both, timeout: 0.01 })).toBe(false);
    const waiting = bench.call('multi_lock_acquire', { id: 'c', ...both });
    const one = { id: 'd', locks: ['x', 'z'], num_locks: 1, timeout: null };
    expect(await bench.call('multi_lock_acquire', one)).toBe(true);
    await bench.call('multi_lock_release', { id: 'a' });
    expect(await waiting).toBe(true);
    expect(await errorOf('multi_lock_release', { id: 'a' })).toMatch(/^KeyError/);
  });

  it('of several names are not given to a client that left while it waited', async () => {
    const one = { locks: ['x'], num_locks: 1, timeout: null };
    await bench.call('multi_lock_acquire', { id: 'a', ...one });
    const comm = await bench.connect();
    comm.write({ op: 'multi_lock_acquire', id: 'gone', ...one, reply: true });
    await until(() => comm.bufferedBytes === 0);
    await bench.call('echo', { data: 1 });
    comm.abort(new Error('gone'));
    await comm.closed;
    await bench.call('echo', { data: 1 });
    await bench.call('multi_lock_release', { id: 'a' });
    expect(await bench.call('multi_lock_acquire', { id: 'b', ...one, timeout: 5 })).toBe(true);
  });

  it('of several names may be there twice', async () => {
    const twice = { locks: ['x', 'x'], num_locks: 2, timeout: 0.05 };
    expect(await bench.call('multi_lock_acquire', { id: 'a', ...twice })).toBe(true);
    await bench.call('multi_lock_release', { id: 'a' });
    const one = { id: 'b', locks: ['x'], num_locks: 1, timeout: 5 };
    expect(await bench.call('multi_lock_acquire', one)).toBe(true);
  });
});

describe('semaphores', () => {
  it('have a number of leases, and the same request gets the same one', async () => {
    await bench.call('semaphore_register', { name: 's', max_leases: 1, lease_timeout: 30 });
    expect(await errorOf('semaphore_register', { name: 's', max_leases: 2 })).toMatch(
      /ValueError.*Inconsistent max leases/,
    );
    const acquire = { name: 's', lease_id: '1', timeout: 0.01 };
    expect(await bench.call('semaphore_acquire', acquire)).toBe(true);
    expect(await bench.call('semaphore_acquire', acquire)).toBe(true);
    expect(await bench.call('semaphore_value', { name: 's' })).toBe(1);
    expect(await bench.call('semaphore_acquire', { ...acquire, lease_id: '2' })).toBe(false);
    await bench.call('semaphore_release', { name: 's', lease_id: '1' });
    expect(await bench.call('semaphore_acquire', { ...acquire, lease_id: '2' })).toBe(true);
  });

  it('are taken by the newest connection of a request that was repeated', async () => {
    await bench.call('semaphore_register', { name: 's', max_leases: 1, lease_timeout: 30 });
    const acquire = { name: 's', lease_id: '2', timeout: null };
    await bench.call('semaphore_acquire', { ...acquire, lease_id: '1' });
    const comm = await bench.connect();
    comm.write({ op: 'semaphore_acquire', ...acquire, reply: true });
    const waiting = (): number =>
      (bench.scheduler.command('coordination.semaphoreState', { name: 's' }) as never)['waiting'];
    await until(() => waiting() === 1);
    comm.abort(new Error('broke'));
    await comm.closed;
    const again = bench.call('semaphore_acquire', acquire);
    await bench.call('echo', { data: 1 });
    await bench.call('semaphore_release', { name: 's', lease_id: '1' });
    expect(await again).toBe(true);
  });

  it('take leases back that are not refreshed', async () => {
    await bench.call('semaphore_register', { name: 's', max_leases: 1, lease_timeout: 0.01 });
    const acquire = { name: 's', timeout: 5 };
    expect(await bench.call('semaphore_acquire', { ...acquire, lease_id: '1' })).toBe(true);
    expect(await bench.call('semaphore_acquire', { ...acquire, lease_id: '2' })).toBe(true);
  });

  it('are known no more when they are closed', async () => {
    await bench.call('semaphore_register', { name: 's', max_leases: 1, lease_timeout: null });
    await bench.call('semaphore_acquire', { name: 's', lease_id: '1', timeout: null });
    await bench.call('semaphore_close', { name: 's' });
    expect(await errorOf('semaphore_acquire', { name: 's', lease_id: '2' })).toMatch(
      /RuntimeError/,
    );
    expect(await bench.call('semaphore_value', { name: 's' })).toBe(0);
  });
});

describe('events', () => {
  it('are set for all clients', async () => {
    expect(await bench.call('event_wait', { name: 'e', timeout: 0.01 })).toBe(false);
    const waiting = bench.call('event_wait', { name: 'e', timeout: null });
    await ofNode('setEvent', { name: 'e' });
    expect(await waiting).toBe(true);
    expect(await bench.call('event_is_set', { name: 'e' })).toBe(true);
    await bench.call('event_clear', { name: 'e' });
    expect(await ofNode('isEventSet', { name: 'e' })).toBe(false);
  });
});

describe('published data sets', () => {
  const data = new Opaque(
    'serialized',
    encodeMessage({ serializer: 'pickle', 'num-sub-frames': 1 })[0]!,
    [new Uint8Array([1, 2])],
  );

  it('keep their results, and come back as they were', async () => {
    const client = await result('inc-1');
    await bench.call('publish_put', { name: 'd', keys: ['inc-1'], data, client: 'Client-1' });
    expect(await errorOf('publish_put', { name: 'd', keys: [], data })).toMatch(/KeyError.*exists/);
    client.send({ op: 'client-releases-keys', keys: ['inc-1'] });
    expect(await bench.call('publish_get', { name: 'd' })).toEqual({ data, keys: ['inc-1'] });
    expect(await bench.call('publish_list')).toEqual(['d']);
    expect(await bench.call('publish_get', { name: 'other' })).toBeNull();
    expect(bench.scheduler.cluster.tasks.get('inc-1')?.state).toBe('memory');
    await bench.call('publish_delete', { name: 'd' });
    await bench.call('publish_delete', { name: 'd' });
    await until(() => !bench.scheduler.cluster.tasks.has('inc-1'));
  });

  it('may be published several at once, behind the stream of the client', async () => {
    const client = await bench.client('Client-1', '2026.8.0');
    const uid = new Uint8Array([7, 7]);
    const names = ['a', ['b', 1]];
    const many = { names, keys: [[], []], data: [data, data], override: false };
    const put = bench.call('publish_put', { ...many, client: 'Client-1', uid });
    client.send({ op: 'publish_flush_batched_send', uid });
    await put;
    expect(await bench.call('publish_list')).toEqual([['b', 1], 'a']);
    expect(await bench.call('publish_get', { names: [['b', 1], 'c'] })).toEqual([
      { data, keys: [] },
      null,
    ]);
  });

  it('of Node clients are data', async () => {
    await ofNode('publish', { name: 'n', ...nodeValue({ x: [1] }) });
    expect(await bench.call('publish_get', { name: 'n' })).toEqual({ data: { x: [1] }, keys: [] });
  });
});

it('published messages go from workers to clients and from clients to workers', async () => {
  const worker = await bench.runningWorker(4001);
  const client = await bench.client();
  const add = { name: 't', worker: worker.address };
  expect(await bench.call('pubsub_add_publisher', add)).toEqual({
    subscribers: {},
    'publish-scheduler': false,
  });
  client.send({ op: 'pubsub-add-subscriber', name: 't' });
  expect(await worker.next('pubsub-publish-scheduler')).toMatchObject({ publish: true });
  worker.send({ op: 'pubsub-msg', name: 't', msg: 'to you' });
  expect(await client.next('pubsub-msg')).toMatchObject({ name: 't', msg: 'to you' });
  worker.send({ op: 'pubsub-add-subscriber', name: 't' });
  expect(await worker.next('pubsub-add-subscriber')).toMatchObject({ address: worker.address });
  client.send({ op: 'pubsub-msg', name: 't', msg: 'and back' });
  expect(await worker.next('pubsub-msg')).toMatchObject({ msg: 'and back' });
});

it('memory is sampled until a client asks for the samples', async () => {
  await bench.client();
  const start = { client: 'Client-1', measure: 'process', interval: 0.01 };
  const key = await bench.call('memory_sampler_start', start);
  const samples = await bench.call('memory_sampler_stop', { key });
  expect(samples).toEqual(expect.arrayContaining([[expect.anything(), 0]]));
  expect(await errorOf('memory_sampler_start', { ...start, measure: '_x' })).toMatch(/ValueError/);
});

it('samples of memory become fewer when they are too many, and the first and latest stay', () => {
  let tick = (): void => undefined;
  let seconds = 0;
  const { rpc } = makeMemorySampler({
    clients: { has: () => true },
    cluster: { workers: new Map() },
    nowS: () => seconds++,
    plugin: {
      every: (_intervalMs: number, callback: () => void) => {
        tick = callback;
        return { cancel: () => undefined };
      },
    },
  } as unknown as DaskContext);
  const call = (op: string, request: Readonly<Record<string, unknown>>): unknown =>
    rpc![op]!(request, undefined as never, undefined as never);
  const key = call('memory_sampler_start', { client: 'c', measure: 'process' });
  for (let count = 0; count < 500_000; count++) tick();
  const samples = call('memory_sampler_stop', { key }) as number[][];
  expect(samples.length).toBeLessThanOrEqual(100_000);
  expect([samples[0], samples.at(-1)]).toEqual([
    [0, 0],
    [500_000, 0],
  ]);
});

describe('what a client says without waiting for an answer', () => {
  it('cannot end the scheduler by a name that is too long for coordination', async () => {
    const client = await bench.client();
    const name = 'x'.repeat(1100);
    client.send({ op: 'variable_delete', name }, { op: 'queue_release', name });
    await bench.call('variable_set', { name, data: 1, client: 'Client-1' });
    client.send({ op: 'variable_delete', name: `${name}y` });
    expect(await bench.call('variable_get', { name, client: 'Client-1' })).toMatchObject({
      value: 1,
    });
  });

  it('cannot end the scheduler when its coordination is gone', async () => {
    const client = await bench.client();
    await bench.call('queue_create', { name: 'q', maxsize: 0 });
    await bench.scheduler.removePlugin('coordination');
    client.send({ op: 'variable_delete', name: 'x' }, { op: 'queue_release', name: 'q' });
    client.send({ op: 'queue-future-release', name: 'q', key: 'k' });
    expect(await bench.call('echo', { data: 1 })).toBe(1);
    expect(client.closed).toBe(false);
  });
});

describe('a shuffle', () => {
  it('restricts an output again after the task of that key was cancelled', async () => {
    const version = '2023.3.2';
    const worker = await bench.runningWorker(4001, {}, version);
    await bench.runningWorker(4002, {}, version);
    const spec = { function: new Uint8Array([1]), args: new Uint8Array([2]) };
    const layer = {
      __module__: 'dask.highlevelgraph',
      __name__: 'MaterializedLayer',
      annotations: null,
      state: {
        dsk: { in: spec, 'shuffle-barrier-s': spec, out: spec },
        dependencies: { in: [], 'shuffle-barrier-s': ['in'], out: ['shuffle-barrier-s'] },
      },
    };
    const client = await bench.client('Client-1', '2022.12.1');
    const { tasks } = bench.scheduler.cluster;
    const restrictedTo = async (): Promise<readonly string[]> => {
      client.send({
        op: 'update-graph-hlg',
        hlg: { layers: [layer] },
        keys: ['out'],
        priority: { in: 0, 'shuffle-barrier-s': 1, out: 2 },
        submitting_task: null,
        fifo_timeout: '60s',
        actors: false,
        code: null,
      });
      await until(() => tasks.get('in')?.state === 'processing');
      const run = (await bench.call('shuffle_get_or_create', {
        id: 's',
        type: 'DataFrameShuffle',
        spec: { npartitions: 1 },
        worker: worker.address,
      })) as { readonly run_id: number };
      const output = { id: 's', run_id: run.run_id, key: 'out', worker: worker.address };
      await bench.call('shuffle_restrict_task', output);
      await bench.call('echo', { data: 1 });
      const { workers = [] } = tasks.get('out')?.restrictions ?? {};
      client.send({ op: 'client-releases-keys', keys: ['out'] });
      await until(() => !tasks.has('out') && !tasks.has('in'));
      return [...workers];
    };
    expect(await restrictedTo()).toEqual([worker.address]);
    expect(await restrictedTo()).toEqual([worker.address]);
  });

  it.each([
    ['DataFrameShuffle', { npartitions: 2_000_000 }],
    ['ArrayRechunk', { new: [0, 1, 2].map(() => Array.from({ length: 127 }, () => 1)) }],
  ])('of plain data (%s) is refused when it has too many partitions', async (type, spec) => {
    const { address: worker } = await bench.runningWorker(4001, {}, '2023.3.2');
    (await bench.client()).submit('shuffle-barrier-s');
    await until(() => bench.scheduler.cluster.tasks.has('shuffle-barrier-s'));
    const run = bench.ask('shuffle_get_or_create', { id: 's', type, spec, worker });
    expect(await run).toMatchObject({
      exception_text: expect.stringContaining('at most 1000000 partitions') as string,
    });
  });
});
