import type { ErrorPayload } from '../../core/api/index.ts';
import { isPromise } from '../../core/util/values.ts';
import { describeFailure, isReschedule } from './context.ts';
import { deserialise, serialiseResult } from './serialise.ts';

// Many small calls of one function in one task: a chunk is a task whose result has the outcome of each call.

export interface ChunkResult {
  /** In the order of the items; undefined for those that failed. */
  readonly values: readonly unknown[];
  readonly failures: readonly { readonly at: number; readonly error: ErrorPayload }[];
  /** Milliseconds of all calls. */
  readonly durationMs: number;
  /** Bytes of the items. */
  readonly nbytes: number;
}

interface ChunkCalls {
  /** Arguments of the task: those at the places in `each` have one value for each call, the others are the same for all. */
  readonly args: readonly unknown[];
  readonly each: readonly number[];
  readonly nbytes: number;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  readonly call: (args: readonly unknown[]) => unknown;
}

/** Makes the calls one after the other. A failure is one of its item; only an abort and `reschedule` end the chunk. */
export function runChunk(calls: ChunkCalls): ChunkResult | Promise<ChunkResult> {
  const { args, each, nbytes, signal, nowMs, call } = calls;
  const columns = each.map((place) => args[place] as readonly unknown[]);
  const count = columns[0]?.length ?? 0;
  const values = new Array<unknown>(count).fill(undefined);
  const failures: { at: number; error: ErrorPayload }[] = [];
  const startMs = nowMs();
  const fail = (at: number, thrown: unknown): void => {
    if (isReschedule(thrown) || signal.aborted) throw thrown;
    failures.push({ at, error: describeFailure(thrown) });
  };
  /** Until one of them has to be waited for. */
  const callFrom = (first: number): { at: number; pending: PromiseLike<unknown> } | undefined => {
    for (let at = first; at < count; at++) {
      const its = args.slice();
      for (const [index, place] of each.entries()) its[place] = columns[index]?.[at];
      try {
        const returned = call(its);
        if (isPromise(returned)) return { at, pending: returned };
        values[at] = returned;
      } catch (thrown) {
        fail(at, thrown);
      }
    }
    return undefined;
  };
  const result = (): ChunkResult => ({
    ...{ values, failures, nbytes },
    durationMs: nowMs() - startMs,
  });
  let open = callFrom(0);
  if (open === undefined) return result();
  const wait = async (): Promise<ChunkResult> => {
    while (open !== undefined) {
      const { at, pending } = open;
      try {
        values[at] = await pending;
      } catch (thrown) {
        fail(at, thrown);
      }
      signal.throwIfAborted();
      open = callFrom(at + 1);
    }
    return result();
  };
  return wait();
}

/** Bytes of what was computed. A result that cannot be serialised is a failure of its item alone. */
export function serialiseChunk(result: ChunkResult): Uint8Array {
  try {
    return serialiseResult(result);
  } catch {
    const values = result.values.slice();
    const failures = result.failures.slice();
    for (const [at, value] of values.entries()) {
      try {
        serialiseResult(value);
      } catch (thrown) {
        values[at] = undefined;
        failures.push({ at, error: describeFailure(thrown) });
      }
    }
    return serialiseResult({ ...result, values, failures });
  }
}

/** True when one of its items has failed, so that the chunk is to be computed again. O(bytes). */
export function hasFailures(chunk: Uint8Array): boolean {
  return (deserialise(chunk) as ChunkResult).failures.length > 0;
}
