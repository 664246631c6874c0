import { YardmasterError } from '../api/errors.ts';
import type { DataStore } from '../api/executor.ts';
import type { PutDataRequest } from '../messages/protocol.ts';
import { sharedMemoryOf } from '../util/bytes.ts';
import { isBusy, type WorkerTables } from '../worker/worker-tables.ts';
import { resultRunId, type WorkerTask } from '../worker/worker-task.ts';
import { compact } from './peer-channels.ts';

/** The receiver of the data. */
interface Intake {
  readonly tables: WorkerTables;
  readonly store: DataStore;
  readonly free: (keys: readonly string[]) => void;
}

/**
 * Stores what a client sends to a worker: all of it or nothing. What is here already with the same bytes
 * stays as it is. Other data is freed that was put here under an earlier reservation: the scheduler has released it, or
 * would not have granted this one, and its order to free it is on its way.
 * @throws YardmasterError `ERR_KEY_TAKEN` when there are other bytes under one of the keys, or when it is
 *   computed or fetched here
 */
export function takeIn(
  { tables, store, free }: Intake,
  { keys, values, reservation = 0 }: PutDataRequest,
): void {
  const { address } = tables.options;
  const held = new Set<string>();
  const outdated: string[] = [];
  for (const [index, key] of keys.entries()) {
    const task = tables.tasks.get(key);
    const stored = task?.state === 'memory' ? store.get(key) : undefined;
    if (stored !== undefined) {
      if (isSame(stored, values[index] as Uint8Array)) held.add(key);
      else if (isData(task) && task.reservation < reservation) outdated.push(key);
      else throw keyTaken(key, address, `there is other data under "${key}" on ${address}`);
    } else if (task !== undefined && isExpected(tables, task)) {
      throw keyTaken(key, address, `"${key}" is being computed or fetched on ${address}`);
    }
  }
  if (outdated.length > 0) free(outdated);
  const added: string[] = [];
  try {
    for (const [index, key] of keys.entries()) {
      if (held.has(key)) continue;
      if (!store.has(key)) added.push(key);
      store.set(key, compact(values[index] as Uint8Array));
    }
  } catch (error) {
    for (const key of added) store.delete(key);
    throw error;
  }
}

function isSame(stored: Uint8Array, given: Uint8Array): boolean {
  const memories = sharedMemoryOf(stored)?.memories ?? [];
  const others = sharedMemoryOf(given)?.memories ?? [];
  return (
    memories.length === others.length &&
    memories.every((memory, index) => memory === others[index]) &&
    Buffer.compare(stored, given) === 0
  );
}

/** True when a client has put it here, or on the worker that it was copied from. */
function isData(task: WorkerTask | undefined): task is WorkerTask {
  return task !== undefined && resultRunId(task) < 0;
}

/** True when the result is on its way here: then it is there already, or computed, somewhere. */
function isExpected(tables: WorkerTables, task: WorkerTask): boolean {
  return isBusy(tables, task) || task.isToBeComputed || task.state === 'fetch';
}

function keyTaken(key: string, worker: string, what: string): YardmasterError {
  return new YardmasterError('ERR_KEY_TAKEN', `${what}; put the data under another key`, {
    key,
    worker,
  });
}
