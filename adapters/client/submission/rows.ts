import { YardmasterError } from '../../../core/api/index.ts';
import { Constant } from './all.ts';

/** Whether something gives its items one by one, and at its own pace. */
export function isStream(items: unknown): items is AsyncIterable<unknown> {
  return typeof items === 'object' && items !== null && Symbol.asyncIterator in items;
}

/**
 * The arguments of each call of a `map`.
 * @throws YardmasterError `ERR_GRAPH_INVALID` when the columns do not have the same length, or are all constant
 */
export function rowsOf(columns: readonly unknown[]): unknown[][] {
  const lists = columns.map((column) =>
    column instanceof Constant ? column : [...(column as Iterable<unknown>)],
  );
  const lengths = lists.filter(Array.isArray).map((list) => list.length);
  const [length] = lengths;
  if (length === undefined && columns.length > 0) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      'map wants at least one sequence beside all(…), which says how many tasks there are',
    );
  }
  if (lengths.some((other) => other !== length)) {
    throw new YardmasterError(
      'ERR_GRAPH_INVALID',
      `map wants sequences of the same length, got ${lengths.join(', ')}`,
    );
  }
  return Array.from({ length: length ?? 0 }, (_, row) =>
    lists.map((list): unknown => (list instanceof Constant ? list.value : list[row])),
  );
}
