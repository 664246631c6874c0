import type { ClusterView } from '../../core/api/index.ts';
import type { Load, Loads } from './loads.ts';

/** When nobody is saturated: so many of the busiest workers are robbed, ... */
const BUSIEST = 10;
/** ... those that have more work than this ahead, in seconds. */
const BUSY_S = 0.2;
/** As many victims, or more, are not sorted by load. */
const SORTED_MAX = 20;

/**
 * As Dask chooses: the workers that the kernel holds for saturated, which it decides when something
 * changes on them, or else the busiest ones.
 */
export function saturatedOrBusiest(cluster: ClusterView, loads: Loads): Load[] {
  const victims: Load[] = [];
  for (const worker of cluster.saturated) victims.push(loads.of(worker));
  if (victims.length === 0) return busiest(cluster, loads);
  return victims.length < SORTED_MAX ? victims.sort(bySeconds) : victims;
}

/**
 * Of the few with the most work ahead those that are busy and do not steal. A worker that only runs
 * long tasks takes the place of one with a queue, as in Dask. O(workers log workers).
 */
function busiest({ running }: ClusterView, loads: Loads): Load[] {
  const found: Load[] = [];
  for (const worker of running) found.push(loads.of(worker));
  const first = found.sort(bySeconds).slice(0, BUSIEST);
  return first.filter((load) => !load.isThief && isBusy(load));
}

/** All that have tasks waiting, those first whose threads have the most ahead. O(workers). */
export function longestQueues(cluster: ClusterView, loads: Loads): Load[] {
  return busy(cluster, loads).sort(byThread);
}

/** Workers that finish what they run and begin nothing: what waits there waits for nothing. */
export function stuck({ running, workers }: ClusterView, loads: Loads): Load[] {
  const victims: Load[] = [];
  if (running.size === workers.size) return victims;
  for (const worker of workers.values()) {
    if (worker.status !== 'running' && worker.processing.size > 0) victims.push(loads.of(worker));
  }
  return victims;
}

function busy(cluster: ClusterView, loads: Loads): Load[] {
  const found: Load[] = [];
  for (const worker of cluster.running) {
    if (worker.processing.size <= worker.threadCount) continue;
    const load = loads.of(worker);
    if (!load.isThief && isBusy(load)) found.push(load);
  }
  return found;
}

/** More tasks than threads, and some work ahead. */
function isBusy({ seconds, taskCount, threadCount }: Load): boolean {
  return seconds > BUSY_S && taskCount > threadCount;
}

function bySeconds(a: Load, b: Load): number {
  return b.seconds - a.seconds || a.rank - b.rank;
}

function byThread(a: Load, b: Load): number {
  return b.perThreadS - a.perThreadS || a.rank - b.rank;
}
