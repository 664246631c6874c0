import { getEventListeners } from 'node:events';
import type { Worker } from 'node:worker_threads';

import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';

import { SystemClock } from '../../../adapters/clocks/index.ts';
import {
  ThreadExecutor,
  type ThreadExecutorOptions,
} from '../../../adapters/executors/threads/index.ts';
import {
  deserialise,
  packArguments,
  serialise,
  type TaskFunction,
} from '../../../adapters/tasks/index.ts';
import {
  type AbortRun,
  type ErrorPayload,
  type ExecutionResult,
  type Executor,
  RemoteError,
  RunAborted,
} from '../../../core/api/index.ts';
import { tasks } from '../fixtures/sample-tasks.mjs';

const clock = new SystemClock();
const functions = tasks as unknown as Record<string, TaskFunction>;

/** As a worker has one for each run. */
const unaborted = (): AbortSignal => new AbortController().signal;

class Input {
  constructor(readonly key: string) {}
}

function run(
  executor: Executor,
  name: string,
  args: readonly unknown[] = [],
  { signal = unaborted(), inputs = {} } = {},
): Promise<ExecutionResult> {
  const handle = functions[name]!;
  const { bytes } = packArguments(args, (value) =>
    value instanceof Input ? value.key : undefined,
  );
  const runSpec = { module: handle.module, name, version: handle.version, args: bytes };
  const stored = Object.entries(inputs).map(([key, value]) => [key, serialise(value)] as const);
  return executor.run({ key: `${name}-1`, runSpec, inputs: new Map(stored) }, signal);
}

async function value(result: Promise<ExecutionResult>): Promise<unknown> {
  const settled = await result;
  if (settled.kind !== 'success') throw new Error(JSON.stringify(settled));
  return deserialise(settled.value);
}

async function error(result: Promise<ExecutionResult>): Promise<ErrorPayload> {
  const settled = await result;
  if (settled.kind !== 'failure') throw new Error(`it ended with ${settled.kind}`);
  return settled.error;
}

function isZeros(value: unknown, nbytes: number): boolean {
  return (
    value instanceof Uint8Array && value.length === nbytes && value.every((byte) => byte === 0)
  );
}

describe('ThreadExecutor', () => {
  const opened: Executor[] = [];
  const open = (options: Partial<ThreadExecutorOptions> = {}): ThreadExecutor => {
    const executor = new ThreadExecutor({ threadCount: 1, clock, killGraceMs: 5000, ...options });
    opened.push(executor);
    return executor;
  };
  const shared = new ThreadExecutor({ threadCount: 2, clock, killGraceMs: 5000 });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((executor) => executor.close()));
  });
  afterAll(() => shared.close());

  it('runs a function in another thread, with inputs in its arguments', async () => {
    const args = [[1, new Input('x'), { v: 3 }].slice(0, 2)];
    expect(await value(run(shared, 'total', args, { inputs: { x: 41 } }))).toBe(42);
    expect(await value(run(shared, 'later', ['b']))).toBe('b');
    expect(await value(run(shared, 'key'))).toBe('key-1');
  });

  it('starts its threads with the first run, all of them', async () => {
    const begun: Worker[] = [];
    const note = (thread: Worker): number => begun.push(thread);
    process.on('worker', note);
    onTestFinished(() => void process.off('worker', note));
    const executor = open({ threadCount: 3 });
    await new Promise(setImmediate);
    expect(begun).toHaveLength(0);
    expect(await value(run(executor, 'total', [[1, 2]]))).toBe(3);
    expect(begun).toHaveLength(3);
  });

  it('reports type and times in the clock that it was given', async () => {
    const before = clock.nowMs();
    const result = await run(shared, 'zeros', [3]);
    expect(result).toMatchObject({ kind: 'success', type: 'Uint8Array' });
    const { startMs, stopMs } = result as { startMs: number; stopMs: number };
    expect(startMs).toBeGreaterThanOrEqual(before - 5);
    expect(stopMs).toBeGreaterThanOrEqual(startMs);
    expect(stopMs).toBeLessThanOrEqual(clock.nowMs() + 5);
  });

  it.each([0, 100, 20_000, 1_000_000])(
    'a result of %d bytes arrives whole, and serves as an input',
    async (nbytes) => {
      const made = await run(shared, 'zeros', [nbytes]);
      const bytes = (made as { value: Uint8Array }).value;
      expect(isZeros(deserialise(bytes), nbytes)).toBe(true);
      const inputs = new Map([['z', bytes]]);
      const spec = functions['echo']!;
      const packed = packArguments([new Input('z')], (it) =>
        it instanceof Input ? it.key : undefined,
      );
      const runSpec = {
        module: spec.module,
        name: 'echo',
        version: spec.version,
        args: packed.bytes,
      };
      for (let again = 0; again < 2; again++) {
        const echoed = await shared.run({ key: 'e', runSpec, inputs }, unaborted());
        expect(isZeros(deserialise((echoed as { value: Uint8Array }).value), nbytes)).toBe(true);
      }
    },
  );

  it('a task that changes its input does not change the stored one', async () => {
    const stored = serialise(new Uint8Array(100_000).fill(1));
    const large = new Uint8Array(new SharedArrayBuffer(stored.byteLength));
    large.set(stored);
    const spec = functions['mutate']!;
    const packed = packArguments([new Input('z')], (it) =>
      it instanceof Input ? it.key : undefined,
    );
    const runSpec = {
      module: spec.module,
      name: 'mutate',
      version: spec.version,
      args: packed.bytes,
    };
    const result = await shared.run(
      { key: 'm', runSpec, inputs: new Map([['z', large]]) },
      unaborted(),
    );
    expect(deserialise((result as { value: Uint8Array }).value)).toBe(99);
    expect(Buffer.compare(large, stored)).toBe(0);
  });

  it('an input that is a view of a larger frame is not sent with the whole frame', async () => {
    const packed = packArguments([1, 2], () => undefined);
    const frame = new Uint8Array(packed.bytes.byteLength + 1000);
    frame.set(packed.bytes, 500);
    const args = frame.subarray(500, 500 + packed.bytes.byteLength);
    const { module, version } = functions['add']!;
    const result = await shared.run(
      { key: 'k', runSpec: { module, name: 'add', version, args }, inputs: new Map() },
      unaborted(),
    );
    expect(deserialise((result as { value: Uint8Array }).value)).toBe(3);
    expect(args.byteLength).toBe(packed.bytes.byteLength);
  });

  it('an error keeps class, code, cause, properties and its stack in the thread', async () => {
    const remote = new RemoteError(await error(run(shared, 'throwRich')));
    expect(remote).toMatchObject({
      name: 'Problem',
      code: 'ERR_SAVE',
      data: { path: '/data/x' },
      cause: { code: 'ENOSPC' },
    });
    expect(remote.stack).toContain('sample-tasks.mjs');
  });

  it.each(['throwString', 'throwUndefined', 'throwNull', 'throwObject'])(
    '%s fails with a description',
    async (name) => {
      expect(await error(run(shared, name))).toMatchObject({ name: 'NonError' });
    },
  );

  it('a result that cannot be serialised, a missing function, and reschedule are reported', async () => {
    expect(await error(run(shared, 'returnFunction'))).toMatchObject({
      code: 'ERR_NOT_SERIALISABLE',
    });
    const { module, version } = functions['add']!;
    const missing = { module, name: 'ad', version, args: serialise([]) };
    expect(
      await error(shared.run({ key: 'k', runSpec: missing, inputs: new Map() }, unaborted())),
    ).toMatchObject({
      code: 'ERR_FUNCTION_MISSING',
    });
    expect(await run(shared, 'reschedule')).toEqual({ kind: 'reschedule' });
  });

  it('process.exit in a task fails that task with the code, and the thread is replaced', async () => {
    const executor = open({ threadCount: 2 });
    const bystander = run(executor, 'later', ['still here']);
    const failure = await error(run(executor, 'exit', [3]));
    expect(failure).toMatchObject({ code: 'ERR_TASK', data: { exitCode: 3, key: 'exit-1' } });
    expect(failure.message).toContain('exit code 3');
    expect(await value(bystander)).toBe('still here');
    expect(await Promise.all([1, 2, 3].map((n) => value(run(executor, 'double', [n]))))).toEqual([
      2, 4, 6,
    ]);
  });

  it('what a task posts to the parent port of its thread reaches nobody, and harms nobody', async () => {
    const executor = open();
    for (const message of [null, undefined, 'text', { op: 'done' }]) {
      expect(await value(run(executor, 'usePort', [message]))).toBe('returned');
      expect(executor.memoryBytes).toBeGreaterThan(0);
    }
    expect(await value(run(executor, 'double', [4]))).toBe(8);
  });

  it('a thread that runs out of memory fails its task and is replaced', async () => {
    const executor = open({ heapLimitMb: 32 });
    const failure = await error(run(executor, 'exhaustMemory'));
    expect(failure).toMatchObject({
      code: 'ERR_TASK',
      cause: { code: 'ERR_WORKER_OUT_OF_MEMORY' },
    });
    expect(failure.message).toContain('ran out of memory');
    expect(await value(run(executor, 'double', [4]))).toBe(8);
  });

  it('an error that nothing catches fails the task', async () => {
    const failure = await error(run(open(), 'throwLater'));
    expect(failure).toMatchObject({ code: 'ERR_TASK', cause: { message: 'from a timer' } });
  });

  it('abort reaches the task', async () => {
    const controller = new AbortController();
    const running = run(shared, 'waitForAbort', [], { signal: controller.signal });
    controller.abort();
    expect(await value(running)).toBe('aborted');
  });

  it('nothing listens to a signal any more when what it was for is over', async () => {
    const signal = unaborted();
    await value(run(shared, 'double', [1], { signal }));
    const noActor = { module: functions['double']!.module, name: 'double', args: new Uint8Array() };
    const actor = { key: 'an-actor', runSpec: noActor, inputs: new Map(), actorAt: 'tcp://w:1' };
    await error(shared.run(actor, signal));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('a task that ignores its abort loses its thread', async () => {
    const executor = open({ killGraceMs: 20 });
    const controller = new AbortController();
    const running = run(executor, 'spin', [], { signal: controller.signal });
    controller.abort();
    expect(await error(running)).toMatchObject({ code: 'ERR_CANCELLED' });
    expect(await value(run(executor, 'double', [4]))).toBe(8);
  });

  it('the caller of a cancellation may say how long the task can continue', async () => {
    const executor = open({ killGraceMs: 60_000 });
    const controller = new AbortController();
    const running = run(executor, 'spin', [], { signal: controller.signal });
    controller.abort(new RunAborted(20));
    expect(await error(running)).toMatchObject({
      code: 'ERR_CANCELLED',
      message: expect.stringContaining('continued for 20 ms') as string,
    });
  });

  it('more tasks than threads take turns', async () => {
    const results = Array.from({ length: 50 }, (_, n) => value(run(shared, 'double', [n])));
    expect(await Promise.all(results)).toEqual(Array.from({ length: 50 }, (_, n) => 2 * n));
  });

  it('close ends running and waiting tasks with ERR_CLOSED, and later ones too', async () => {
    const executor = open();
    const running = [run(executor, 'spin'), run(executor, 'never')];
    await executor.close();
    for (const result of [...running, run(executor, 'never')]) {
      expect(await error(result)).toMatchObject({ code: 'ERR_CLOSED' });
    }
  });

  it('a task that seceded and dies takes no thread from others', async () => {
    const executor = open();
    const dying = Array.from({ length: 3 }, () => run(executor, 'secedeAndDie'));
    expect(await value(run(executor, 'add', [1, 2]))).toBe(3);
    for (const end of dying) expect((await error(end)).message).toContain('exit code 3');
    expect(await value(run(executor, 'add', [2, 2]))).toBe(4);
  });

  it('runs tasks that secede and rejoin without a slot, and again on the same threads', async () => {
    const executor = open();
    const all = Array.from({ length: 5 }, (_, at) => value(run(executor, 'secedeTwice', [at])));
    expect(await Promise.all(all)).toEqual([0, 1, 2, 3, 4]);
    expect(await value(run(executor, 'add', [1, 2]))).toBe(3);
  });

  /** Hands over short runs in one turn; gives their outcomes and what stops each. */
  const beginShort = (
    executor: ThreadExecutor,
    calls: readonly (readonly [name: string, ...args: unknown[]])[],
  ): { readonly ends: Promise<ExecutionResult>[]; readonly aborts: AbortRun[] } => {
    const aborts: AbortRun[] = [];
    const ends = calls.map(
      ([name, ...args], index) =>
        new Promise<ExecutionResult>((resolve) => {
          const { module, version } = functions[name]!;
          const runSpec = { module, name, version, args: serialise(args) };
          const task = { key: `${name}-${index}`, runSpec, inputs: new Map(), isShort: true };
          aborts.push(executor.begin(task, undefined, resolve));
        }),
    );
    return { ends, aborts };
  };

  it('says that a run begins when its thread has started', async () => {
    const executor = open({ threadCount: 1 });
    const delays: Promise<void>[] = [];
    const slot = {
      secede: () => undefined,
      rejoin: () => Promise.resolve(),
      delay: (begun: Promise<void>) => void delays.push(begun),
    };
    const double = (key: string): Promise<unknown> => {
      const { module, version } = functions['double']!;
      const runSpec = { module, name: 'double', version, args: serialise([4]) };
      const task = { key, runSpec, inputs: new Map<string, Uint8Array>() };
      return value(new Promise((resolve) => executor.begin(task, slot, resolve)));
    };
    expect(await double('first')).toBe(8);
    expect(delays).toHaveLength(1);
    await delays[0];
    expect(await double('second')).toBe(8);
    expect(delays).toHaveLength(1);
  });

  it('short runs share threads and end with their own results, large ones too', async () => {
    const calls = Array.from({ length: 500 }, (_, n) => ['double', n] as const);
    const executor = open({ heldUpMs: Infinity });
    const { ends } = beginShort(executor, [...calls, ['zeros', 100_000], ['later', 'b']]);
    const results = await Promise.all(ends.map((end) => value(end)));
    expect(results.slice(0, 500)).toEqual(Array.from({ length: 500 }, (_, n) => 2 * n));
    expect(isZeros(results[500], 100_000)).toBe(true);
    expect(results[501]).toBe('b');
  });

  it('short runs come back when the one before them takes long', async () => {
    const executor = open({ killGraceMs: 0 });
    await value(run(executor, 'double', [1]));
    const { ends, aborts } = beginShort(executor, [['spin'], ['double', 1], ['double', 2]]);
    expect(await Promise.all(ends.slice(1))).toEqual([{ kind: 'returned' }, { kind: 'returned' }]);
    aborts[0]!();
    expect(await error(ends[0]!)).toMatchObject({ code: 'ERR_CANCELLED' });
  });

  it('a short run that is aborted before it begins comes back, the others are run', async () => {
    const executor = open({ heldUpMs: Infinity });
    await value(run(executor, 'double', [1]));
    const { ends, aborts } = beginShort(executor, [
      ['hold', 50],
      ['double', 1],
      ['double', 2],
    ]);
    await new Promise((resolve) => setImmediate(resolve));
    aborts[1]!();
    expect(await ends[1]).toEqual({ kind: 'returned' });
    expect(await value(ends[2]!)).toBe(4);
  });

  it('when a thread dies the run that it was at fails, and those in line are run', async () => {
    const executor = open({ heldUpMs: Infinity });
    const { ends } = beginShort(executor, [
      ['double', 1],
      ['exit', 3],
      ['double', 2],
    ]);
    expect(await value(ends[0]!)).toBe(2);
    expect(await error(ends[1]!)).toMatchObject({ data: { exitCode: 3, key: 'exit-1' } });
    expect(await value(ends[2]!)).toBe(4);
  });

  it('those in line behind a task that secedes go to another thread', async () => {
    const executor = open({ heldUpMs: Infinity });
    const { ends } = beginShort(executor, [
      ['secedeTwice', 7],
      ['double', 1],
      ['double', 2],
    ]);
    expect(await Promise.all(ends.map((end) => value(end)))).toEqual([7, 2, 4]);
  });
});

it('what tasks leave behind in a thread is collected as soon as that is requested', async () => {
  // So few that the engine has no reason to collect them by itself.
  const nbytes = 4_000_000;
  const left = async (options: Partial<ThreadExecutorOptions>): Promise<number> => {
    const executor = new ThreadExecutor({ clock, threadCount: 1, killGraceMs: 5000, ...options });
    try {
      for (let round = 0; round < 6; round++) {
        await run(executor, 'echo', [new Input('x')], { inputs: { x: new Uint8Array(nbytes) } });
      }
      await run(executor, 'add', [1, 2]);
      return executor.memoryBytes;
    } finally {
      await executor.close();
    }
  };
  const tidy = await left({ tidyBytes: nbytes });
  expect(await left({})).toBeGreaterThan(tidy + nbytes);
});
