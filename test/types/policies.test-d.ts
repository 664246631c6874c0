/** Compiles only while a worker selection policy has exactly one of `score` and `select`. */
import { definePolicy, type WorkerSelection } from '../../core/api/index.ts';

export const scoring: WorkerSelection = {
  score: (_task, worker, missingBytes, cluster) =>
    worker.nbytes + missingBytes / cluster.costs.bandwidth,
  pickFromPool: (_task, pool) => pool.at(0),
};

export const selecting: WorkerSelection = {
  reach: 'all',
  select: (_task, candidates, missingBytes) =>
    candidates.find((worker) => missingBytes(worker) === 0) ?? candidates[0],
};

// @ts-expect-error a policy that scores does not select
export const both: WorkerSelection = { score: () => 0, select: () => undefined };

// @ts-expect-error it has to do one of both
export const neither: WorkerSelection = { admits: () => true };

// @ts-expect-error a policy that selects sees all candidates, and needs no pool of idle workers
export const selectingFromPool: WorkerSelection = {
  select: () => undefined,
  pickFromPool: () => undefined,
};

export const defined = definePolicy('workerSelection', {
  name: 'both',
  apiVersion: 1,
  // @ts-expect-error a policy that scores does not select
  create: () => ({ score: () => 0, select: () => undefined }),
});
