import {
  type ClusterView,
  definePolicy,
  type WorkerPool,
  type WorkerView,
} from '../../core/api/index.ts';

/** Pools smaller than this are searched for the least occupied worker; larger ones take turns. */
const SEARCHED_POOL_MAX = 20;

/**
 * The worker on which the task is expected to start first: the work ahead of it per thread, and the
 * time to fetch the inputs that it lacks. Dask's `worker_objective` and `decide_worker`.
 */
export const earliestStart = definePolicy('workerSelection', {
  name: 'earliest-start',
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => ({
    placesRootish: false,
    score: (_task, worker, missingBytes, cluster) =>
      worker.occupancyS / worker.threadCount + missingBytes / cluster.costs.bandwidth,
    pickFromPool: (_task, pool, cluster) => takeTurns(pool, cluster),
  }),
});

/**
 * The least occupied worker; among several with nothing to do they take turns, so that single tasks
 * spread over the cluster. O(pool) below 20 workers, else O(workers / 32).
 */
export function takeTurns(pool: WorkerPool, cluster: ClusterView): WorkerView | undefined {
  const turn = cluster.assignedCount % pool.size;
  if (pool.size >= SEARCHED_POOL_MAX) return pool.at(turn);
  const workers = [...pool];
  let least: WorkerView | undefined;
  for (const worker of workers) {
    if (least === undefined || worker.occupancyS < least.occupancyS) least = worker;
  }
  if (least === undefined || least.occupancyS > 0) return least;
  for (let offset = 0; offset < workers.length; offset++) {
    const worker = workers[(turn + offset) % workers.length];
    if (worker?.occupancyS === 0) return worker;
  }
  return least;
}
