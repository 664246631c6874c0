/** Tasks that wait in the scheduler for a worker get their next chance. */
import type { TaskView } from '../api/views.ts';
import type { TaskState } from '../state/task.ts';
import type { WorkerState } from '../state/worker.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import { isLoose, validWorkers } from './restrictions.ts';
import type { KernelScope } from './scope.ts';
import { settle } from './transition-loop.ts';

/** Tasks in a row that a policy may refuse before it is left alone until the next stimulus. */
const REFUSALS_MAX = 8;
/** An assignment, which chooses a worker and makes a message, takes as long as so many other transitions. */
const STEPS_PER_ASSIGNMENT = 4;

/**
 * Sends queued tasks to open slots, the best first, each with everything that follows from it. Runs
 * after every stimulus (Dask: only after some), so that no slot stays open while tasks are queued.
 * O(1) when nothing is queued or no slot is open. In slices it leaves the rest to later stimuli.
 */
export function refillFromQueue(scope: KernelScope): void {
  const { openSlots } = scope.cluster;
  scope.isRefillLeft = false;
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
    answer === undefined || (answer.state === 'queued' && cluster.tasks.get(answer.key) === answer)
      ? undefined
      : `gave an open slot of ${worker.address} to ${answer.key}, which is not queued`,
};

/**
 * A policy with `admits` or `select` may refuse all workers because of what they are doing now. Such
 * tasks are offered again, the oldest first, when a worker has less to do. O(1) without such a policy.
 */
export function offerRefused(scope: KernelScope): void {
  const { cluster } = scope;
  const { unrunnable } = cluster;
  if (unrunnable.size === 0 || !scope.hasFreedWorker || scope.holdsQueue) return;
  const { policy } = scope.ports.workerSelection;
  if (policy.admits === undefined && policy.select === undefined) return;
  let refusals = 0;
  for (const task of [...unrunnable.keys()]) {
    if (task.state !== 'no-worker' || !isSuited(scope, task)) continue;
    scope.recommend(task, 'processing');
    settle(scope);
    // While something runs there will be another chance for the others.
    if (!unrunnable.has(task)) continue;
    if (++refusals >= REFUSALS_MAX && cluster.computingCount > 0) return;
  }
}

/** Whether any running worker satisfies the restrictions; if none does, it waits for another one. */
function isSuited({ cluster }: KernelScope, task: TaskState): boolean {
  const valid = validWorkers(cluster, task);
  return valid === undefined || valid.size > 0 || isLoose(cluster, task);
}
