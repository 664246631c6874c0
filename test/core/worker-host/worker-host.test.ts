import { describe, expect, it } from 'vitest';

import { startWorker } from '../../../adapters/app/start-worker.ts';
import { InlineExecutor } from '../../../adapters/executors/inline.ts';
import { MemoryStore } from '../../../adapters/stores/index.ts';
import { deserialise, serialise } from '../../../adapters/tasks/index.ts';
import {
  Channel,
  type ExecutableTask,
  type Executor,
  type GetDataReply,
  PROTOCOL,
  type WireMessage,
  YardmasterError,
} from '../../../core/api/index.ts';
import type { HostedWorker } from '../../../core/worker-host/create-worker.ts';
import type { CpuTimes } from '../../../core/worker-host/worker-options.ts';
import { Bench, CLOCK_AHEAD_MS, Ref, SCHEDULER } from '../worker/hand-scheduler.ts';

const bench = (delayMs = 0): Promise<Bench> => new Bench(delayMs).listen();

async function held(world: Bench, worker: HostedWorker, ...keys: string[]): Promise<unknown> {
  const peer = await world.peer(worker);
  const reply = await world.settle(peer.request<GetDataReply>('get-data', { keys }));
  return Object.fromEntries(
    reply.keys.map((key, index) => [key, deserialise(reply.values[index]!)]),
  );
}

const ops = (reports: readonly WireMessage[]): unknown[] => reports.map(({ op }) => op);

describe('registration', () => {
  it('a worker introduces itself with its real address', async () => {
    const world = await bench(3);
    const worker = await world.startWorker('alice', {
      resources: { gpu: 2 },
      memoryLimitBytes: 1000,
      serverId: 'w-1',
    });
    expect(world.requests).toMatchObject([
      { method: 'hello', protocol: 'yardmaster/1', role: 'worker' },
      {
        method: 'register-worker',
        status: 'running',
        identity: {
          address: worker.address,
          name: 'alice',
          serverId: 'w-1',
          host: 'alice',
          threadCount: 2,
          memoryLimitBytes: 1000,
          resources: { gpu: 2 },
        },
      },
    ]);
  });

  it('a refusal reaches the caller that starts the worker, and nothing keeps listening', async () => {
    const world = await bench();
    world.refuse = new YardmasterError('ERR_REGISTRATION', 'there is one already');
    await expect(world.startWorker('alice')).rejects.toMatchObject({
      code: 'ERR_REGISTRATION',
      message: 'there is one already',
    });
    await world.pass(100);
    expect(world.clock.timerCount).toBe(0);
  });

  it('a scheduler that cannot be reached is ERR_CONNECT, and so is a scheme that nothing speaks', async () => {
    const world = new Bench();
    await expect(world.startWorker('alice')).rejects.toMatchObject({ code: 'ERR_CONNECT' });
    const odd = world.startWorker('bob', { schedulerAddress: 'carrier://pigeon:1' });
    await expect(odd).rejects.toMatchObject({ code: 'ERR_CONNECT' });
    await expect(odd).rejects.toThrow(/carrier:\/\/pigeon/);
  });

  it('a message that comes together with the answer to the registration is not lost', async () => {
    const world = await bench(2);
    world.atOnce = [world.compute('x', 'add', [1, 2])];
    const worker = await world.startWorker('alice');
    await world.pass(10);
    expect(ops(world.take(worker))).toEqual(['task-finished']);
  });

  it('heartbeats contain the memory, the running tasks, and the time', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice', { measureMemory: () => 77 });
    await world.send(worker, world.compute('x', 'add', [1, 2]), world.compute('n', 'never', []));
    world.take(worker);
    await world.pass(500);
    const [beat] = world.take(worker);
    expect(beat).toMatchObject({
      op: 'heartbeat-worker',
      metrics: { memoryBytes: 77, managedBytes: serialise(3).byteLength },
      executing: [['n', expect.closeTo(0.5, 1)]],
    });
    await world.pass(60_000);
    expect(ops(world.take(worker))).toContain('keep-alive');
  });
});

it('a heartbeat tells the CPU that process and machine have used since the one before', async () => {
  const told = async (sharesProcess: boolean): Promise<WireMessage | undefined> => {
    const world = await bench();
    let [processMs, hostMs] = [4000, 9000];
    const measureCpu = (): CpuTimes => ({ processMs, waitedMs: hostMs / 4, hostMs, hostCores: 2 });
    const worker = await world.startWorker('alice', { measureCpu, sharesProcess });
    await world.pass(500);
    world.take(worker);
    processMs += 750;
    hostMs += 1000;
    await world.pass(500);
    return world.take(worker)[0];
  };
  const host = { cpuWaitPercent: 50, hostCpuPercent: 200, hostCores: 2 };
  const own = await told(false);
  expect(own).toMatchObject({ op: 'heartbeat-worker', metrics: { cpuPercent: 150, ...host } });
  const shared = await told(true);
  expect(shared).toMatchObject({ metrics: { sharedCpuPercent: 150, ...host } });
  expect(shared?.['metrics']).not.toHaveProperty('cpuPercent');
});

it('a heartbeat tells how late timers were', async () => {
  const world = await bench();
  const worker = await world.startWorker('alice', { takeLoopDelayMs: () => 7 });
  await world.pass(500);
  const [beat] = world.take(worker);
  expect(beat).toMatchObject({ op: 'heartbeat-worker', metrics: { loopDelayMs: 7 } });
});

describe('tasks', () => {
  it('a result stays on the worker; the scheduler hears of size, type and times in its own clock', async () => {
    const world = await bench(2);
    const worker = await world.startWorker('alice');
    const message = world.compute('x', 'add', [1, 2]);
    const [finished] = await world.send(worker, message);
    const timings = finished!['timings'] as { startS: number; stopS: number }[];
    expect(finished).toMatchObject({
      op: 'task-finished',
      key: 'x',
      runId: (message as { runId: number }).runId,
      nbytes: serialise(3).byteLength,
      type: 'number',
      timings: [{ action: 'compute' }],
    });
    expect(finished!['stimulusId']).toMatch(/^task-finished-\d+@alice$/);
    expect(timings[0]!.startS).toBeCloseTo((world.clock.nowMs() + CLOCK_AHEAD_MS) / 1000, 1);
    expect(await held(world, worker, 'x', 'unknown')).toEqual({ x: 3 });
  });

  it('a failure is reported with all fields of the error', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const [erred] = await world.send(worker, world.compute('x', 'throwRich', []));
    expect(erred).toMatchObject({
      op: 'task-erred',
      key: 'x',
      failure: {
        exception: { name: 'Problem', code: 'ERR_SAVE', cause: { code: 'ENOSPC' } },
        exceptionText: 'Problem [ERR_SAVE]: could not save, because Error [ENOSPC]: disk full',
        tracebackText: expect.stringContaining('sample-tasks.mjs') as string,
      },
    });
  });

  it('an error that no transport would carry is reported all the same', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const [erred] = await world.send(worker, world.compute('x', 'throwUnsendable', []));
    expect(erred).toMatchObject({ failure: { exception: { message: 'half a \uFFFD' } } });
  });

  it('the texts for people are cut to ten thousand characters', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const [erred] = await world.send(worker, world.compute('x', 'throwLong', []));
    const { exceptionText } = erred!['failure'] as { exceptionText: string };
    expect(exceptionText.length).toBe(9_999); // Not in the middle of a character.
  });

  it('reschedule, a result that cannot be serialised, and another version are reported', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const other = world.compute('v', 'add', []);
    (other as unknown as { runSpec: { version: string } }).runSpec.version = '0'.repeat(64);
    const reports = await world.send(
      worker,
      world.compute('r', 'reschedule', []),
      world.compute('f', 'returnFunction', []),
      other,
    );
    const byKey = (wanted: string): unknown => reports.find(({ key }) => key === wanted);
    expect(byKey('r')).toMatchObject({ op: 'reschedule' });
    expect(byKey('f')).toMatchObject({ failure: { exception: { code: 'ERR_NOT_SERIALISABLE' } } });
    expect(byKey('v')).toMatchObject({ failure: { exception: { code: 'ERR_FUNCTION_VERSION' } } });
  });

  it('another version of a module is logged once, however many tasks fail by it', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const other = (key: string, digit: string): ReturnType<typeof world.compute> => {
      const compute = world.compute(key, 'add', []);
      (compute as unknown as { runSpec: { version: string } }).runSpec.version = digit.repeat(64);
      return compute;
    };
    await world.send(worker, other('a', '0'), other('b', '0'), other('c', '1'));
    const warning = 'this worker has another version of a module, so tasks fail';
    expect(world.logged.filter((line) => line === warning)).toHaveLength(2);
  });

  it('a freed task that runs is aborted, and its result is not reported', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    await world.send(worker, world.compute('x', 'waitForAbort', []));
    const reports = await world.send(worker, { op: 'free-keys', keys: ['x'], stimulusId: 'f' });
    expect(reports).toEqual([]);
    expect(await held(world, worker, 'x')).toEqual({});
  });

  it('a result that the store refuses fails the task', async () => {
    const world = await bench();
    class FullStore extends MemoryStore {
      override set(): void {
        throw new Error('no space left');
      }
    }
    const worker = await world.startWorker('alice', { store: new FullStore() });
    const [erred] = await world.send(worker, world.compute('x', 'add', [1, 2]));
    expect(erred).toMatchObject({
      op: 'task-erred',
      failure: { exceptionText: expect.stringContaining('no space left') as string },
    });
  });
});

describe('two workers', () => {
  it('inputs travel from worker to worker, not by way of the scheduler', async () => {
    const world = await bench(2);
    const alice = await world.startWorker('alice');
    const bob = await world.startWorker('bob');
    await world.send(alice, world.compute('x', 'add', [1, 2]), world.compute('y', 'add', [3, 4]));
    const where = { x: [alice.address], y: [alice.address] };
    world.workers
      .get('bob')!
      .channel.send({ ...world.compute('z', 'total', [[new Ref('x'), new Ref('y')]], where) });
    await world.pass(50);
    expect(world.take(bob)).toMatchObject([
      { op: 'add-keys', keys: expect.arrayContaining(['x', 'y']) as string[] },
      { op: 'task-finished', key: 'z' },
    ]);
    expect(await held(world, bob, 'x', 'y', 'z')).toEqual({ x: 3, y: 7, z: 10 });
  });

  it('a copy on request; dropping it again; refusing while it is needed', async () => {
    const world = await bench();
    const alice = await world.startWorker('alice');
    const bob = await world.startWorker('bob');
    await world.send(alice, world.compute('x', 'add', [1, 2]));
    const replicas = { keys: ['x'], nbytes: [5], whoHas: [[alice.address]] };
    const got = await world.send(bob, { op: 'acquire-replicas', replicas, stimulusId: 'a' });
    expect(got).toMatchObject([{ op: 'add-keys', keys: ['x'] }]);
    await world.send(bob, world.compute('n', 'never', [new Ref('x')], { x: [bob.address] }));
    const refused = await world.send(bob, { op: 'remove-replicas', keys: ['x'], stimulusId: 'r' });
    expect(refused).toMatchObject([{ op: 'add-keys', keys: ['x'] }]);
    await world.send(bob, { op: 'free-keys', keys: ['n'], stimulusId: 'f' });
    const dropped = await world.send(bob, { op: 'remove-replicas', keys: ['x'], stimulusId: 'r2' });
    expect(dropped).toMatchObject([{ op: 'release-worker-data', keys: ['x'] }]);
    expect(await held(world, bob, 'x')).toEqual({});
  });

  it('a peer that is gone: another holder is asked, or the scheduler where there is one', async () => {
    const world = await bench();
    const alice = await world.startWorker('alice');
    const bob = await world.startWorker('bob');
    await world.send(alice, world.compute('x', 'add', [1, 2]));
    const both = { x: ['inmemory://dead:1', alice.address] };
    expect(
      ops(await world.send(bob, world.compute('y', 'double', [new Ref('x')], both))),
    ).toContain('task-finished');
    const [none] = await world.send(
      bob,
      world.compute('q', 'double', [new Ref('p')], { p: ['inmemory://dead:1'] }),
    );
    expect(none).toBeUndefined();
    await world.pass(1000);
    const asked = world.take(bob).find(({ op }) => op === 'request-refresh-who-has');
    expect(asked).toMatchObject({ keys: ['p'] });
    await world.send(alice, world.compute('p', 'add', [10, 11]));
    const replicas = { keys: ['p'], nbytes: [5], whoHas: [[alice.address]] };
    const answer = await world.send(bob, { op: 'refresh-who-has', replicas, stimulusId: 'r' });
    expect(ops(answer)).toEqual(['add-keys', 'task-finished']);
  });

  it('a peer that dies during a transfer is given up as soon as the scheduler says so', async () => {
    const world = await bench();
    const bob = await world.startWorker('bob');
    // Accepts, greets, and never answers.
    await world.transport.listen('inmemory://mute:1', (connection) => {
      return new Channel(connection, world.clock, {
        onMessage: () => undefined,
        onRequest: (method) =>
          method === 'hello'
            ? { protocol: PROTOCOL, version: 'x', serverId: 'm' }
            : new Promise(() => undefined),
        onClose: () => undefined,
      });
    });
    await world.send(
      bob,
      world.compute('y', 'double', [new Ref('x')], { x: ['inmemory://mute:1'] }),
    );
    await world.send(bob, { op: 'remove-worker', worker: 'inmemory://mute:1', stimulusId: 'gone' });
    await world.pass(1100);
    expect(ops(world.take(bob))).toContain('request-refresh-who-has');
  });

  it('a peer that answers with an error fails the tasks that need its data', async () => {
    const world = await bench();
    const bob = await world.startWorker('bob');
    await world.transport.listen('inmemory://sick:1', (connection) => {
      return new Channel(connection, world.clock, {
        onMessage: () => undefined,
        onRequest: (method) => {
          if (method === 'hello') return { protocol: PROTOCOL, version: 'x', serverId: 'm' };
          throw new YardmasterError('ERR_FRAME', 'the value is larger than a frame');
        },
        onClose: () => undefined,
      });
    });
    const compute = world.compute('y', 'double', [new Ref('x')], { x: ['inmemory://sick:1'] });
    expect(await world.send(bob, compute)).toMatchObject([
      { op: 'task-erred', key: 'y', failure: { exception: { code: 'ERR_FRAME' } } },
    ]);
  });

  it('a busy worker asks workers to try again, but serves clients', async () => {
    const world = await bench();
    const alice = await world.startWorker('alice', { outgoingTransfersMax: 0 });
    const bob = await world.startWorker('bob');
    await world.send(alice, world.compute('x', 'add', [1, 2]));
    const compute = world.compute('y', 'double', [new Ref('x')], { x: [alice.address] });
    const [asked] = await world.send(bob, compute);
    expect(asked).toMatchObject({ op: 'request-refresh-who-has', keys: ['x'] });
    expect(await held(world, alice, 'x')).toEqual({ x: 3 });
    await world.pass(400);
    expect(ops(world.take(bob))).toContain('request-refresh-who-has');
  });
});

describe('peers and clients', () => {
  it('data that a client puts is there for tasks', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const peer = await world.peer(worker);
    const values = [serialise(20), serialise(22)];
    const reply = await world.settle(peer.request('put-data', { keys: ['a', 'b'], values }));
    expect(reply).toEqual({ nbytes: values.map((value) => value.byteLength) });
    const at = [worker.address];
    const compute = world.compute('s', 'total', [[new Ref('a'), new Ref('b')]], { a: at, b: at });
    expect(ops(await world.send(worker, compute))).toEqual(['task-finished']);
    expect(await held(world, worker, 's')).toEqual({ s: 42 });
  });

  it('other data under a key that is held is refused, and the same data changes nothing', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const peer = await world.peer(worker);
    const put = (keys: string[], ...values: unknown[]): Promise<unknown> =>
      world.settle(peer.request('put-data', { keys, values: values.map((x) => serialise(x)) }));
    await put(['a'], 'value');
    await put(['a', 'b'], 'value', 2);
    await expect(put(['c', 'a'], 3, 'other')).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    expect(await held(world, worker, 'a', 'b', 'c')).toEqual({ a: 'value', b: 2 });
  });

  it('data under a later reservation replaces data, not the result of a task', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    await world.send(worker, world.compute('s', 'total', [[20, 22]]));
    const peer = await world.peer(worker);
    const put = (key: string, value: unknown, reservation: number): Promise<unknown> =>
      world.settle(
        peer.request('put-data', { keys: [key], values: [serialise(value)], reservation }),
      );
    await put('a', 'first', 1);
    await put('a', 'second', 2);
    await expect(put('a', 'first', 1)).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    await expect(put('s', 'data', 3)).rejects.toMatchObject({ code: 'ERR_KEY_TAKEN' });
    expect(await held(world, worker, 'a', 's')).toEqual({ a: 'second', s: 42 });
  });

  it('data under the key of a running task is refused', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    await world.send(worker, world.compute('n', 'never', []));
    const peer = await world.peer(worker);
    const put = peer.request('put-data', {
      keys: ['a', 'n'],
      values: [serialise(1), serialise(1)],
    });
    await expect(world.settle(put)).rejects.toThrow(/"n" is being computed or fetched/);
    expect(await held(world, worker, 'a', 'n')).toEqual({});
  });

  it('what breaks the protocol is answered with an error and affects no other peer', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const stranger = await world.connect(worker);
    const peer = await world.peer(worker);
    for (const [method, parameters, from = peer] of [
      ['get-data', { keys: [] }, stranger],
      ['hello', { protocol: 'other/9', version: '9' }, stranger],
      ['get-data', { keys: 'x' }],
      ['put-data', { keys: ['a'], values: [] }],
      ['put-data', { keys: ['a'], values: ['text'] }],
      ['fly', {}],
    ] as const) {
      await expect(world.settle(from.request(method, parameters))).rejects.toMatchObject({
        code: 'ERR_PROTOCOL',
      });
    }
    expect(await world.settle(peer.request('identity'))).toMatchObject({
      name: 'alice',
      status: 'running',
    });
  });
});

describe('the end', () => {
  it('close says goodbye to the scheduler and frees everything', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    await world.send(worker, world.compute('n', 'never', []));
    await world.settle(worker.close());
    expect(ops(world.take(worker))).toEqual(['worker-status-change']);
    expect(await worker.finished).toEqual({ reason: 'asked to close' });
    await expect(
      world.settle(
        world.transport.connect(worker.address, () => {
          throw new Error('it still listens');
        }),
      ),
    ).rejects.toMatchObject({ code: 'ERR_CONNECT' });
    await world.pass(10_000);
    expect(world.clock.timerCount).toBe(0);
  });

  it('a worker closes when the scheduler asks it to', async () => {
    const world = await bench();
    const ends: unknown[] = [];
    const worker = await world.startWorker('alice', { onClose: (end) => ends.push(end) });
    await world.send(worker, { op: 'close', reason: 'retired', stimulusId: 'c' });
    expect((await world.settle(worker.finished)).reason).toContain('retired');
    expect(ends).toHaveLength(1);
  });

  it('a worker closes when the scheduler is gone, and says so', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    world.workers.get('alice')!.channel.abort(new Error('crash'));
    const { error } = await world.settle(worker.finished);
    expect(error).toMatchObject({ code: 'ERR_CLOSED', data: { scheduler: SCHEDULER } });
    expect(world.logged).toContain('worker closes');
  });

  it('paused, it begins nothing; running again, it continues', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    const paused = await world.send(
      worker,
      { op: 'worker-status-change', status: 'paused', stimulusId: 'p' },
      world.compute('x', 'add', [1, 2]),
    );
    expect(ops(paused)).toEqual(['worker-status-change']);
    const resumed = await world.send(worker, {
      op: 'worker-status-change',
      status: 'running',
      stimulusId: 'u',
    });
    expect(ops(resumed)).toEqual(['worker-status-change', 'task-finished']);
  });

  it('an unknown message of the scheduler is logged and ignored', async () => {
    const world = await bench();
    const worker = await world.startWorker('alice');
    await world.send(worker, { op: 'sing' } as never, world.compute('x', 'add', [1, 2]));
    expect(world.logged).toContain('the scheduler sent a message that this worker ignores');
  });
});

describe('an executor that breaks its contract', () => {
  class Odd extends InlineExecutor {
    constructor(
      world: Bench,
      private readonly answer: (task: ExecutableTask) => unknown,
    ) {
      super({ clock: world.clock, threadCount: 2 });
    }
    override run(...given: Parameters<InlineExecutor['run']>): Promise<never> {
      if (given[0].key === 'odd') return this.answer(given[0]) as Promise<never>;
      return super.run(...given) as Promise<never>;
    }
  }
  const success = { kind: 'success', value: new Uint8Array(1), type: 'x', startMs: 0, stopMs: 1 };

  it.each<[string, () => unknown, string]>([
    ['nothing', () => Promise.resolve(), 'with nothing, which is no result: there are results of'],
    ['no promise', () => 42, 'ended the task "odd" with 42'],
    ['null', () => Promise.resolve(null), 'with null'],
    ['an unknown kind', () => Promise.resolve({ kind: 'done' }), 'with {"kind":"done"}'],
    ['a kind of Object', () => Promise.resolve({ kind: 'toString' }), 'with {"kind":"toString"}'],
    [
      'a value that is no byte array',
      () => Promise.resolve({ ...success, value: 5 }),
      'its value must be a Uint8Array (got 5)',
    ],
    [
      'no times',
      () => Promise.resolve({ ...success, stopMs: NaN }),
      'its stopMs must be a number of milliseconds (got NaN)',
    ],
    [
      'a failure without an error',
      () => Promise.resolve({ kind: 'failure' }),
      'its error must be an object with a name and a message',
    ],
  ])('%s, fails the task, is named, and the worker goes on', async (_what, answer, says) => {
    const world = await bench();
    const worker = await world.startWorker('alice', { executor: new Odd(world, answer) });
    const [report] = await world.send(worker, world.compute('odd', 'add', [1, 2]));
    expect(report).toMatchObject({ op: 'task-erred', key: 'odd' });
    const text = (report as { failure: { exceptionText: string } }).failure.exceptionText;
    expect(text).toContain('[ERR_EXECUTOR]: the executor Odd ended the task "odd"');
    expect(text).toContain(says);
    const after = await world.send(worker, world.compute('x', 'add', [1, 2]));
    expect(ops(after)).toEqual(['task-finished']);
  });

  it.each<[string, () => unknown]>([
    [
      'a throw in place of a promise',
      () => {
        throw new TypeError('no threads');
      },
    ],
    ['a rejection', () => Promise.reject(new TypeError('no threads'))],
  ])('%s is ERR_EXECUTOR, with its cause, and is logged', async (_what, answer) => {
    const world = await bench();
    const worker = await world.startWorker('alice', { executor: new Odd(world, answer) });
    const [report] = await world.send(worker, world.compute('odd', 'add', [1, 2]));
    const says =
      'the executor Odd threw at the task "odd": no threads; its run must not reject: what a task throws is a result of the kind failure';
    const text = (report as { failure: { exceptionText: string } }).failure.exceptionText;
    expect(text).toContain(`[ERR_EXECUTOR]: ${says}`);
    expect(JSON.stringify(report)).toContain('TypeError');
    expect(world.logged).toContain(says);
  });

  it.each<[string, object, string]>([
    ['threadCount', { run: () => undefined, close: () => undefined }, 'its threadCount must be'],
    ['close', { threadCount: 1, run: () => undefined }, 'its close must be a function'],
  ])('without %s is refused when the worker starts', async (_what, executor, says) => {
    const world = await bench();
    await expect(
      world.startWorker('alice', { executor: executor as Executor }),
    ).rejects.toMatchObject({
      code: 'ERR_EXECUTOR',
      message: expect.stringContaining(says) as string,
    });
    await expect(
      startWorker(SCHEDULER, { executor: executor as Executor, transports: [world.transport] }),
    ).rejects.toMatchObject({ code: 'ERR_EXECUTOR' });
  });
});
