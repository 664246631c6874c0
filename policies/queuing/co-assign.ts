import {
  type ClusterView,
  definePolicy,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';
import { startS } from '../worker-selection/transfer-cost.ts';
import { DEFAULT_ROOTISH_LIMITS, isRootish } from './is-rootish.ts';

/**
 * Nothing is held back; neighbours go to the same worker. Runs of root-ish tasks, as long as one
 * worker's share of the group, are sent to one worker, because they are likely to meet again in the
 * same downstream task. Dask with `worker-saturation: inf`.
 */
export const coAssign = definePolicy('queuing', {
  name: 'co-assign',
  optionsSchema: { type: 'object', additionalProperties: false },
  create: () => ({
    holdsBack: false,
    slotLimit: () => Infinity,
    isRootish: (task, cluster) => isRootish(task, cluster, DEFAULT_ROOTISH_LIMITS),
    selectRootish: selectCoAssigned,
  }),
});

/** Takes the worker of the last neighbour, or starts a new run. Called in priority order. */
export function selectCoAssigned(task: TaskView, cluster: ClusterView): WorkerView | undefined {
  const pool = cluster.idle.size > 0 ? cluster.idle : cluster.running;
  if (pool.size === 0) return undefined;
  const { group } = task;
  const worker = continuedRun(task, cluster) ?? startRun(task, pool, cluster);
  // The last task of a group ends its run, so that it does not outlive the graph.
  const hasMore = group.states.released + group.states.waiting > 1;
  group.lastWorker = hasMore ? worker : undefined;
  group.lastWorkerTasksLeft--;
  return worker;
}

function continuedRun({ group }: TaskView, cluster: ClusterView): WorkerView | undefined {
  const { lastWorker, lastWorkerTasksLeft } = group;
  if (lastWorker === undefined || lastWorkerTasksLeft === 0) return undefined;
  if (lastWorker.status !== 'running') return undefined;
  return cluster.workers.get(lastWorker.address) === lastWorker ? lastWorker : undefined;
}

function startRun(
  task: TaskView,
  pool: Iterable<WorkerView>,
  cluster: ClusterView,
): WorkerView | undefined {
  let best: WorkerView | undefined;
  let bestS = Infinity;
  for (const worker of pool) {
    const seconds = startS(task, worker, cluster);
    if (best !== undefined && seconds > bestS) continue;
    if (best !== undefined && seconds === bestS && worker.nbytes >= best.nbytes) continue;
    best = worker;
    bestS = seconds;
  }
  if (best === undefined) return undefined;
  const share = (task.group.size / cluster.totalThreads) * best.threadCount;
  task.group.lastWorkerTasksLeft = Math.floor(share);
  return best;
}
