import type { ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';

/** Seconds to bring the inputs that the worker lacks to it. O(dependencies). */
export function transferS(task: TaskView, worker: WorkerView, cluster: ClusterView): number {
  let missingBytes = 0;
  for (const dependency of task.dependencies) {
    if (worker.hasWhat.has(dependency)) continue;
    missingBytes += dependency.nbytes >= 0 ? dependency.nbytes : cluster.costs.defaultDataSize;
  }
  return missingBytes / cluster.costs.bandwidth;
}

/** Seconds until the worker could start the task: the work ahead of it, and the transfers. */
export function startS(task: TaskView, worker: WorkerView, cluster: ClusterView): number {
  return worker.occupancyS / worker.threadCount + transferS(task, worker, cluster);
}
