import {
  type ErrorPayload,
  type ExecutableTask,
  type ExecutionResult,
  type FunctionSpec,
  type TaskSlot,
  toErrorPayload,
  YardmasterError,
} from '../../core/api/index.ts';
import { unpackArguments } from './arguments.ts';
import { callInTask, contextOf, endRun, isReschedule } from './context.ts';
import { loadFunction } from './load-function.ts';
import { serialise, typeName } from './serialise.ts';
import type { TaskSurroundings } from './surroundings.ts';

/** What a task is run with. */
export interface RunOptions {
  readonly signal: AbortSignal;
  /** The clock of `startMs` and `stopMs`, which enclose the call alone. */
  readonly nowMs: () => number;
  /** What `secede` and `rejoin` act on. Default: nothing. */
  readonly slot?: TaskSlot | undefined;
  /** Default: none, so that it cannot have a client. */
  readonly surroundings?: TaskSurroundings | undefined;
}

/**
 * Runs a task in this thread: finds its function, puts the inputs into the arguments, calls it, awaits
 * and serialises what it returns. Never rejects. Used by every executor.
 */
export async function runTask(
  task: ExecutableTask,
  { signal, nowMs, slot, surroundings }: RunOptions,
): Promise<ExecutionResult> {
  const context = contextOf({ key: task.key, signal, slot, surroundings });
  try {
    const spec = functionSpec(task);
    const found = loadFunction(spec);
    const fn = typeof found === 'function' ? found : await found;
    const args = unpackArguments(spec.args, task.inputs) as never[];
    const startMs = nowMs();
    const returned = callInTask(context, () => fn(...args));
    const result = isThenable(returned) ? await returned : returned;
    const stopMs = nowMs();
    const value = serialise(result, 'result', sharedBytes);
    return { kind: 'success', value, type: typeName(result), startMs, stopMs };
  } catch (thrown) {
    if (isReschedule(thrown)) return { kind: 'reschedule' };
    return { kind: 'failure', error: describeFailure(thrown) };
  } finally {
    endRun(context);
  }
}

/**
 * The payload of anything that was thrown, made of nothing but plain data: it passes every boundary
 * between threads and processes, whatever the error carried.
 */
export function describeFailure(thrown: unknown): ErrorPayload {
  try {
    return JSON.parse(JSON.stringify(toErrorPayload(thrown))) as ErrorPayload;
  } catch (cause) {
    // A property that recurses, or a getter that throws.
    return {
      name: textOf(thrown, 'name') ?? 'Error',
      message:
        textOf(thrown, 'message') ??
        `the task threw something that cannot be described (${String(cause)})`,
      stack: textOf(thrown, 'stack') ?? '',
      code: textOf(thrown, 'code') ?? 'ERR_TASK',
    };
  }
}

function textOf(thrown: unknown, property: string): string | undefined {
  try {
    const value = (thrown as Record<string, unknown>)[property];
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Results are read by many threads, and changed by none. */
function sharedBytes(nbytes: number): Uint8Array {
  return new Uint8Array(new SharedArrayBuffer(nbytes));
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}

function functionSpec({ key, runSpec }: ExecutableTask): FunctionSpec {
  const spec = (runSpec ?? {}) as Partial<FunctionSpec>;
  if (
    typeof spec.module === 'string' &&
    typeof spec.name === 'string' &&
    typeof spec.version === 'string' &&
    spec.args instanceof Uint8Array
  ) {
    return spec as FunctionSpec;
  }
  throw new YardmasterError(
    'ERR_PROTOCOL',
    `the task "${key}" does not name a function as { module, name, version, args }`,
    { key },
  );
}
