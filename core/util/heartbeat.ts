/**
 * How often each of n workers should send a heartbeat, in milliseconds: more rarely in larger
 * clusters, so that the scheduler's share of time stays the same (the steps are those of Dask).
 */
export function heartbeatIntervalMs(workerCount: number): number {
  if (workerCount <= 10) return 500;
  if (workerCount < 50) return 1000;
  if (workerCount < 200) return 2000;
  return 1000 * (workerCount / 200 + 1);
}
