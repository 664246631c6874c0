/**
 * The resource that a worker has one of for each thread, when its executor can run tasks beside each other in a
 * thread. A task that takes a share of it waits most of its time, and occupies no thread.
 */
export const EVENT_LOOP_RESOURCE = 'event-loop';

/** Shares are multiples of this, so that sums of them are exact. */
const SMALLEST_SHARE = 2 ** -30;

/** The share of a task of which `limit` may run in a thread at once. */
export function eventLoopShare(limit: number): number {
  return Math.floor(1 / SMALLEST_SHARE / limit) * SMALLEST_SHARE;
}

/**
 * The interval at which each of n workers should send a heartbeat, in milliseconds: longer in larger
 * clusters, so that the scheduler's share of time stays the same (the steps are those of Dask).
 */
export function heartbeatIntervalMs(workerCount: number): number {
  if (workerCount <= 10) return 500;
  if (workerCount < 50) return 1000;
  if (workerCount < 200) return 2000;
  return 1000 * (workerCount / 200 + 1);
}
