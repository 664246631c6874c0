import type { ClusterState } from '../../core/state/cluster.ts';
import type { TaskState } from '../../core/state/task.ts';

/**
 * Recordings go through Python's sets in ascending order of keys. The kernel goes through its own in
 * order of insertion, which is as good; before a stimulus is replayed it is given the recorded one.
 */
export function putInCanonicalOrder(cluster: ClusterState): void {
  for (const { dependentsWithForgotten } of cluster.tasks.values()) {
    if (dependentsWithForgotten.length > 1) dependentsWithForgotten.sort(byKey);
  }
  for (const worker of cluster.workersByRank) reorder(worker.processing);
  reorder(cluster.replicated);
  for (const client of cluster.clients.values()) reorder(client.wantsWhat);
}

/** A set of tasks that keeps the order in which they were added. */
interface Ordered extends Iterable<TaskState> {
  add(task: TaskState): unknown;
  delete(task: TaskState): unknown;
}

function reorder(tasks: Ordered): void {
  const sorted = [...tasks].sort(byKey);
  for (const task of sorted) tasks.delete(task);
  for (const task of sorted) tasks.add(task);
}

function byKey(a: TaskState, b: TaskState): number {
  return a.key < b.key ? -1 : Number(a.key > b.key);
}
