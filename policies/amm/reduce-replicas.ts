import {
  ActiveMemoryManagerPolicy,
  type AmmView,
  drop,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
} from '../../core/api/index.ts';

/**
 * The future workers of a task's waiters are not examined when it has at least this many waiters.
 */
const WAITERS_LOOKED_AT = 20;

/**
 * Drops copies that no task needs. It keeps as many copies as were requested (`replicas`), or as
 * many as there are workers that will read them. Dask's `ReduceReplicas`, except that Dask's also
 * drops requested copies.
 */
export class ReduceReplicas extends ActiveMemoryManagerPolicy {
  static override readonly optionsSchema = { type: 'object', additionalProperties: false };

  /** O(replicated tasks, and the waiters of those with fewer than 20). */
  override *run({ cluster, pending }: AmmView): SuggestionGenerator {
    for (const task of cluster.replicated) {
      const moves = pending.get(task);
      const copies = task.whoHas.size + (moves?.replicate.size ?? 0) - (moves?.drop.size ?? 0);
      const needed = Math.max(task.replicas, readers(task));
      for (let excess = copies - needed; excess > 0; excess--) yield drop(task);
    }
  }
}

/** Workers on which the result will be read: at best, waiters that run on one worker share a copy. */
function readers(task: TaskView): number {
  if (task.waiterCount <= 1 || task.waiterCount >= WAITERS_LOOKED_AT) return task.waiterCount;
  const places = new Set<TaskView | WorkerView>();
  for (const waiter of task.waiters) places.add(waiter.processingOn ?? waiter);
  return places.size;
}
