import type { TaskState } from '../../state/task.ts';
import type { KernelScope } from '../scope.ts';

/** The tasks of those keys that the scheduler knows. */
export function knownTasks({ cluster }: KernelScope, keys: readonly string[]): TaskState[] {
  return keys
    .map((key) => cluster.tasks.get(key))
    .filter((task): task is TaskState => task !== undefined);
}
