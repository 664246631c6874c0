import { YardmasterError } from '../api/errors.ts';
import type { DataStore } from '../api/executor.ts';
import { isBusy, type WorkerTables } from '../worker/worker-tables.ts';
import { compact } from './arrivals.ts';

/**
 * Stores what a client sends to a worker: all of it or nothing.
 * @throws YardmasterError `ERR_PROTOCOL` when one of the keys is being computed or fetched here
 */
export function takeIn(
  { tables, store }: { readonly tables: WorkerTables; readonly store: DataStore },
  keys: readonly string[],
  values: readonly Uint8Array[],
): void {
  const { address } = tables.options;
  for (const key of keys) {
    const task = tables.tasks.get(key);
    if (task === undefined || !isBusy(tables, task)) continue;
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `"${key}" is being computed or fetched on ${address}; put the data under another key`,
      { key, worker: address },
    );
  }
  const added: string[] = [];
  try {
    for (const [index, key] of keys.entries()) {
      if (!store.has(key)) added.push(key);
      store.set(key, compact(values[index] as Uint8Array));
    }
  } catch (error) {
    for (const key of added) store.delete(key);
    throw error;
  }
}
