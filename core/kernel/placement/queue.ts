/** Queued tasks leave the queue when workers have open slots. */
import type { TaskView } from '../../api/views.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import type { KernelScope } from '../scope.ts';
import { settle } from '../transitions/transition-loop.ts';

/** The cost of an assignment, which chooses a worker and makes a message, in other transitions. */
const STEPS_PER_ASSIGNMENT = 4;

/**
 * Sends queued tasks to open slots, the best first, each with everything that follows from it. Runs
 * after every stimulus (Dask: only after some), so that no slot stays open while tasks are queued.
 * O(1) when no slot is open. In slices it leaves the rest to later stimuli.
 */
export function refillFromQueue(scope: KernelScope): void {
  const { openSlots } = scope.cluster;
  if (scope.holdsQueue) return;
  const end = scope.transitionCounter + scope.options.sliceTransitions / STEPS_PER_ASSIGNMENT;
  while (openSlots.size > 0) {
    const task = nextQueued(scope);
    if (task === undefined) return;
    if (scope.transitionCounter >= end) {
      scope.isRefillLeft = true;
      return;
    }
    if (!task.isNeeded) {
      scope.recommend(task, 'released');
      settle(scope);
      continue;
    }
    // It was queued before workers of another language came: it is placed as if it were new.
    const isBound = scope.cluster.languageFor(task) !== undefined;
    scope.recommend(task, isBound ? 'released' : 'processing');
    settle(scope);
    if (task.state !== 'queued') continue;
    // The policy did not want the open slot after all.
    scope.isQueueRefused = true;
    return;
  }
}

/** The best queued task, unless the queuing policy has another one in mind for the open slot. */
function nextQueued(scope: KernelScope): TaskState | undefined {
  const { queued, openSlots } = scope.cluster;
  const best = queued.peek();
  if (best === undefined || scope.ports.queuing.policy.nextQueued === undefined) return best;
  const answer = askPolicy(scope, NEXT_QUEUED, openSlots.peek() as WorkerState);
  return (answer as TaskState | undefined) ?? best;
}

const NEXT_QUEUED: Question<'queuing', WorkerState, TaskView | undefined> = {
  slot: 'queuing',
  ask: (policy, { cluster }, worker) => policy.nextQueued?.(worker, cluster),
  refuse: (answer, { cluster }, worker) =>
    answer === undefined ||
    (answer.state === 'queued' &&
      answer.limit === undefined &&
      cluster.tasks.get(answer.key) === answer)
      ? undefined
      : `gave an open slot of ${worker.address} to ${answer.key}, which is not queued`,
};
