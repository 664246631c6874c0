import type { ClusterView, WorkerLoad, WorkerView } from '../../core/api/index.ts';

/** The load of a worker in the present round. */
export type LoadOf = (worker: WorkerView) => WorkerLoad;

/** As long as no worker is saturated, at most this many of the busiest workers are victims, ... */
const BUSIEST = 10;
/** ... those that have more work than this ahead, in seconds. */
const BUSY_S = 0.2;
/** As many victims, or more, are not sorted by load. */
const SORTED_MAX = 20;

/**
 * Dask's choice: the workers that the kernel holds for saturated, which it decides when something
 * changes on them, or else the busiest ones.
 */
export function saturatedOrBusiest(cluster: ClusterView, loadOf: LoadOf): WorkerLoad[] {
  const victims: WorkerLoad[] = [];
  for (const worker of cluster.saturated) victims.push(loadOf(worker));
  if (victims.length === 0) return busiest(cluster, loadOf);
  return victims.length < SORTED_MAX ? victims.sort(byWork) : victims;
}

/**
 * Of the ten workers with the most work ahead those that are busy and do not steal. A worker that only
 * runs long tasks takes the place of one with a queue, as in Dask. O(workers log workers).
 */
function busiest({ running }: ClusterView, loadOf: LoadOf): WorkerLoad[] {
  const found: WorkerLoad[] = [];
  for (const worker of running) found.push(loadOf(worker));
  const first = found.sort(byWork).slice(0, BUSIEST);
  return first.filter((load) => !load.isThief && isBusy(load));
}

/** All workers with waiting tasks, those first whose threads have the most ahead. O(workers). */
export function longestQueues({ running }: ClusterView, loadOf: LoadOf): WorkerLoad[] {
  const found: WorkerLoad[] = [];
  for (const worker of running) {
    if (worker.processing.size <= worker.threadCount) continue;
    const load = loadOf(worker);
    if (!load.isThief && isBusy(load)) found.push(load);
  }
  return found.sort(byThread);
}

/** More tasks than threads, and some work ahead. */
function isBusy({ workS, taskCount, threadCount }: WorkerLoad): boolean {
  return workS > BUSY_S && taskCount > threadCount;
}

function byWork(a: WorkerLoad, b: WorkerLoad): number {
  return b.workS - a.workS || a.worker.rank - b.worker.rank;
}

function byThread(a: WorkerLoad, b: WorkerLoad): number {
  return b.perThreadS - a.perThreadS || a.worker.rank - b.worker.rank;
}
