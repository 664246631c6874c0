import type { ClusterView, TaskView, WorkerView } from '../../core/api/index.ts';

/**
 * Seconds to fetch the inputs of a task that a worker neither has nor fetches already, over a link of its own: a worker that
 * alone has an input first sends what others asked it for. 0 when nothing is missing. O(dependencies).
 *
 * @param asked - bytes that workers are going to be asked for, besides those that they have been
 */
export function transferS(
  task: TaskView,
  worker: WorkerView,
  cluster: ClusterView,
  asked?: ReadonlyMap<WorkerView, number>,
): number {
  let missing = 0;
  let longest = 0;
  for (const dependency of task.dependencies) {
    if (worker.hasWhat.has(dependency) || worker.needsWhat.has(dependency)) continue;
    const size = sizeOf(dependency, cluster);
    missing += size;
    const sole = soleHolder(dependency);
    if (sole === undefined) continue;
    longest = Math.max(longest, size + sole.requestedBytes + (asked?.get(sole) ?? 0));
  }
  return Math.max(missing, longest) / cluster.costs.bandwidth;
}

/** Adds to what workers are going to be asked for what this worker fetches for the task. O(dependencies). */
export function askFor(
  task: TaskView,
  worker: WorkerView,
  cluster: ClusterView,
  asked: Map<WorkerView, number>,
): void {
  for (const dependency of task.dependencies) {
    const sole = soleHolder(dependency);
    if (sole === undefined || sole === worker || worker.needsWhat.has(dependency)) continue;
    asked.set(sole, (asked.get(sole) ?? 0) + sizeOf(dependency, cluster));
  }
}

function soleHolder({ whoHas }: TaskView): WorkerView | undefined {
  return whoHas.size === 1 ? whoHas.items[0] : undefined;
}

/** Bytes of a result; those that the configuration assumes while the size is not known. */
export function sizeOf({ nbytes }: TaskView, { costs }: ClusterView): number {
  return nbytes >= 0 ? nbytes : costs.defaultDataSize;
}
