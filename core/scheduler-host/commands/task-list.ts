import { YardmasterError } from '../../api/errors.ts';
import { hint } from '../../config/errors.ts';
import { isPlainObject } from '../../config/prepare.ts';
import type { ClusterState } from '../../state/cluster.ts';
import type { TaskState } from '../../state/task.ts';
import { TASK_STATE_NAMES, type TaskStateName } from '../../state/task-state-name.ts';
import { wrongParameter } from '../../host/wrong-parameter.ts';

const LIMIT = 100;
const LIMIT_MAX = 10_000;

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

/**
 * Tasks in a state, or of a prefix, in the order in which they came; at most `limit`. O(tasks) at worst.
 * @throws YardmasterError `ERR_PROTOCOL` naming the field
 */
export function listTasks({ tasks }: ClusterState, given: unknown): readonly TaskState[] {
  const { state, prefix, limit } = selectionIn(given);
  const found: TaskState[] = [];
  for (const task of tasks.values()) {
    if (found.length >= limit) break;
    if (state !== undefined && task.state !== state) continue;
    if (prefix !== undefined && task.prefix.name !== prefix) continue;
    found.push(task);
  }
  return found;
}

function selectionIn(given: unknown): {
  readonly state: TaskStateName | undefined;
  readonly prefix: string | undefined;
  readonly limit: number;
} {
  const { state, prefix, limit = LIMIT } = isPlainObject(given) ? given : {};
  if (state !== undefined && !TASK_STATE_NAMES.includes(state as TaskStateName)) {
    const name = typeof state === 'string' ? state : typeof state;
    throw new YardmasterError(
      'ERR_PROTOCOL',
      `there is no task state "${name}"${hint(name, TASK_STATE_NAMES)}; there are ${TASK_STATE_NAMES.join(', ')}`,
      { command: 'list-tasks', field: 'state' },
    );
  }
  if (prefix !== undefined && typeof prefix !== 'string') {
    throw wrongParameter('list-tasks', 'prefix', 'a string');
  }
  const isLimit = Number.isInteger(limit) && (limit as number) >= 1;
  if (!isLimit || (limit as number) > LIMIT_MAX) {
    throw wrongParameter('list-tasks', 'limit', `a whole number from 1 to ${LIMIT_MAX}`);
  }
  return { state: state as TaskStateName | undefined, prefix, limit: limit as number };
}
