import {
  type ClusterView,
  definePolicy,
  type TaskView,
  type WorkerPool,
  type WorkerView,
} from '../../core/api/index.ts';

/** Pools smaller than this are searched for the least occupied worker; larger ones take turns. */
const SEARCHED_POOL_MAX = 20;

/**
 * The worker on which the task is expected to start first: the work ahead of it per thread, or the time until its resources
 * are given back where that is longer, and the time to fetch the inputs that it lacks. Dask's `worker_objective` and
 * `decide_worker`, which look at the resources that a worker offers, and not at whether they are free.
 */
export const earliestStart = definePolicy('workerSelection', {
  name: 'earliest-start',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      resources: {
        description:
          'What counts of the resources of a worker: free, those that no task there has; offered, all of them, as with Dask.',
        enum: ['free', 'offered'],
        default: 'free',
      },
    },
  },
  create: ({ resources }) => {
    const weighsResources = resources === 'free';
    return {
      weighsResources,
      placesRootish: false,
      score: (task, worker, missingBytes, cluster) => {
        const workS = worker.occupancyS / worker.threadCount;
        const waitS = weighsResources ? Math.max(workS, resourcesS(task, worker)) : workS;
        return waitS + missingBytes / cluster.costs.bandwidth;
      },
      pickFromPool: (_task, pool, cluster) => takeTurns(pool, cluster),
    };
  },
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

/** Seconds until the tasks before it have given back what it asks for; 0 when that is free. */
export function resourcesS(task: TaskView, worker: WorkerView): number {
  const resources = task.restrictions?.resources;
  if (resources === undefined) return 0;
  let rounds = 0;
  for (const [resource, amount] of resources) {
    const offered = worker.resources.get(resource) ?? 0;
    const used = worker.usedResources.get(resource) ?? 0;
    if (used + amount <= offered) continue;
    // With loose restrictions the worker may have nothing of it, and the task runs all the same.
    if (offered > 0) rounds = Math.max(rounds, used / offered);
  }
  return rounds * task.prefix.durationEstimateS;
}
