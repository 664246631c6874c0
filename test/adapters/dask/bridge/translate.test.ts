import { describe, expect, it } from 'vitest';

import {
  dialectOf,
  Opaque,
  PyFloat,
  TypeTable,
  versionIn,
} from '../../../../adapters/dask/wire/codec.ts';
import { pythonRunSpec } from '../../../../adapters/dask/dask-peer.ts';
import { packArguments } from '../../../../adapters/tasks/index.ts';
import { KeyTable } from '../../../../adapters/dask/wire/key-table.ts';
import { failureForClient, failureOf } from '../../../../adapters/dask/wire/py-errors.ts';
import {
  computeTask,
  heartbeatOf,
  identityOf,
  metricsOf,
  simpleReport,
  statusOf,
  taskFinished,
  toWorker,
} from '../../../../adapters/dask/translate.ts';
import { simpleClientReport, toClient } from '../../../../adapters/dask/client-bridge.ts';
import type { ComputeTask } from '../../../../core/api/index.ts';
import { cpuMsOf } from '../../../kit/cpu.ts';

const OLD = dialectOf('2022.12.1+ds.1');
const NEW = dialectOf('2026.8.0');
const keys = (): KeyTable => new KeyTable(() => false);
/** All workers are Dask's. */
const DIRECT = { sourcesOf: (holders: readonly string[]) => holders };

const spec = new Opaque('pickled', new Uint8Array([1]), [new Uint8Array([2])]);
const task: ComputeTask = {
  op: 'compute-task',
  key: 'inc-1',
  runId: 7,
  priority: [0, 1, 2],
  runSpec: spec,
  dependencies: { keys: [], nbytes: [], whoHas: [] },
  durationS: 0.5,
  stimulusId: 's-1',
};

/** Names of the fields that the constructor of the worker's event takes, by release. */
const FIELDS = {
  '2022.12.1':
    'actor annotations args duration function key kwargs nbytes op priority resource_restrictions run_spec stimulus_id who_has',
  '2023.1.1':
    'actor annotations args duration function key kwargs nbytes op priority resource_restrictions run_id run_spec stimulus_id who_has',
  '2023.6.0':
    'actor annotations args duration function key kwargs nbytes op priority resource_restrictions run_id run_spec span_id stimulus_id who_has',
  '2023.8.1':
    'actor annotations duration key nbytes op priority resource_restrictions run_id run_spec span_id stimulus_id who_has',
  '2025.2.0':
    'actor annotations key nbytes op priority resource_restrictions run_id run_spec span_id stimulus_id who_has',
};

describe('compute-task', () => {
  for (const [version, fields] of Object.entries(FIELDS)) {
    it(`has exactly the fields of ${version}`, () => {
      const message = computeTask(task, dialectOf(version), keys(), DIRECT);
      expect(Object.keys(message).sort().join(' ')).toBe(fields);
    });
  }

  it('spreads a call over three fields where the release does', () => {
    const runSpec = { function: new Uint8Array([3]), args: new Uint8Array([4]) };
    const message = computeTask({ ...task, runSpec }, OLD, keys(), DIRECT);
    expect(message).toMatchObject({ run_spec: null, ...runSpec, kwargs: null });
    expect(computeTask(task, OLD, keys(), DIRECT)).toMatchObject({
      run_spec: spec,
      function: null,
    });
  });

  it('names inputs by the keys that they came with', () => {
    const table = keys();
    const key = ['x', 0];
    const text = table.textOf(key);
    const dependencies = { keys: [text], nbytes: [8], whoHas: [['tcp://a:1']] };
    const message = computeTask({ ...task, dependencies }, NEW, table, DIRECT);
    expect(message['who_has']).toEqual(new Map([[key, ['tcp://a:1']]]));
    expect(message['nbytes']).toEqual(new Map([[key, 8]]));
  });
});

describe('messages to workers', () => {
  it('that a peer is gone only where the release listens for it', () => {
    const message = { op: 'remove-worker', worker: 'tcp://a:1', stimulusId: 's' } as const;
    expect(toWorker(message, OLD, keys(), DIRECT)).toBeUndefined();
    expect(toWorker(message, NEW, keys(), DIRECT)).toEqual({
      op: 'remove-worker',
      worker: 'tcp://a:1',
      stimulus_id: 's',
    });
  });

  it('in the spelling of Dask', () => {
    const message = {
      op: 'worker-status-change',
      status: 'closing-gracefully',
      stimulusId: 's',
    } as const;
    expect(toWorker(message, OLD, keys(), DIRECT)).toMatchObject({ status: 'closing_gracefully' });
  });
});

describe('what workers say', () => {
  it('makes an identity: numbers for names, and no worker gets tasks before it runs', () => {
    const request = {
      address: 'tcp://127.0.0.1:4000',
      server_id: 'Worker-1',
      name: 3,
      nthreads: 2,
      memory_limit: new PyFloat(1e9),
      resources: { GPU: new PyFloat(2) },
      nanny: null,
      versions: { packages: { distributed: '2024.12.1' } },
    };
    expect(identityOf(request)).toMatchObject({
      address: 'tcp://127.0.0.1:4000',
      name: '3',
      host: '127.0.0.1',
      threadCount: 2,
      memoryLimitBytes: 1e9,
      resources: { GPU: 2 },
    });
    expect(identityOf(request)).not.toHaveProperty('nanny');
    expect(versionIn(request.versions)).toBe('2024.12.1');
    expect([statusOf('init'), statusOf('closing_gracefully'), statusOf('never heard of')]).toEqual([
      'paused',
      'closing-gracefully',
      'paused',
    ]);
    expect(['constructor', '__proto__'].map(statusOf)).toEqual(['paused', 'paused']);
  });

  it('gives metrics as plain numbers, whatever Python made of them', () => {
    const metrics = {
      memory: 5,
      managed_bytes: new PyFloat(4),
      spilled_bytes: { memory: 1, disk: 2 },
      bandwidth: {
        total: new PyFloat(1e8),
        workers: { 'tcp://b:1': [new PyFloat(3e8), 2], 'tcp://c:1': [0, 0] },
        types: { 'numpy.ndarray': [new PyFloat(2e8), 1] },
      },
      host_net_io: { read_bps: new PyFloat(7), write_bps: 8 },
      host_disk_io: { read_bps: 9, write_bps: new PyFloat(10) },
      cpu: NaN,
    };
    expect(metricsOf(metrics)).toEqual({
      memoryBytes: 5,
      managedBytes: 4,
      spilledMemoryBytes: 1,
      spilledDiskBytes: 2,
      bandwidth: 1e8,
      transfers: [
        { from: 'tcp://b:1', bandwidth: 1.5e8 },
        { type: 'numpy.ndarray', bandwidth: 2e8 },
      ],
      traffic: { received: 7, sent: 8, diskRead: 9, diskWritten: 10 },
    });
    expect(metricsOf(undefined)).toMatchObject({ memoryBytes: 0 });
  });

  it('of a finished task: sizes, types and what took how long', () => {
    const message = {
      op: 'task-finished',
      key: 'inc-1',
      nbytes: 28,
      typename: 'int',
      metadata: {},
      startstops: [{ action: 'compute', start: 1.5, stop: new PyFloat(2) }],
      stimulus_id: 'task-finished-1.5',
    };
    expect(taskFinished(message, 'inc-1', 7)).toEqual({
      op: 'task-finished',
      stimulusId: 'task-finished-1.5',
      key: 'inc-1',
      runId: 7,
      nbytes: 28,
      type: 'int',
      timings: [{ action: 'compute', startS: 1.5, stopS: 2 }],
    });
  });

  it('in heartbeats, with the keys of what is running', () => {
    const table = keys();
    const heartbeat = heartbeatOf(
      { now: 10.5, metrics: {}, executing: new Map([[['x', 1], 0.25]]) },
      table,
    );
    expect(heartbeat).toMatchObject({ executing: [["('x', 1)", 0.25]], workerNowMs: 10_500 });
  });

  it('of copies and states word by word, and nothing of what is unknown', () => {
    expect(simpleReport({ op: 'add-keys', keys: [['x', 1]], stimulus_id: 'a' }, keys())).toEqual({
      op: 'add-keys',
      keys: ["('x', 1)"],
      stimulusId: 'a',
    });
    expect(simpleReport({ op: 'never-heard-of' }, keys())).toBeUndefined();
  });
});

describe('messages to clients', () => {
  it('of cancelled keys in the form of their release', () => {
    const message = { op: 'cancelled-keys', keys: ['a', 'b'], reason: 'gone' } as const;
    const tell = (version: string): unknown =>
      toClient(message, dialectOf(version), keys(), new TypeTable(), DIRECT);
    expect(tell('2022.12.1')).toEqual([
      { op: 'cancelled-key', key: 'a' },
      { op: 'cancelled-key', key: 'b' },
    ]);
    expect(tell('2024.12.1')).toEqual([{ op: 'cancelled-keys', keys: ['a', 'b'] }]);
    expect(tell('2026.8.0')).toEqual([
      { op: 'cancelled-keys', keys: ['a', 'b'], reason: 'gone', msg: null },
    ]);
  });

  it('of a result with the class that a worker reported', () => {
    const types = new TypeTable();
    const pickled = new Uint8Array([1, 2]);
    types.learn('int', pickled);
    const message = { op: 'key-in-memory', key: 'x', type: 'int', workers: ['tcp://a:1'] } as const;
    expect(toClient(message, OLD, keys(), types, DIRECT)).toEqual([
      { op: 'key-in-memory', key: 'x', workers: ['tcp://a:1'], type: pickled },
    ]);
    const [unknown] = toClient({ ...message, type: 'str' }, OLD, keys(), types, DIRECT);
    expect(unknown).toMatchObject({ op: 'key-in-memory', type: undefined });
  });

  it('of a failure what the worker sent, untouched', () => {
    const exception = new Opaque('serialized', new Uint8Array([1]), []);
    const failure = failureOf({ exception, traceback: null, exception_text: 'ValueError()' });
    expect(failureForClient(failure, 'x', keys())).toEqual({ exception, traceback: null });
    expect(failure.exceptionText).toBe('ValueError()');
  });

  it('of a failure of the scheduler as an exception of Python', () => {
    const killed = {
      exception: {
        name: 'YardmasterError',
        message: 'died',
        code: 'ERR_KILLED_WORKER',
        data: { lastWorker: 'tcp://a:1', allowedFailures: 3 },
      },
      traceback: undefined,
      exceptionText: 'died',
      tracebackText: '',
    };
    const told = failureForClient(killed, 'x', keys()).exception as Opaque;
    const text = Buffer.from(told.frames[0] as Uint8Array).toString('latin1');
    expect(text).toMatch(/distributed\.scheduler.{0,8}KilledWorker/s);
    expect(text).toContain('tcp://a:1');
  });

  it('of inputs that are larger than the memory of a worker as a MemoryError, as in current releases of Dask', () => {
    const refused = {
      exception: { name: 'YardmasterError', message: 'too large', code: 'ERR_OUT_OF_MEMORY' },
      traceback: undefined,
      exceptionText: 'too large',
      tracebackText: '',
    };
    const told = failureForClient(refused, 'x', keys()).exception as Opaque;
    const text = Buffer.from(told.frames[0] as Uint8Array).toString('latin1');
    expect(text).toMatch(/builtins.{0,8}MemoryError/s);
  });
});

describe('what clients ask', () => {
  it('is translated field by field', () => {
    const cancel = { op: 'cancel-keys', keys: ['a'], force: true, reason: 'no', msg: 'too late' };
    expect(simpleClientReport(cancel, keys())).toEqual({
      op: 'cancel-keys',
      keys: ['a'],
      force: true,
      reason: 'no',
      message: 'too late',
      stimulusId: '',
    });
    const data = { op: 'update-data', who_has: { a: ['tcp://a:1'] }, nbytes: { a: 8 } };
    expect(simpleClientReport(data, keys())).toMatchObject({
      items: [{ key: 'a', nbytes: 8, workers: ['tcp://a:1'] }],
    });
    expect(simpleClientReport({ op: 'never-heard-of' }, keys())).toBeUndefined();
  });
});

it.each([OLD, NEW])('calls of Python may share parts of their arguments', (dialect) => {
  class Mark {}
  let part: unknown = [new Mark()];
  for (let depth = 0; depth < 24; depth++) part = [part, part];
  const { bytes } = packArguments([part], (each) => (each instanceof Mark ? 'in-1' : undefined));
  const call = { module: 'm', name: 'f', args: bytes };
  let spec: unknown;
  expect(cpuMsOf(() => (spec = pythonRunSpec('out', call as never, dialect, keys())))).toBeLessThan(
    1000,
  );
  expect(JSON.stringify(spec)).toContain('"');
});
