/** Policies that look at graphs as a whole are shown them before any of their tasks is placed. */
import type { TaskState } from '../../state/task.ts';
import { askPolicy, type Question } from '../placement/ask-policy.ts';
import type { KernelPorts } from '../ports.ts';
import type { KernelScope } from '../scope.ts';

/** Whether any policy or watcher examines graphs. */
export function wantsGraphs({ ports, watchers }: KernelScope): boolean {
  const { queuing, workerSelection } = ports;
  return (
    queuing.policy.prepare !== undefined ||
    workerSelection.policy.prepare !== undefined ||
    watchers.some((watcher) => watcher.prepare !== undefined)
  );
}

/** Shows the policies tasks that were linked and are not placed yet, dependencies first. */
export function showGraph(scope: KernelScope, tasks: readonly TaskState[]): void {
  if (tasks.length === 0) return;
  askPolicy(scope, PREPARE_QUEUING, tasks);
  askPolicy(scope, PREPARE_SELECTION, tasks);
  for (const watcher of scope.watchers) watcher.prepare?.(tasks);
}

/**
 * Shows the known tasks to policies that have just been installed. O(tasks) if they examine graphs.
 */
export function showKnownTasks(scope: KernelScope, before: KernelPorts): void {
  const { queuing, workerSelection } = scope.ports;
  const isNewQueuing = queuing.policy !== before.queuing.policy;
  const isNewSelection = workerSelection.policy !== before.workerSelection.policy;
  if (!(isNewQueuing || isNewSelection) || !wantsGraphs(scope)) return;
  const tasks = knownTasks(scope);
  if (tasks.length === 0) return;
  if (isNewQueuing) askPolicy(scope, PREPARE_QUEUING, tasks);
  if (isNewSelection) askPolicy(scope, PREPARE_SELECTION, tasks);
}

/** Tasks that a graph brought, for policies that are installed later. */
export function knownTasks({ cluster }: KernelScope): TaskState[] {
  return [...cluster.tasks.values()].filter((task) => task.runSpec !== undefined);
}

const PREPARE_QUEUING: Question<'queuing', readonly TaskState[], void> = {
  slot: 'queuing',
  ask: (policy, { cluster }, tasks) => policy.prepare?.(tasks, cluster),
  refuse: () => undefined,
};

const PREPARE_SELECTION: Question<'workerSelection', readonly TaskState[], void> = {
  slot: 'workerSelection',
  ask: (policy, { cluster }, tasks) => policy.prepare?.(tasks, cluster),
  refuse: () => undefined,
};
