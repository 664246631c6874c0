import type { ExecutableTask, ExecutionResult, TaskSlot } from '../../core/api/index.ts';
import { callerIn } from './actors/callers.ts';
import { readResult } from './actors/handle.ts';
import { unpackArguments } from './arguments.ts';
import { callInTask, contextOf, endRun, isReschedule } from './context.ts';
import { describeFailure } from './failure.ts';
import { functionSpec, loadFunction } from './load-function.ts';
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
    const args = unpackArguments(spec.args, task.inputs, (bytes) =>
      readResult(bytes, callerIn(context)),
    ) as never[];
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
