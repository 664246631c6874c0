import type { ClusterState } from '../state/cluster.ts';
import type { TaskPrefix } from '../state/groups.ts';
import type { WorkerState } from '../state/task.ts';
import type { KernelScope } from './scope.ts';

// How loaded workers are, and what that makes of them. Source: Dask's `check_idle_saturated`.

/** Backlog per thread, in seconds and relative to the average, above which a worker is saturated. */
const SATURATED_BACKLOG_S = 0.4;
const SATURATED_RATIO = 1.9;

/**
 * Puts a worker into the sets that its load earns. Called after each change of what it processes, of
 * its status, or of the cluster. O(prefixes on the worker + log workers).
 *
 * @param occupancyS - seconds of work that count, when they are not those that it has
 */
export function checkIdleSaturated(
  scope: KernelScope,
  worker: WorkerState,
  occupancyS = worker.occupancyS,
): void {
  const { cluster } = scope;
  if (worker.rank < 0) return;
  const isRunning = worker.status === 'running';
  updateOpenSlots(cluster, worker, isRunning);
  if (cluster.totalThreads === 0) return;
  if (!isRunning) {
    cluster.idle.delete(worker);
    cluster.saturated.delete(worker);
    return;
  }
  const { isIdle, isSaturated } = classify(
    occupancyS,
    worker.runCount,
    worker.threadCount,
    cluster.totalOccupancyS / cluster.totalThreads,
  );
  if (isIdle) cluster.idle.add(worker);
  else cluster.idle.delete(worker);
  if (isSaturated) cluster.saturated.add(worker);
  else cluster.saturated.delete(worker);
}

/**
 * Classifies a worker by its load. Idle: fewer tasks than threads, or less than half of the average work.
 * Saturated: not idle, and a long queue for each thread, also compared with the average.
 */
export function classify(
  occupancyS: number,
  processing: number,
  threads: number,
  averageS: number,
): { readonly isIdle: boolean; readonly isSaturated: boolean } {
  if (processing < threads || occupancyS < (threads * averageS) / 2) return IDLE;
  if (processing <= threads) return NEITHER;
  const pendingS = (occupancyS * (processing - threads)) / (processing * threads);
  return pendingS > SATURATED_BACKLOG_S && pendingS > SATURATED_RATIO * averageS
    ? SATURATED
    : NEITHER;
}

const IDLE = { isIdle: true, isSaturated: false } as const;
const NEITHER = { isIdle: false, isSaturated: false } as const;
const SATURATED = { isIdle: false, isSaturated: true } as const;

/**
 * Tasks count otherwise against slots from now on. O(workers), and rare.
 * @param prefix - of these tasks. Default: of any
 */
export function recountSlots({ cluster }: KernelScope, prefix?: TaskPrefix): void {
  for (const worker of cluster.running) {
    const isConcerned =
      prefix === undefined || worker.prefixCounts.some((entry) => entry.prefix === prefix);
    if (isConcerned) updateOpenSlots(cluster, worker, true);
  }
}

function updateOpenSlots(cluster: ClusterState, worker: WorkerState, isRunning: boolean): void {
  if (isRunning && worker.openSlots > 0) cluster.openSlots.put(worker, worker.load);
  else cluster.openSlots.delete(worker);
}
