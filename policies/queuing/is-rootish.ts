import type { ClusterView, TaskView } from '../../core/api/index.ts';

/** The limits that make a group a collection of root-ish tasks. */
interface RootishLimits {
  /** Fewer groups than this may be depended upon. Default 5. */
  readonly dependencyGroupsMax: number;
  /** Fewer tasks than this may be in those groups together. Default 5. */
  readonly dependencyTasksMax: number;
}

export const DEFAULT_ROOTISH_LIMITS: RootishLimits = {
  dependencyGroupsMax: 5,
  dependencyTasksMax: 5,
};

/**
 * The statement of a task's author: the annotation `rootish`, else that it is a data producer (Dask's
 * `data_producer`). Undefined: nothing, so that the graph decides.
 */
export function saidRootish({ annotations, isDataProducer }: TaskView): boolean | undefined {
  const said = annotations?.['rootish'];
  if (typeof said === 'boolean') return said;
  return isDataProducer ? true : undefined;
}

/**
 * True when a task starts a collection: its author says so, or its group is large compared with the cluster and depends on
 * next to nothing as a whole (the data set that all its tasks read, say). Dask's `is_rootish`.
 * O(dependency groups), which is less than 5.
 */
export function isRootish(task: TaskView, cluster: ClusterView, limits: RootishLimits): boolean {
  const { restrictions, group } = task;
  if (restrictions !== undefined) return false;
  const said = saidRootish(task);
  if (said !== undefined) return said;
  if (group.size <= 2 * cluster.totalThreads) return false;
  if (group.dependencies.size >= limits.dependencyGroupsMax) return false;
  let tasks = 0;
  for (const dependency of group.dependencies) {
    tasks += dependency.size;
    if (tasks >= limits.dependencyTasksMax) return false;
  }
  return true;
}

/** True when a task is held back until a worker has an open slot. Those with a limit are queued for that instead. */
export function waitsForSlot({ state, limit }: TaskView): boolean {
  return state === 'queued' && limit === undefined;
}
