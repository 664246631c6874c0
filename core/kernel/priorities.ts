/** Who comes first. Source: behaviour.md section 8.5. */
import type { UpdateGraph } from '../messages/stimulus.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import type { KernelScope } from './scope.ts';

/** How much earlier than its parent a task that was submitted from inside a task is. */
const SUBMITTED_INSIDE = 0.01;

/**
 * The generation of a submission: older submissions come first, and those closer together than the
 * timeout share a generation. A task's own submissions precede every ordinary generation.
 */
export function generationOf(scope: KernelScope, stimulus: UpdateGraph): number {
  const { cluster, nowMs } = scope;
  const parent =
    stimulus.submittingTask === undefined ? undefined : cluster.tasks.get(stimulus.submittingTask);
  if (parent !== undefined) return parent.negatedUserPriority - SUBMITTED_INSIDE;
  if (cluster.lastGenerationMs + (stimulus.fifoTimeoutMs ?? 0) < nowMs) {
    cluster.generation++;
    cluster.lastGenerationMs = nowMs;
  }
  return cluster.generation;
}

/** The static order of the graph: as the client gives it, else as the ordering policy says. */
export function ranksOf(scope: KernelScope, stimulus: UpdateGraph): ArrayLike<number> {
  const { tasks } = stimulus;
  if (tasks.every((task) => task.rank !== undefined)) {
    return tasks.map((task) => task.rank as number);
  }
  return askPolicy(scope, ORDER, stimulus);
}

const ORDER: Question<'ordering', UpdateGraph, ArrayLike<number>> = {
  slot: 'ordering',
  ask: (policy, _scope, { tasks, keys }) => policy.order(tasks, keys),
  refuse: (ranks, _scope, { tasks }) => refuseRanks(ranks, tasks.length),
};

function refuseRanks(ranks: ArrayLike<number>, count: number): string | undefined {
  if (ranks.length !== count) return `ranked ${ranks.length} of ${count} tasks`;
  for (let index = 0; index < count; index++) {
    const rank = ranks[index] as number;
    if (!Number.isInteger(rank) || rank < 0) return `gave the rank ${String(rank)}`;
  }
  return undefined;
}
