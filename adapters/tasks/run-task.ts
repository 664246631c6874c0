import { createHash } from 'node:crypto';
import {
  asError,
  type Clock,
  type ExecutableTask,
  type ExecutionResult,
  type FunctionSpec,
  type RetrySpec,
  type RunSettings,
  type TaskCall,
  YardmasterError,
} from '../../core/api/index.ts';
import { pause, untilAborted } from '../../core/shared/timers.ts';
import { isPromise, typeName } from '../../core/util/values.ts';
import { SystemClock } from '../clocks/index.ts';
import { callerIn, readResult } from './actor-handle.ts';
import { unpackArguments } from './arguments.ts';
import { type ChunkResult, runChunk, serialiseChunk } from './chunk.ts';
import {
  callInTask,
  contextOf,
  describeFailure,
  endRun,
  isReschedule,
  RetriesFailed,
  type RunContext,
  type TaskRun,
  type TaskSurroundings,
} from './context.ts';
import type { AnyFunction } from './define-tasks.ts';
import { readKept, runKept } from './kept-result.ts';
import { functionSpec, loadFunction } from './load-function.ts';
import { urlOf } from './modules.ts';
import { serialiseResult } from './serialise.ts';

export interface RunOptions extends TaskRun, Pick<RunSettings, 'call'> {
  /** The clock of `startMs` and `stopMs`, which enclose the call alone. */
  readonly nowMs: () => number;
}

/**
 * Runs a task in this thread: finds its function, puts the inputs into the arguments, calls it, awaits
 * and serialises what it returns. Never rejects. Used by every executor.
 *
 * @returns a promise only when the task has to be waited for, or its module
 */
export function startTask(
  task: ExecutableTask,
  options: RunOptions,
): ExecutionResult | Promise<ExecutionResult> {
  const context = contextOf(task.key, options);
  const end = (result: ExecutionResult): ExecutionResult => {
    endRun(context);
    return result;
  };
  try {
    const spec = functionSpec(task);
    const call: Call = { task, spec, context, nowMs: options.nowMs, make: options.call };
    const { persist } = spec;
    const result = persist?.isKept === true ? readKept(persist, call) : loadAndCall(call);
    return result instanceof Promise ? result.catch(failed).then(end) : end(result);
  } catch (thrown) {
    return end(failed(thrown));
  }
}

/** As {@link startTask}, always with a promise. */
export async function runTask(task: ExecutableTask, options: RunOptions): Promise<ExecutionResult> {
  return startTask(task, options);
}

interface Call {
  readonly task: ExecutableTask;
  readonly spec: FunctionSpec;
  readonly context: RunContext;
  readonly nowMs: () => number;
  readonly make: RunSettings['call'];
}

function loadAndCall(call: Call): ExecutionResult | Promise<ExecutionResult> {
  const fn = loadFunction(call.spec, call.context.surroundings);
  return typeof fn === 'function'
    ? callByRules(fn, call)
    : fn.then((loaded) => callByRules(loaded, call));
}

/** Or several times, or from a store, when its description says so. */
function callByRules(fn: AnyFunction, call: Call): ExecutionResult | Promise<ExecutionResult> {
  const { retry, persist } = call.spec;
  if (retry === undefined && persist === undefined) return callTask(fn, call);
  const run = (): ExecutionResult | Promise<ExecutionResult> =>
    retry === undefined || call.spec.each !== undefined
      ? callTask(fn, call)
      : withRetries(async () => callTask(fn, call), retry, call.context);
  return persist === undefined ? run() : runKept(run, persist, call);
}

function callTask(fn: AnyFunction, call: Call): ExecutionResult | Promise<ExecutionResult> {
  const { context, nowMs, make, spec } = call;
  const args = argumentsOf(call) as never[];
  const startMs = nowMs();
  const callWith = (its: readonly unknown[]): unknown =>
    make === undefined ? fn(...(its as never[])) : make(callOf(fn, spec, its));
  const returned = callInTask(context, () =>
    spec.each === undefined ? callWith(args) : callEach(spec.each, args, callWith, call),
  );
  const succeeded = (result: unknown): ExecutionResult => {
    const stopMs = nowMs();
    const value =
      spec.each === undefined ? serialiseResult(result) : serialiseChunk(result as ChunkResult);
    return { kind: 'success', value, type: typeName(result), startMs, stopMs };
  };
  return isPromise(returned) ? Promise.resolve(returned).then(succeeded) : succeeded(returned);
}

/** Retries by rules are those of an item. */
function callEach(
  each: readonly number[],
  args: readonly unknown[],
  callWith: (its: readonly unknown[]) => unknown,
  { spec, context, nowMs }: Call,
): unknown {
  const { retry } = spec;
  const call =
    retry === undefined
      ? callWith
      : (its: readonly unknown[]) =>
          withRetries(() => Promise.resolve(its).then(callWith), retry, context);
  const { signal } = context;
  return runChunk({ args, each, nbytes: spec.args.byteLength, signal, nowMs, call });
}

function argumentsOf({ spec, task, context }: Pick<Call, 'spec' | 'task' | 'context'>): unknown[] {
  return unpackArguments(spec.args, task.inputs, (bytes) => readResult(bytes, callerIn(context)));
}

function callOf(
  fn: AnyFunction,
  { module, name }: FunctionSpec,
  args: readonly unknown[],
): TaskCall {
  return { module: urlOf(module), name, fn: fn as TaskCall['fn'], args };
}

/** The call of a task, which is not made. @throws YardmasterError as {@link loadFunction} */
export async function loadCall(
  task: ExecutableTask,
  surroundings: TaskSurroundings | undefined,
): Promise<TaskCall> {
  const spec = functionSpec(task);
  if (spec.each !== undefined) {
    const message = `"${task.key}" is a chunk of many calls, which this executor does not make; submit them one by one`;
    throw new YardmasterError('ERR_EXECUTOR', message, { key: task.key });
  }
  const fn = await loadFunction(spec, surroundings);
  const context = contextOf(task.key, { surroundings });
  return callOf(fn, spec, argumentsOf({ spec, task, context }));
}

function failed(thrown: unknown): ExecutionResult {
  if (isReschedule(thrown)) return { kind: 'reschedule' };
  return { kind: 'failure', error: describeFailure(thrown) };
}

const NO_ARGUMENTS = new Uint8Array(0);
const systemClock = new SystemClock();

/**
 * Calls a function until it succeeds, or the rules say that it has failed. The task is parked meanwhile: its thread
 * runs others. A task that is cancelled is not called again.
 */
async function withRetries<T>(
  call: () => Promise<T>,
  rules: RetrySpec,
  context: RunContext,
): Promise<T> {
  const { signal } = context;
  for (let attempt = 1; ; attempt++) {
    context.attempt = attempt;
    try {
      return await call();
    } catch (thrown) {
      if (signal.aborted || isReschedule(thrown)) throw thrown;
      const mayRetry = attempt <= rules.times && (await isWorthRetry(rules, thrown, context));
      if (!mayRetry) throw new RetriesFailed(thrown, attempt);
      const isAborted = await parkedFor(retryDelayMs(rules, context.key, attempt), context);
      if (isAborted) throw thrown;
    }
  }
}

/** Milliseconds before the retry that follows this attempt, the first being 1. The same for the same key. */
export function retryDelayMs(
  { backoffMs, factor, jitter }: Pick<RetrySpec, 'backoffMs' | 'factor' | 'jitter'>,
  key: string,
  attempt: number,
): number {
  const fullMs = backoffMs * factor ** (attempt - 1);
  if (jitter === 0) return fullMs;
  const digest = createHash('sha256').update(`${attempt}\0${key}`).digest();
  return fullMs * (1 - (jitter * digest.readUInt32BE(0)) / 2 ** 32);
}

async function isWorthRetry(
  { retryIf }: RetrySpec,
  thrown: unknown,
  { surroundings, attempt }: RunContext,
): Promise<boolean> {
  if (retryIf === undefined) return true;
  const decide = await loadFunction({ ...retryIf, args: NO_ARGUMENTS }, surroundings);
  try {
    return Boolean(await decide(thrown as never));
  } catch (fault) {
    const error = asError(fault);
    if (error !== thrown) error.cause ??= thrown;
    throw new RetriesFailed(error, attempt);
  }
}

/** Waits without the slot of the run, and without its place in its limit. Returns whether the run was aborted meanwhile. */
async function parkedFor(ms: number, context: RunContext): Promise<boolean> {
  const { signal, surroundings } = context;
  const clock: Clock = surroundings?.clock ?? systemClock;
  context.park();
  context.pause();
  if (!(await pause(clock, ms, signal))) await untilAborted(context.resume(), signal);
  await context.rejoin();
  return signal.aborted;
}
