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
}

/** Counts of the tasks that exist, by prefix, in the order in which prefixes came. O(prefixes). */
export function countTasks({ prefixes }: ClusterState): readonly PrefixCounts[] {
  const counts: PrefixCounts[] = [];
  for (const { name, states } of prefixes.values()) {
    const present = TASK_STATE_NAMES.filter((state) => state !== 'forgotten' && states[state] > 0);
    if (present.length === 0) continue;
    counts.push({
      prefix: name,
      states: Object.fromEntries(present.map((state) => [state, states[state]])),
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
