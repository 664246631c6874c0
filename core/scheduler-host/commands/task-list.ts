import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState } from '../../state/task.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../../state/task-state-name.ts';
import type { Given } from './builtin-parameters.ts';

const LIMIT = 100;

/** How many tasks of a prefix are in each state. */
export interface PrefixCounts {
  readonly prefix: string;
  /** Without states of which there are none. */
  readonly states: Readonly<Partial<Record<TaskStateName, number>>>;
  /** How often tasks of it have come to a result, and have failed, since the scheduler started; on request. */
  readonly ever?: { readonly done: number; readonly failed: number };
}

/**
 * Counts of the tasks that exist, by prefix, in the order in which prefixes came. O(groups).
 * @param withPast - also what has ever been done, and prefixes of which there are no tasks any more
 */
export function countTasks(
  { prefixes }: ClusterState,
  { withPast = false }: Given<'task-counts'>,
): readonly PrefixCounts[] {
  const counts: PrefixCounts[] = [];
  for (const { name, states, stateCounts } of prefixes.values()) {
    const present = TASK_STATE_NAMES.filter((state) => state !== 'forgotten' && states[state] > 0);
    if (present.length === 0 && !withPast) continue;
    counts.push({
      prefix: name,
      states: Object.fromEntries(present.map((state) => [state, states[state]])),
      ...(withPast ? { ever: { done: stateCounts.memory, failed: stateCounts.erred } } : {}),
    });
  }
  return counts;
}

/** Tasks in a state, or of a prefix, in the order in which they came; at most `limit`. O(tasks) at worst. */
export function listTasks(
  { tasks }: ClusterState,
  { state, prefix, limit = LIMIT }: Given<'list-tasks'>,
): readonly TaskState[] {
  const found: TaskState[] = [];
  for (const task of tasks.values()) {
    if (found.length >= limit) break;
    if (state !== undefined && task.state !== state) continue;
    if (prefix !== undefined && task.prefix.name !== prefix) continue;
    found.push(task);
  }
  return found;
}
