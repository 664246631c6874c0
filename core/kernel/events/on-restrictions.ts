/** Plugins steer single tasks: where they run, and that they run again. */
import type { ReleaseTasks, RestrictionChange, SetRestrictions } from '../../messages/stimulus.ts';
import type { Restrictions } from '../../state/restrictions.ts';
import type { TaskState } from '../../state/task.ts';
import type { KernelScope } from '../scope.ts';
import { settle } from '../transitions/transition-loop.ts';

/** O(changes). */
export function onSetRestrictions(scope: KernelScope, { changes }: SetRestrictions): void {
  for (const change of changes) {
    const task = scope.cluster.tasks.get(change.key);
    if (task === undefined) continue;
    if (change.workers !== undefined) restrictTo(task, change.workers);
    task.isQueueable = change.isQueueable ?? task.isQueueable;
    if (task.state === 'no-worker') scope.recommend(task, 'processing');
    // The queue holds only tasks that may go anywhere; it comes back if this is still one.
    else if (task.state === 'queued') scope.recommend(task, 'released');
  }
  settle(scope);
}

/** The last key first, so that what depends on others comes before them when it is named first. O(keys). */
export function onReleaseTasks(scope: KernelScope, { keys }: ReleaseTasks): void {
  for (let index = keys.length - 1; index >= 0; index--) {
    const task = scope.cluster.tasks.get(keys[index] as string);
    if (task?.runSpec === undefined || task.state === 'erred') continue;
    if (task.state !== 'released') scope.recommend(task, 'released');
  }
  settle(scope);
}

function restrictTo(task: TaskState, workers: NonNullable<RestrictionChange['workers']>): void {
  const { hosts, resources, loose } = task.restrictions ?? {};
  const isEmpty = workers.length === 0 && hosts === undefined && resources === undefined;
  task.restrictions = isEmpty
    ? undefined
    : {
        ...workerSets(workers),
        ...(hosts === undefined ? {} : { hosts }),
        ...(resources === undefined ? {} : { resources }),
        ...(loose === undefined ? {} : { loose }),
      };
}

function workerSets(entries: readonly string[]): Pick<Restrictions, 'workers' | 'names'> {
  const workers = new Set(entries.filter(isAddress));
  const names = new Set(entries.filter((entry) => !isAddress(entry)));
  return { ...(workers.size > 0 ? { workers } : {}), ...(names.size > 0 ? { names } : {}) };
}

function isAddress(entry: string): boolean {
  return entry.includes(':');
}
