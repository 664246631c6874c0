import { inspect } from 'node:util';
import { YardmasterError } from '../../core/api/index.ts';
import { Constant } from './graph.ts';
import type { StreamOptions } from './streams.ts';

/** True when something gives its items one by one, and at its own pace. */
export function isStream(items: unknown): items is AsyncIterable<unknown> {
  return typeof items === 'object' && items !== null && Symbol.asyncIterator in items;
}

/**
 * The items of a `map` over a stream, and its options.
 * @param columns - one of them is a stream
 * @throws YardmasterError `ERR_GRAPH_INVALID` when there are other arguments of the function
 */
export function streamIn(
  columns: readonly unknown[],
): [items: AsyncIterable<unknown>, options?: StreamOptions] {
  const [items, options, ...others] = columns;
  if (isStream(items) && !isSequence(options) && others.length === 0) {
    return [items, options as StreamOptions | undefined];
  }
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    'map over an AsyncIterable calls the function with one item and takes no other arguments; put all that a call needs into each item, or give map arrays',
  );
}

/**
 * The arguments of each call of a `map`.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when the columns do not have the same length, or are all constant
 */
export function rowsOf(columns: readonly unknown[]): unknown[][] {
  const lists = columns.map((column, index) =>
    column instanceof Constant ? column : [...argumentsIn(column, index)],
  );
  const lengths = lists.filter(Array.isArray).map((list) => list.length);
  const [length] = lengths;
  if (length === undefined) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      'map wants at least one sequence of arguments (beside all(…)), which says how many tasks there are',
    );
  }
  if (lengths.some((other) => other !== length)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `map wants sequences of the same length, got ${lengths.join(', ')}`,
    );
  }
  return Array.from({ length }, (_, row) =>
    lists.map((list): unknown => (list instanceof Constant ? list.value : list[row])),
  );
}

/** @throws YardmasterError `ERR_GRAPH_INVALID` */
function argumentsIn(column: unknown, index: number): Iterable<unknown> {
  if (isSequence(column)) return column;
  throw new YardmasterError(
    'ERR_GRAPH_INVALID',
    `map wants a sequence for argument ${index + 1} of the function, got ${inspect(column, { depth: 0 })}; all(value) stands for a sequence of nothing but that value`,
  );
}

/**
 * @param call - that takes them
 * @throws YardmasterError `ERR_GRAPH_INVALID`
 */
export function checkSequence(call: string, items: unknown): void {
  if (isSequence(items) || isStream(items)) return;
  const got = inspect(items, { depth: 0 });
  throw new YardmasterError('ERR_GRAPH_INVALID', `${call} wants a sequence of items, got ${got}`);
}

function isSequence(value: unknown): value is Iterable<unknown> {
  if (typeof value === 'string') return true;
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}
