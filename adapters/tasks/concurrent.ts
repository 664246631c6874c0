import { YardmasterError } from '../../core/api/index.ts';
import type { AnyFunction } from './task-function.ts';

const LIMIT = Symbol.for('yardmaster.concurrency');

/**
 * Says that a task function waits most of its time, for the network or for files, so that up to `limit` of it may run
 * in each thread at once:
 *
 * ```ts
 * export const { fetchPage } = defineTasks(import.meta.url, {
 *   fetchPage: concurrent(50, async (url: string) => {
 *     const page = await fetch(url, { signal: currentTask().signal });
 *     return page.text();
 *   }),
 * });
 * ```
 *
 * Such tasks occupy no thread. Each takes a share, 1/`limit`, of the resource `event-loop`, of which a worker has one
 * for each of its threads.
 *
 * @throws YardmasterError `ERR_CONFIG` when the limit is not a whole number from 1 to 1 000 000
 */
export function concurrent<F extends AnyFunction>(limit: number, fn: F): F {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1_000_000) {
    throw new YardmasterError(
      'ERR_CONFIG',
      `concurrent(${limit}, ${fn.name || 'fn'}): the limit must be a whole number from 1 to 1000000`,
      { limit },
    );
  }
  const limited = (...args: never[]): unknown => fn(...args);
  Object.defineProperties(limited, { name: { value: fn.name }, [LIMIT]: { value: limit } });
  return limited as F;
}

/** The limit that {@link concurrent} has given to a function. */
export function concurrencyOf(fn: object): number | undefined {
  return (fn as { readonly [LIMIT]?: number })[LIMIT];
}
