/** Who comes first. Source: Dask's `update_graph`. */
import type { Submission } from '../../api/policies.ts';
import type { UpdateGraph } from '../../messages/stimulus.ts';
import { isPromise } from '../../util/is-promise.ts';
import { byPriority, type TaskState } from '../../state/task.ts';
import { askPolicy, nameAnswer, type Question } from '../placement/ask-policy.ts';
import type { KernelScope } from '../scope.ts';

/** How much earlier than its parent a task that was submitted from inside a task is. */
const SUBMITTED_INSIDE = 0.01;

/**
 * A submission as the fairness policy sees it. Its number: older submissions come first, and those
 * closer together than the timeout share a generation. A task's own submissions precede every ordinary
 * generation.
 */
export function submissionOf(scope: KernelScope, stimulus: UpdateGraph): Submission {
  const { cluster, nowMs } = scope;
  const { client, submittingTask, fifoTimeoutMs = 0 } = stimulus;
  const parent = submittingTask === undefined ? undefined : cluster.tasks.get(submittingTask);
  if (parent === undefined && cluster.lastGenerationMs + fifoTimeoutMs < nowMs) {
    cluster.generation++;
    cluster.lastGenerationMs = nowMs;
  }
  const generation =
    parent === undefined ? cluster.generation : parent.negatedUserPriority - SUBMITTED_INSIDE;
  return { client, tasks: [], generation, parent, nowMs };
}

/** The generation that all tasks of a submission begin with. */
export function generationOf(scope: KernelScope, submission: Submission): number {
  const { isPerTask } = scope.ports.fairness.policy;
  const generation =
    isPerTask === true ? submission.generation : (askGenerations(scope, submission) as number);
  for (const watcher of scope.watchers) watcher.submitted?.(submission, generation);
  return generation;
}

/** Asks the fairness policy. */
export function askGenerations(
  scope: KernelScope,
  submission: Submission,
): number | ArrayLike<number> {
  return askPolicy(scope, GENERATIONS, submission);
}

/**
 * Gives each new task its own generation, for a policy that distinguishes the tasks of a
 * submission. O(n log n).
 */
export function setGenerations(
  scope: KernelScope,
  submission: Submission,
  tasks: TaskState[],
): void {
  if (tasks.length === 0) return;
  tasks.sort(byPriority);
  const generations = askGenerations(scope, { ...submission, tasks });
  for (let index = 0; index < tasks.length; index++) {
    const generation = typeof generations === 'number' ? generations : generations[index];
    (tasks[index] as TaskState).generation = generation as number;
  }
}

/** Notifies the fairness policy that a task is no longer open. */
export function reportTaskOver(scope: KernelScope, task: TaskState): void {
  askPolicy(scope, TASK_OVER, task);
}

const GENERATIONS: Question<'fairness', Submission, number | ArrayLike<number>> = {
  slot: 'fairness',
  ask: (policy, { cluster }, submission) => policy.generations(submission, cluster),
  refuse: (generations, _scope, { tasks }) => refuseGenerations(generations, tasks.length),
};

const TASK_OVER: Question<'fairness', TaskState, void> = {
  slot: 'fairness',
  ask: (policy, { cluster }, task) => {
    const isServed =
      task.whoHas.size > 0 || (task.state === 'erred' && task.exceptionBlame === task);
    policy.taskOver?.(task, isServed, cluster);
  },
  refuse: () => undefined,
};

function refuseGenerations(
  generations: number | ArrayLike<number>,
  count: number,
): string | undefined {
  if (typeof generations === 'number') {
    return Number.isFinite(generations) ? undefined : `gave the generation ${generations}`;
  }
  if (typeof generations !== 'object' || isPromise(generations)) {
    return `gave ${nameAnswer(generations)} instead of the number of a generation`;
  }
  if (count === 0) return 'gave a list of generations, and does not say that it isPerTask';
  if (generations.length !== count) {
    return `gave ${String(generations.length)} generations to ${count} tasks`;
  }
  for (let index = 0; index < count; index++) {
    const generation: unknown = generations[index];
    if (!Number.isFinite(generation)) return `gave the generation ${String(generation)}`;
  }
  return undefined;
}
