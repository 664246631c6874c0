import type { ExecutableTask, ExecutionResult, FunctionSpec } from '../../core/api/index.ts';
import { isPromise } from '../../core/util/is-promise.ts';
import { callerIn } from './actors/callers.ts';
import { readResult } from './actors/handle.ts';
import { unpackArguments } from './arguments.ts';
import {
  callInTask,
  contextOf,
  endRun,
  isReschedule,
  type RunContext,
  type TaskRun,
} from './context.ts';
import type { AnyFunction } from './task-function.ts';
import { describeFailure } from './failure.ts';
import { functionSpec, loadFunction } from './load-function.ts';
import { keepResult, readKept, readRepeated } from './kept-result.ts';
import { withRetries } from './retries.ts';
import { typeName } from '../../core/util/type-name.ts';
import { serialise } from './serialise.ts';

/** What a task is run with. */
export interface RunOptions extends TaskRun {
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
    const fn = loadFunction(spec, options.surroundings);
    const call: Call = { task, spec, context, nowMs: options.nowMs };
    const result =
      typeof fn === 'function'
        ? callByRules(fn, call)
        : fn.then((loaded) => callByRules(loaded, call));
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
}

/** Or several times, or from a store, when its description says so. */
function callByRules(fn: AnyFunction, call: Call): ExecutionResult | Promise<ExecutionResult> {
  const { retry, persist } = call.spec;
  if (retry === undefined && persist === undefined) return callTask(fn, call);
  const { key } = call.task;
  if (persist?.isKept === true) return readKept(persist, key, call);
  const run = (): ExecutionResult | Promise<ExecutionResult> =>
    retry === undefined
      ? callTask(fn, call)
      : withRetries(async () => callTask(fn, call), retry, call.context);
  if (persist === undefined) return run();
  if (call.task.isRepeated !== true) return keepResult(run(), persist, key, call);
  return readRepeated(persist, key, call).then(
    (found) => found ?? keepResult(run(), persist, key, call),
  );
}

function callTask(fn: AnyFunction, call: Call): ExecutionResult | Promise<ExecutionResult> {
  const { task, context, nowMs } = call;
  const args = unpackArguments(call.spec.args, task.inputs, (bytes) =>
    readResult(bytes, callerIn(context)),
  ) as never[];
  const startMs = nowMs();
  const returned = callInTask(context, () => fn(...args));
  if (!isPromise(returned)) return succeeded(returned, startMs, nowMs());
  return Promise.resolve(returned).then((result) => succeeded(result, startMs, nowMs()));
}

function succeeded(result: unknown, startMs: number, stopMs: number): ExecutionResult {
  const value = serialise(result, 'result', sharedBytes, true);
  return { kind: 'success', value, type: typeName(result), startMs, stopMs };
}

function failed(thrown: unknown): ExecutionResult {
  if (isReschedule(thrown)) return { kind: 'reschedule' };
  return { kind: 'failure', error: describeFailure(thrown) };
}

/** Results are read by many threads, and changed by none. */
function sharedBytes(nbytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(nbytes));
}
