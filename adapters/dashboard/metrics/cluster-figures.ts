/** Figures of the cluster under the names that Dask's scheduler gives them. O(groups + workers). */
import type { ClusterView, TaskStateName } from '../../../core/api/index.ts';

/** Tasks now in each state. */
export function tasksByState({ prefixes }: ClusterView): ReadonlyMap<TaskStateName, number> {
  const found = new Map<TaskStateName, number>();
  for (const { states } of prefixes.values()) {
    for (const [name, count] of Object.entries(states)) {
      const state = name as TaskStateName;
      found.set(state, (found.get(state) ?? 0) + count);
    }
  }
  return found;
}

/** Workers by what they have to do. */
export function workersByState(cluster: ClusterView): Readonly<Record<string, number>> {
  const { idle, saturated, running, workers } = cluster;
  let paused = 0;
  for (const { status } of workers.values()) if (status === 'paused') paused++;
  return {
    idle: idle.size,
    partially_saturated: Math.max(0, running.size - idle.size - saturated.size),
    saturated: saturated.size,
    paused,
    retiring: Math.max(0, workers.size - paused - running.size),
  };
}

/** Clients, without the one that stands for all that was fired and forgotten. */
export function clientCount({ clients }: ClusterView): number {
  return clients.size - (clients.has('fire-and-forget') ? 1 : 0);
}

/** `/json/counts.json` of Dask. */
export function countsOf(cluster: ClusterView): Readonly<Record<string, number>> {
  const states = tasksByState(cluster);
  const hosts = new Set<string>();
  let [bytes, memory, processing] = [0, 0, 0];
  for (const worker of cluster.workers.values()) {
    hosts.add(worker.host);
    bytes += worker.nbytes;
    memory += worker.hasWhat.size;
    processing += worker.processing.size;
  }
  return {
    bytes,
    clients: clientCount(cluster),
    cores: cluster.totalThreads,
    erred: states.get('erred') ?? 0,
    hosts: hosts.size,
    idle: cluster.idle.size,
    memory,
    processing,
    released: states.get('released') ?? 0,
    saturated: cluster.saturated.size,
    tasks: cluster.tasks.size,
    unrunnable: cluster.unrunnable.size,
    waiting: states.get('waiting') ?? 0,
    workers: cluster.workers.size,
  };
}
