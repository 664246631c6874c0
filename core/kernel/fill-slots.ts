import type { TaskView } from '../api/views.ts';
import type { TaskLimit, TaskLimits } from '../state/task-limits.ts';
import { byPriority, type TaskState, type WorkerState } from '../state/task.ts';
import { targetOfSuperfluous, workOn } from './agenda.ts';
import { sendResume } from './assignment.ts';
import { askPolicy, nameAnswer, type Question } from './ask-policy.ts';
import { isRootish } from './placement.ts';
import { noteRefusal } from './queues.ts';
import { isSuited } from './restrictions.ts';
import type { KernelScope } from './scope.ts';
import { settle, transition } from './transitions.ts';

// Queued tasks leave the queue when workers have open slots.

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
      leaveAtOnce(scope, task);
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
    answer === undefined || cluster.queued.has(answer)
      ? undefined
      : `gave an open slot of ${worker.address} to ${(answer as Partial<TaskView>).key ?? nameAnswer(answer)}, which is not queued; choose one of cluster.queued`,
};

/**
 * Fills the limits that have room, the best task first, each with everything that follows from it. Runs after every
 * stimulus that leaves such a limit. Without a running worker the tasks stay where they are. In slices it leaves the
 * rest to later stimuli. O(limits with room that tasks wait for + tasks that start).
 */
export function startLimited(scope: KernelScope): void {
  const { limits, running } = scope.cluster;
  if (scope.holdsQueue) return;
  const end = scope.transitionCounter + scope.options.sliceTransitions / STEPS_PER_ASSIGNMENT;
  while (limits.open.size > 0 && running.size > 0) {
    for (const limit of byBestTask(limits)) {
      if (!fill(scope, limit, end)) return;
    }
  }
}

/** Has runs go on whose pause is over, in the order in which they asked. O(limits with room for them + runs that go on). */
export function resumeRuns(scope: KernelScope): void {
  for (const task of scope.cluster.limits.resumed())
    sendResume(scope, task, task.processingOn as WorkerState);
}

/** Returns whether there was time for all of it. */
function fill(scope: KernelScope, limit: TaskLimit, end: number): boolean {
  const { running } = scope.cluster;
  const queue = limit.queued;
  while (limit.hasRoom && running.size > 0) {
    const task = queue.peek();
    if (task === undefined) return true;
    if (scope.transitionCounter >= end) {
      scope.isRefillLeft = true;
      return false;
    }
    if (task.isNeeded) {
      scope.recommend(task, 'processing');
      settle(scope);
    } else {
      leaveAtOnce(scope, task);
    }
  }
  return true;
}

/** Nobody needs the task that is next: it is released now, also if that was left to a later stimulus. */
function leaveAtOnce(scope: KernelScope, task: TaskState): void {
  workOn(task)?.remove(task);
  transition(scope, task, targetOfSuperfluous(task, 'released'));
  settle(scope);
}

/** The best task of a limit decides its turn, so that no order of a set does. */
function byBestTask(limits: TaskLimits): TaskLimit[] {
  const best = (limit: TaskLimit): TaskState => limit.queued.peek() as TaskState;
  return [...limits.open].sort((a, b) => byPriority(best(a), best(b)));
}

// A policy that refused a task is asked again when a worker has less to do, and when a heartbeat brings
// new measurements.

/** Refusals in a row after which the policy is not asked again until the next stimulus. */
const REFUSALS_MAX = 8;

/**
 * Offers refused tasks to the policy again: the oldest first when a worker has less to do, and a
 * few in turn after a heartbeat, because a policy may use memory or other measurements. O(refused
 * tasks) only when nothing is running, so that no task waits for ever.
 */
export function offerRefused(scope: KernelScope): void {
  const { refused } = scope;
  if (scope.holdsQueue) return;
  if (scope.hasFreedWorker) offer(scope, refused);
  else if (scope.hasNewMetrics) offer(scope, refused.nextInTurn(REFUSALS_MAX));
}

/**
 * Offers everything that waits for a worker to policies that have not been asked: what was refused, the
 * best first, and then what is queued, as after every stimulus. O(tasks that wait).
 */
export function offerAll(scope: KernelScope): void {
  const { unrunnable, queued } = scope.cluster;
  for (const task of unrunnable.keys()) noteRefusal(scope, task);
  const waiting = [...unrunnable.keys()].filter((task) => isSuited(scope.cluster, task));
  // The last recommendation is followed first.
  for (const task of waiting.sort((a, b) => byPriority(b, a))) scope.recommend(task, 'processing');
  settle(scope);
  // A task that the policy does not take for root-ish needs no open slot.
  for (const task of queued.sorted().reverse()) {
    if (!isRootish(scope, task)) scope.recommend(task, 'released');
  }
  settle(scope);
}

/**
 * Asks the rules again about tasks that wait because of them, in turn: a few after each stimulus in which a worker has
 * less to do or sends measurements, and only whether they may start on that worker, so that the price does not grow with
 * the cluster. When nothing is running, all of them, so that no task waits for ever.
 */
export function offerRuled(scope: KernelScope): void {
  const { cluster, ruled, rules, changedWorker } = scope;
  if (scope.holdsQueue || !(scope.hasFreedWorker || scope.hasNewMetrics)) return;
  const isIdle = scope.hasFreedWorker && cluster.computingCount === 0;
  let [left, refusals] = [ruled.size, 0];
  for (const task of ruled) {
    if (left-- === 0 || (!isIdle && refusals === REFUSALS_MAX)) return;
    const mayStart = changedWorker === undefined || rules.allows(task, changedWorker);
    if (mayStart && !rules.isHeld(task)) {
      scope.recommend(task, 'processing');
      settle(scope);
    }
    if (!ruled.delete(task)) continue;
    ruled.add(task);
    refusals++;
  }
}

function offer(scope: KernelScope, tasks: Iterable<TaskState>): void {
  const { cluster } = scope;
  let refusals = 0;
  for (const task of tasks) {
    if (task.state !== 'no-worker') continue;
    if (!isSuited(scope.cluster, task)) {
      noteRefusal(scope, task);
      continue;
    }
    scope.recommend(task, 'processing');
    settle(scope);
    // While something runs there will be another chance for the others.
    if (cluster.unrunnable.has(task) && ++refusals >= REFUSALS_MAX && cluster.computingCount > 0) {
      return;
    }
  }
}
