import type { ClusterState } from '../../state/cluster.ts';
import { nbytesOf } from '../../state/relations.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';

/** Bytes of inputs that the worker lacks. O(dependencies). */
export function missingBytes(cluster: ClusterState, task: TaskState, worker: WorkerState): number {
  let nbytes = 0;
  for (const dependency of task.dependencies) {
    if (!worker.hasWhat.has(dependency)) nbytes += nbytesOf(cluster, dependency);
  }
  return nbytes;
}

/** Seconds until the worker could start the task: the work ahead of it, and the transfers. */
export function startS(cluster: ClusterState, task: TaskState, worker: WorkerState): number {
  return (
    worker.occupancyS / worker.threadCount +
    missingBytes(cluster, task, worker) / cluster.costs.bandwidth
  );
}
