import {
  type ClusterView,
  definePolicy,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { resourcesS, takeTurns } from './earliest-start.ts';

/** Inputs with fewer dependents than this are moved at their full price, however small the cluster. */
const COMMON_DEPENDENTS_MIN = 10;

const atLeast = (minimum: number, fallback: number, description: string) =>
  ({
    description,
    type: 'integer',
    minimum,
    maximum: 64,
    default: fallback,
  }) as const;

/**
 * Selects the worker on which the task is expected to start first, including idle workers without
 * any input, so that work does not pile up where a small or a common input is.
 *
 * As `earliest-start`, but: besides holders of inputs the least busy workers are candidates; an
 * input that all workers are going to need costs nothing to move; neither does one that is on its
 * way to the worker already; and a worker whose resources are taken is not free before they are
 * given back. The number of candidates does not grow with the cluster.
 */
export const balanced = definePolicy('workerSelection', {
  name: 'balanced',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      holders: atLeast(1, 4, 'How many of the workers that hold inputs are looked at.'),
      others: atLeast(0, 3, 'How many other workers are looked at, the least busy ones.'),
      latency: {
        description: 'What it costs to fetch anything at all, however small.',
        type: ['number', 'string'],
        unit: 's',
        minimum: 0,
        default: 0.001,
      },
    },
  },
  create: ({ holders, others, latency }) => ({
    reach: { holders, others },
    placesRootish: false,
    score: (task, worker, _missingBytes, cluster) =>
      Math.max(computeS(worker, cluster), resourcesS(task, worker)) +
      transferS(task, worker, cluster, latency),
    pickFromPool: (_task, pool, cluster) => takeTurns(pool, cluster),
  }),
});

/**
 * Seconds of computation ahead for each thread. What the worker is fetching is left out: it does that
 * while it computes, and one large common input would make it look busy for all others.
 */
function computeS(worker: WorkerView, cluster: ClusterView): number {
  const networkS = worker.networkBytes / cluster.costs.bandwidth;
  return Math.max(0, worker.occupancyS - networkS) / worker.threadCount;
}

/** Seconds to fetch what is neither there nor on its way nor needed everywhere. O(dependencies). */
function transferS(
  task: TaskView,
  worker: WorkerView,
  cluster: ClusterView,
  latencyS: number,
): number {
  const commonDependents = Math.max(COMMON_DEPENDENTS_MIN, cluster.running.size);
  let nbytes = -1;
  for (const dependency of task.dependencies) {
    if (dependency.dependentCount >= commonDependents) continue;
    if (worker.hasWhat.has(dependency) || worker.needsWhat.has(dependency)) continue;
    nbytes = Math.max(0, nbytes);
    nbytes += dependency.nbytes >= 0 ? dependency.nbytes : cluster.costs.defaultDataSize;
  }
  return nbytes < 0 ? 0 : latencyS + nbytes / cluster.costs.bandwidth;
}
