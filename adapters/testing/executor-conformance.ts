import assert from 'node:assert/strict';
import {
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  type Executor,
  type ExecutorContext,
  type FunctionSpec,
  RunAborted,
  YardmasterError,
} from '../../core/api/index.ts';
import { SystemClock } from '../clocks/index.ts';
import { workerContext, type WorkerContext } from '../executors/worker-context.ts';
import {
  AllowedModules,
  deserialise,
  packArguments,
  serialise,
  sourceVersion,
} from '../tasks/index.ts';
import { type Clauses, registerClauses, type TestRunner, Unproven } from './clauses.ts';

/** An executor and what the clauses need to know about it. */
export interface ExecutorHarness {
  /** Makes the executor, as a worker does: `(context) => mine.create(context, {})`. */
  create(context: ExecutorContext): Executor;
  /**
   * False when a function runs apart from its module, so that it reaches neither what surrounds it there nor
   * `currentTask()`. The clauses about these are skipped then. Default true.
   */
  readonly runsInModule?: boolean;
  /** It ends tasks that ignore their signal. The clauses about these are skipped without it. Default false. */
  readonly endsTasks?: boolean;
  /** Milliseconds that one clause may take. Default 4000: less than test runners allow. */
  readonly clauseMs?: number;
  /** After each clause. */
  close?(): void | Promise<void>;
}

/**
 * Registers one test for each clause of the contract in `Executor`:
 *
 *     import { describe, it } from 'vitest';
 *     executorConformance('mine', () => ({ create: (context) => mine.create(context, {}) }), { describe, it });
 *
 * @param makeHarness - called for each clause
 * @throws YardmasterError `ERR_CONFIG` when it is no function, or the runner is missing
 */
export function executorConformance(
  name: string,
  makeHarness: () => ExecutorHarness | Promise<ExecutorHarness>,
  runner: TestRunner,
): void {
  registerClauses(SUITE, name, makeHarness, runner);
}

/** The tasks of the clauses. Those without `current` need nothing that surrounds them. */
const TASKS = `data:text/javascript,${encodeURIComponent(`
export const sum = (a, b) => a + b;
export const echo = (...args) => args;
export const later = async (value) => { await new Promise((resolve) => setTimeout(resolve, 5)); return value; };
export const until = async (timeMs) => { while (Date.now() < timeMs) await new Promise((resolve) => setTimeout(resolve, 1)); };
export const never = () => new Promise((resolve) => setTimeout(resolve, 2 ** 30).unref());
export const refuse = (value) => { throw value; };
export const fail = () => { throw Object.assign(new RangeError('too far', { cause: new Error('inner') }), { code: 'ERR_FAR', limit: 3 }); };
export const failUntil = (timeMs) => { if (Date.now() < timeMs) throw new Error('too early'); return 'in time'; };
export const change = (list) => { list.push('changed'); return list.length; };
export const unsendable = () => () => 0;
const current = () => globalThis[Symbol.for('yardmaster.taskContext')].getStore();
export const keyOfTask = () => current().key;
export const reschedule = () => current().reschedule();
export const untilAborted = () => new Promise((resolve) => { const { signal } = current(); if (signal.aborted) resolve('aborted'); signal.addEventListener('abort', () => resolve('aborted')); });
export const leave = async () => { const task = current(); task.secede(); await task.rejoin(); return 'back'; };
export class Counter { count = 0; add(n) { return (this.count += n); } }
`)}`;

const NEVER = new AbortController().signal;
const CLAUSE_MS = 4000;
const KILL_GRACE_MS = 50;

interface RunOptions extends Pick<FunctionSpec, 'retry'> {
  readonly signal?: AbortSignal;
  /** Results of other tasks, by the key that stands for them among the arguments: `{ x: 5 }` for `new Input('x')`. */
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly slot?: { secede(): void; rejoin(): Promise<void> };
  readonly actorAt?: string;
  readonly executor?: Executor;
  readonly module?: string;
}

/** Stands for the result of another task. */
class Input {
  constructor(readonly key: string) {}
}

class Bench {
  readonly executor: Executor;
  private readonly contexts: WorkerContext[] = [];
  private readonly clock = new SystemClock();
  private tasks = 0;

  constructor(readonly harness: ExecutorHarness) {
    this.executor = this.make();
  }

  /** @param modules - which the executor may load. Default: all */
  make(modules?: AllowedModules): Executor {
    const silent = (): void => undefined;
    const context = workerContext({
      clock: this.clock,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      ...{ threadCount: 2, killGraceMs: KILL_GRACE_MS },
      ...(modules && { cluster: { scheduler: 'tcp://127.0.0.1:1', transports: [], modules } }),
    });
    this.contexts.push(context);
    return this.harness.create(context);
  }

  /** @throws Unproven when functions run apart from their module */
  needsModule(): void {
    if (this.harness.runsInModule === false)
      throw new Unproven('the harness says runsInModule: false');
  }

  task(
    name: string,
    args: readonly unknown[],
    { retry, inputs = {}, actorAt, module = TASKS }: RunOptions = {},
  ): ExecutableTask {
    const { bytes } = packArguments(args, (value) =>
      value instanceof Input ? value.key : undefined,
    );
    const version = sourceVersion(module);
    const runSpec: FunctionSpec = {
      module,
      name,
      version,
      args: bytes,
      ...(retry && { retry }),
    };
    const values = Object.entries(inputs).map(([key, value]) => [key, serialise(value)] as const);
    const key = `${name}-${this.tasks++}`;
    return { key, runSpec, inputs: new Map(values), ...(actorAt === undefined ? {} : { actorAt }) };
  }

  run(
    name: string,
    args: readonly unknown[] = [],
    options: RunOptions = {},
  ): Promise<ExecutionResult> {
    const { signal = NEVER, slot, executor = this.executor } = options;
    return this.inTime(executor.run(this.task(name, args, options), signal, slot), name);
  }

  async value(name: string, args: readonly unknown[] = [], options?: RunOptions): Promise<unknown> {
    const result = await this.run(name, args, options);
    if (result.kind === 'success') return deserialise(result.value);
    return assert.fail(`"${name}" ended with ${JSON.stringify(result)}`);
  }

  async failure(running: Promise<ExecutionResult>): Promise<ErrorPayload> {
    const result = await running;
    return result.kind === 'failure' ? result.error : assert.fail(`it ended as ${result.kind}`);
  }

  async inTime<T>(promise: Promise<T>, what: string): Promise<T> {
    const ms = this.harness.clauseMs ?? CLAUSE_MS;
    const late = new AbortController();
    const timeout = new Promise<never>((_resolve, reject) => {
      const timer = this.clock.setTimer(ms, () => {
        reject(new YardmasterError('ERR_TIMEOUT', `${what} did not end within ${ms} ms`));
      });
      late.signal.addEventListener('abort', () => timer.cancel());
    });
    const ended = Promise.race([promise, timeout]).finally(() => late.abort());
    ended.catch(() => undefined); // A clause that has failed before does not wait for it.
    return ended;
  }

  async close(): Promise<void> {
    try {
      await this.inTime(this.executor.close(), 'close');
    } finally {
      for (const context of this.contexts) context.close();
      await this.harness.close?.();
    }
  }
}

const CLAUSES: Clauses<Bench> = {
  async 'threadCount is a whole number, at least 1'({ executor }) {
    assert(Number.isInteger(executor.threadCount) && executor.threadCount >= 1);
    return Promise.resolve();
  },

  async 'a function gets its arguments, and its result is serialised'(bench) {
    assert.equal(await bench.value('sum', [2, 3]), 5);
    const given = [
      { list: [1, 'two', null, undefined, 3n], bytes: new Uint8Array([1, 255]) },
      new Map([['k', 1]]),
      new Date(5),
    ];
    assert.deepEqual(await bench.value('echo', given), given);
  },

  async 'the results of other tasks stand in their places among the arguments'(bench) {
    const args = [new Input('x'), { nested: [new Input('y')] }];
    const value = await bench.value('echo', args, { inputs: { x: 5, y: { deep: true } } });
    assert.deepEqual(value, [5, { nested: [{ deep: true }] }]);
  },

  async 'a task that changes its arguments changes no stored result'(bench) {
    const task = bench.task('change', [new Input('x')], { inputs: { x: ['a'] } });
    for (let time = 0; time < 2; time++) {
      const result = await bench.inTime(bench.executor.run(task, NEVER), 'change');
      assert.equal(result.kind === 'success' && deserialise(result.value), 2);
    }
  },

  async 'a promise is awaited, and the times of a result enclose the call'(bench) {
    const result = await bench.run('later', ['done']);
    assert(result.kind === 'success', JSON.stringify(result));
    assert.equal(deserialise(result.value), 'done');
    assert.equal(result.type, 'string');
    assert(result.stopMs - result.startMs >= 4, `${result.startMs} to ${result.stopMs}`);
  },

  async 'an error keeps its class, message, code, cause and properties'(bench) {
    const error = await bench.failure(bench.run('fail'));
    assert.equal(error.name, 'RangeError');
    assert.equal(error.message, 'too far');
    assert.equal(error.code, 'ERR_FAR');
    assert.equal(error.cause?.message, 'inner');
    assert.deepEqual(error.data, { limit: 3 });
  },

  async 'anything that is thrown is a failure, never a rejection'(bench) {
    for (const thrown of ['text', 7, null, undefined, { plain: true }]) {
      assert.equal((await bench.failure(bench.run('refuse', [thrown]))).name, 'NonError');
    }
  },

  async 'a result that cannot be serialised fails its task alone'(bench) {
    await bench.failure(bench.run('unsendable'));
    assert.equal(await bench.value('sum', [1, 1]), 2);
  },

  async 'a function that does not exist is ERR_FUNCTION_MISSING'(bench) {
    assert.equal((await bench.failure(bench.run('missing'))).code, 'ERR_FUNCTION_MISSING');
  },

  async 'a module that the worker does not permit is not loaded'(bench) {
    const executor = bench.make(new AllowedModules([]));
    try {
      // Modules that another worker of the process has loaded are there.
      const module = `${TASKS}//${performance.now()}`;
      const error = await bench.failure(bench.run('sum', [1, 1], { executor, module }));
      assert.equal(error.code, 'ERR_MODULE_REFUSED');
    } finally {
      await executor.close();
    }
  },

  async 'threadCount tasks run at once'(bench) {
    const { threadCount } = bench.executor;
    const all = Array.from({ length: threadCount });
    await Promise.all(all.map(() => bench.value('sum', [1, 1])));
    // A busy machine may begin one late.
    for (const waitMs of [50, 200, 800, 1600]) {
      const timeMs = Date.now() + waitMs;
      const results = await Promise.all(all.map(() => bench.run('until', [timeMs])));
      const times = results.filter((result) => result.kind === 'success');
      assert.equal(times.length, threadCount);
      const lastStartMs = Math.max(...times.map(({ startMs }) => startMs));
      if (lastStartMs < Math.min(...times.map(({ stopMs }) => stopMs))) return;
    }
    assert.fail('they ran one after the other');
  },

  async 'more tasks than that all end'(bench) {
    const sums = Array.from({ length: 20 }, (_, n) => bench.value('sum', [n, n]));
    assert.deepEqual(
      await Promise.all(sums),
      sums.map((_, n) => 2 * n),
    );
  },

  async 'the rules for retries are followed'(bench) {
    const retry = { times: 100, backoffMs: 10, factor: 1, jitter: 0 };
    assert.equal(await bench.value('failUntil', [Date.now() + 50], { retry }), 'in time');
  },

  async 'a task knows its key'(bench) {
    bench.needsModule();
    assert.match(String(await bench.value('keyOfTask')), /^keyOfTask-\d+$/);
  },

  async 'a task that asks for it is rescheduled'(bench) {
    bench.needsModule();
    assert.deepEqual(await bench.run('reschedule'), { kind: 'reschedule' });
  },

  async 'a task gives its place away and gets it back'(bench) {
    bench.needsModule();
    const calls: string[] = [];
    const slot = {
      secede: () => void calls.push('secede'),
      rejoin: () => {
        calls.push('rejoin');
        return Promise.resolve();
      },
    };
    assert.equal(await bench.value('leave', [], { slot }), 'back');
    assert.deepEqual(calls, ['secede', 'rejoin']);
  },

  async 'the signal of a task is aborted with that of its run'(bench) {
    bench.needsModule();
    const abort = new AbortController();
    const running = bench.run('untilAborted', [], { signal: abort.signal });
    await bench.value('sum', [1, 1]);
    abort.abort(new RunAborted(CLAUSE_MS));
    const result = await running;
    assert(result.kind === 'success' || result.kind === 'failure');
  },

  async 'a task that ignores its signal is ended, and others run after it'(bench) {
    if (bench.harness.endsTasks !== true)
      throw new Unproven('the harness does not say endsTasks: true');
    const abort = new AbortController();
    const running = bench.run('never', [], { signal: abort.signal });
    abort.abort(new RunAborted(KILL_GRACE_MS));
    await bench.failure(running);
    assert.equal(await bench.value('sum', [1, 1]), 2);
  },

  async 'an actor keeps its state until it is released'(bench) {
    const { executor } = bench;
    if (executor.callActor === undefined) throw new Unproven('the executor has no "callActor"');
    const made = bench.task('Counter', [], { actorAt: 'here' });
    assert.equal((await bench.inTime(executor.run(made, NEVER), 'Counter')).kind, 'success');
    const args = packArguments([2], () => undefined).bytes;
    for (const count of [2, 4]) {
      const result: ExecutionResult = await bench.inTime(
        executor.callActor({ key: made.key, member: 'add', args }),
        'add',
      );
      assert(result.kind === 'success', JSON.stringify(result));
      assert.equal(deserialise(result.value), count);
    }
    executor.releaseActor?.(made.key);
    const call = executor.callActor({ key: made.key, member: 'add', args });
    assert.equal((await bench.failure(bench.inTime(call, 'add'))).code, 'ERR_ACTOR_LOST');
  },

  async 'a run that begins ahead of time ends once, and not within the call'(bench) {
    const { executor } = bench;
    if (executor.begin === undefined) throw new Unproven('the executor has no "begin"');
    let isWithin = true;
    const ended = new Promise<ExecutionResult>((resolve, reject) => {
      const slot = { secede: () => undefined, rejoin: () => Promise.resolve() };
      const task = { ...bench.task('sum', [1, 1]), isShort: true };
      executor.begin?.(task, slot, (result) => {
        if (isWithin) reject(new Error('it ended within the call'));
        resolve(result);
      });
    });
    isWithin = false;
    assert.equal((await bench.inTime(ended, 'sum')).kind, 'success');
  },

  async 'close fails what runs and what comes later, and may be called again'(bench) {
    const { executor } = bench;
    await bench.value('sum', [1, 1]);
    const running = bench.run('never');
    await bench.inTime(executor.close(), 'close');
    await bench.failure(running);
    await bench.failure(bench.run('sum', [1, 1]));
    await bench.inTime(executor.close(), 'close');
  },
};

const SUITE = {
  usage:
    "executorConformance('mine', () => ({ create: (context) => mine.create(context, {}) }), { describe, it })",
  what: 'an executor',
  clauses: CLAUSES,
  benchOf: (harness: ExecutorHarness) => new Bench(harness),
};
