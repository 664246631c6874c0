import {
  type ClusterView,
  definePolicy,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { resourcesS } from './earliest-start.ts';
import { sizeOf } from './transfers.ts';

/**
 * The price of a transfer, in times of what it takes over a link of its own: sender and receiver have other transfers,
 * too, and what was moved once is often moved again.
 */
const TRANSFER_PRICE = 2;
/** The part of the transfers that a worker has ahead during which its threads have nothing to do. */
const TRANSFER_WAIT = 0.5;

const atLeast = (minimum: number, fallback: number, description: string) =>
  ({
    description,
    type: 'integer',
    minimum,
    maximum: 64,
    default: fallback,
  }) as const;

/**
 * Selects the worker on which the task is expected to end first, including workers without any input, so that work does not
 * pile up where a small input is, and slow workers are given less.
 *
 * It adds up, for each candidate: the work ahead of each thread, or the time until the resources are given back where that
 * is longer, and the task itself, times the pace of the worker; half of the transfers that it has ahead; and twice the time
 * to fetch what is neither there nor on its way. Candidates are holders of inputs and the least busy workers, whose
 * number does not grow with the cluster. Compare HEFT's earliest finish time.
 */
export const balanced = definePolicy('workerSelection', {
  name: 'balanced',
  apiVersion: 1,
  optionsSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      holders: atLeast(1, 4, 'How many of the workers that hold inputs are looked at.'),
      others: atLeast(0, 8, 'How many other workers are looked at, the least busy ones.'),
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
      computeS(task, worker, cluster) +
      TRANSFER_WAIT * (worker.networkBytes / cluster.costs.bandwidth) +
      TRANSFER_PRICE * transferS(task, worker, cluster, latency),
  }),
});

/** Seconds until a thread has computed what is ahead of it, and the task. Transfers are counted apart. */
function computeS(task: TaskView, worker: WorkerView, cluster: ClusterView): number {
  const networkS = worker.networkBytes / cluster.costs.bandwidth;
  const aheadS = Math.max(0, worker.occupancyS - networkS) / worker.threadCount;
  const waitS = Math.max(aheadS, resourcesS(task, worker));
  return (waitS + task.prefix.durationEstimateS) * worker.pace;
}

/**
 * Seconds to fetch what is neither there nor on its way. An input that several tasks on each worker are going to need is
 * paid for by all of them. O(dependencies).
 */
function transferS(
  task: TaskView,
  worker: WorkerView,
  cluster: ClusterView,
  latencyS: number,
): number {
  let nbytes = -1;
  for (const dependency of task.dependencies) {
    if (worker.hasWhat.has(dependency) || worker.needsWhat.has(dependency)) continue;
    const size = sizeOf(dependency, cluster);
    const sharing = Math.max(1, dependency.waiterCount / cluster.running.size);
    nbytes = Math.max(0, nbytes) + size / sharing;
  }
  return nbytes < 0 ? 0 : latencyS + nbytes / cluster.costs.bandwidth;
}
