import { RemoteError } from '../../core/api/index.ts';
import type { ChunkResult } from '../tasks/index.ts';
import type { Future } from './future.ts';
import { Constant } from './graph.ts';

// Small calls in chunks: the size of a chunk, its arguments, and the outcome of each of its items.

/** The duration that tasks shall have: long beside what a task costs, short beside the patience of others. */
const TARGET_MS = 10;
/** Bytes of the items of a chunk, about. */
const TARGET_BYTES = 1024 * 1024;
const COUNT_MAX = 65_536;
/** A first measurement is that of cold code, so that a size is not to be trusted when it jumps. */
const GROWTH_MAX = 32;

/** The number of items in the next chunk: given, or by the duration and the bytes of those that were measured. */
export class ChunkSize {
  count: number;
  readonly isMeasured: boolean;
  private itemMs = 0;
  private itemBytes = 0;

  constructor(chunk: number | 'auto') {
    this.isMeasured = chunk === 'auto';
    this.count = chunk === 'auto' ? 1 : chunk;
  }

  /** O(1), called once for each chunk. */
  note(count: number, { durationMs, nbytes }: ChunkResult): void {
    if (!this.isMeasured) return;
    const smooth = (known: number, now: number): number => (known === 0 ? now : (known + now) / 2);
    this.itemMs = smooth(this.itemMs, Math.max(durationMs, 1e-3) / count);
    this.itemBytes = smooth(this.itemBytes, nbytes / count);
    const wanted = Math.min(TARGET_MS / this.itemMs, TARGET_BYTES / this.itemBytes, COUNT_MAX);
    this.count = Math.max(
      1,
      Math.floor(Math.min(wanted, Math.max(this.count, count) * GROWTH_MAX)),
    );
  }
}

/** The arguments of a chunk: those that differ from call to call have an array, the others are shared. */
export interface ChunkShape {
  readonly each: readonly number[];
  /** The arguments that one call has for itself. */
  readonly ownArgs: (row: readonly unknown[]) => readonly unknown[];
  readonly argsOf: (rows: readonly (readonly unknown[])[]) => unknown[];
}

export function chunkShape(columns: readonly unknown[]): ChunkShape {
  const each = [...columns.keys()].filter((place) => !(columns[place] instanceof Constant));
  return {
    each,
    ownArgs: (row) => each.map((place) => row[place]),
    argsOf: (rows) =>
      columns.map((column, place): unknown =>
        column instanceof Constant ? column.value : rows.map((row) => row[place]),
      ),
  };
}

/** The outcome of an item: what its call returned, or the error with which it failed. */
export interface Outcome {
  readonly value: unknown;
  readonly error: Error | undefined;
}

/**
 * The outcome of each item of a chunk, in their order; a chunk that fails as a whole fails each of them.
 * @param first - place of its first item among all: errors have the place of theirs as `data.index`
 */
export async function chunkOutcomes(
  future: Future<unknown>,
  {
    first,
    count,
    size,
  }: { readonly first: number; readonly count: number; readonly size: ChunkSize },
): Promise<Outcome[]> {
  let result: ChunkResult;
  try {
    result = (await future.result()) as ChunkResult;
  } catch (thrown) {
    const error = thrown as Error;
    return new Array<Outcome>(count).fill({ value: undefined, error });
  }
  size.note(count, result);
  const outcomes: Outcome[] = result.values.map((value) => ({ value, error: undefined }));
  const { key } = future;
  for (const { at, error } of result.failures) {
    const data = { ...error.data, key, index: first + at };
    outcomes[at] = { value: undefined, error: new RemoteError({ ...error, data }) };
  }
  return outcomes;
}
