import type { WorkerTables } from '../worker-tables.ts';
import type { WorkerTask } from '../worker-task.ts';

/**
 * The task to run next, if a thread is free: the best by the order of what is ready, of those whose resources are free
 * too. A constrained task that lacks resources holds back the constrained ones behind it, so that
 * it is not starved, but no others. O(1).
 */
export function nextToExecute(tables: WorkerTables): WorkerTask | undefined {
  return nextConcurrent(tables) ?? nextOnThread(tables);
}

/** The best of those that need no thread, but a share of an event loop. */
function nextConcurrent(tables: WorkerTables): WorkerTask | undefined {
  const best = tables.constrained.peekConcurrent();
  if (best === undefined || tables.executing.size >= tables.concurrentRunLimit) return undefined;
  if (!tables.hasResourcesFor(best)) return undefined;
  return tables.quota === undefined || tables.quota.admits(best) ? best : undefined;
}

function nextOnThread(tables: WorkerTables): WorkerTask | undefined {
  // Runs that wait for a thread to return to come first.
  if (tables.occupiedThreads >= tables.runLimit || tables.rejoining.size > 0) return undefined;
  const best = bestReady(tables);
  if (best === undefined || !tables.hasThreadFor(best)) return undefined;
  // One that does not fit holds back all others, as in Mars: its turn comes when enough have ended.
  return tables.quota === undefined || tables.quota.admits(best) ? best : undefined;
}

function bestReady(tables: WorkerTables): WorkerTask | undefined {
  const ready = tables.ready.peek();
  const constrained = tables.constrained.peek();
  if (constrained === undefined || !tables.hasResourcesFor(constrained)) return ready;
  if (ready === undefined || tables.compareReady(constrained, ready) < 0) return constrained;
  return ready;
}
