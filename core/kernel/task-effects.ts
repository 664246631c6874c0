import type { YardmasterError } from '../api/errors.ts';
import type { TransitionDetails } from '../api/hooks.ts';
import type { ActionTiming } from '../state/groups.ts';
import { type ClusterState, FIRE_AND_FORGET } from '../state/cluster.ts';
import {
  addReplica,
  dropDependency,
  dropDependent,
  removeAllReplicas,
  removeWaiter,
  removeWant,
  setTaskState,
  stopWaiting,
  takeTranslations,
} from '../state/relations.ts';
import {
  type Blame,
  byPriority,
  type ClientState,
  isSortedByPriority,
  NO_TASKS,
  type TaskState,
  type WorkerState,
} from '../state/task.ts';
import { checkIdleSaturated } from './occupancy.ts';
import { invariantError } from './ports.ts';
import { reportTaskOver } from './priorities.ts';
import { leaveUnrunnable } from './queues.ts';
import type { KernelScope } from './scope.ts';

// What a step of one task means for its dependencies, dependents, workers and clients.
// Source: Dask's `_propagate_released`, `_propagate_forgotten`, `_add_to_memory`.

/**
 * The task no longer needs its dependencies; those that no other task needs are released.
 * @param timings - of its run
 */
export function becomeInactive(
  scope: KernelScope,
  task: TaskState,
  timings?: readonly ActionTiming[],
): void {
  if (!stopWaiting(task)) return;
  if (scope.ports.fairness.policy.taskOver !== undefined) reportTaskOver(scope, task, timings);
  for (const dependency of task.dependencies) {
    if (!removeWaiter(dependency)) continue;
    const { state } = dependency;
    // A failure stays known; its waiters are those that have not failed with it yet.
    if (state !== 'released' && state !== 'erred') scope.recommendRelease(dependency, 'released');
  }
}

/**
 * A result is in memory. Ready dependents come first, then dependencies to release, then the task
 * itself.
 */
export function addToMemory(
  scope: KernelScope,
  task: TaskState,
  worker: WorkerState,
  type: string | undefined,
  timings?: readonly ActionTiming[],
): void {
  addReplica(scope.cluster, task, worker);
  recommendReadyDependents(scope, task);
  becomeInactive(scope, task, timings);
  setTaskState(task, 'memory');
  if (type !== undefined) {
    task.type = type;
    task.group.addType(type);
  }
  if (task.isNeeded) reportInMemory(scope, task);
  // What may need it is left.
  else if (!scope.unproven.includes(task)) scope.recommendRelease(task, 'released');
  dropFireAndForget(scope, task);
}

/** The dependents for which this result was the last one missing, the best one to be sent first. */
export function recommendReadyDependents(scope: KernelScope, task: TaskState): void {
  let ready: TaskState | undefined;
  let others: TaskState[] | undefined;
  for (const dependent of task.dependentsWithForgotten) {
    if (dependent.state !== 'waiting' || --dependent.missingDependencyCount > 0) continue;
    if (ready === undefined) ready = dependent;
    else (others ??= [ready]).push(dependent);
  }
  if (others !== undefined) {
    if (!isSortedByPriority(others)) others.sort(byPriority);
    // The last recommendation is followed first: descending order dispatches the best one first.
    scope.recommendAll(others.reverse(), 'processing');
  } else if (ready !== undefined) {
    scope.recommend(ready, 'processing');
  }
}

/** The task is no longer open. If it is still needed, it starts again. */
export function propagateReleased(scope: KernelScope, task: TaskState): void {
  setTaskState(task, 'released');
  if (task.hasLostDependencies) {
    scope.recommend(task, 'forgotten');
  } else if (task.isNeeded) {
    // It stays a waiter of its dependencies: they must not be released in between.
    scope.recommend(task, 'waiting');
    return;
  }
  becomeInactive(scope, task);
  task.waiterCount = 0;
}

/** The task failed: by itself, as `details.failure` says, or with the blame set before. */
export function propagateErred(
  scope: KernelScope,
  task: TaskState,
  details: TransitionDetails,
): void {
  const { failure } = details;
  if (failure !== undefined) scope.blame(task, failure);
  else if (task.blame === undefined) throw nothingToBlame(scope, task);
  setTaskState(task, 'erred');
  if (details.worker !== undefined) task.erredOn = new Set([...task.erredOn, details.worker]);
  rememberErred(scope, task);
  scope.recommendAll(waitersOf(task), 'erred');
  becomeInactive(scope, task, details.timings);
  reportErred(scope, task);
  dropFireAndForget(scope, task);
}

/** Most have none; often all of very many dependents are waiters, and are not copied then. */
function waitersOf({ waiterCount, dependentsWithForgotten }: TaskState): readonly TaskState[] {
  if (waiterCount === 0) return NO_TASKS;
  if (waiterCount === dependentsWithForgotten.length) return dependentsWithForgotten;
  return dependentsWithForgotten.filter(({ countsAsWaiter }) => countsAsWaiter);
}

/** The task leaves the tables, and everything that cannot be computed without it follows. */
export function propagateForgotten(scope: KernelScope, task: TaskState): void {
  const { cluster } = scope;
  setTaskState(task, 'forgotten');
  for (const dependent of task.dependentCount === 0 ? NO_TASKS : task.dependents) {
    dependent.hasLostDependencies = true;
    dropDependency(cluster, dependent, task);
    if (dependent.state !== 'memory' && dependent.state !== 'erred') {
      scope.recommend(dependent, 'forgotten');
    }
  }
  task.dependentsWithForgotten = NO_TASKS;
  task.dependentCount = 0;
  task.waiterCount = 0;
  for (const dependency of task.dependencies) {
    dropDependent(dependency, task);
    if (dependency.dependentCount === 0 && dependency.whoWants.size === 0) {
      scope.recommendRelease(dependency, 'forgotten');
    }
  }
  task.countsAsWaiter = false;
  task.dependencies = NO_TASKS;
  task.missingDependencyCount = 0;
  freeReplicas(scope, task);
}

/** Removes all copies and notifies their holders. */
export function freeReplicas(scope: KernelScope, task: TaskState): void {
  if (scope.cluster.translations.size > 0) {
    for (const worker of takeTranslations(scope.cluster, task)) sendFreeKeys(scope, task, worker);
  }
  if (task.whoHas.size === 0) return;
  for (const worker of task.whoHas.items) sendFreeKeys(scope, task, worker);
  removeAllReplicas(scope.cluster, task);
}

/**
 * The run of a task is taken back. It counts until the worker says that it has ended: for the limit of the task, and, unless it
 * has seceded, as one that occupies a thread.
 */
export function takeBackRun(
  scope: KernelScope,
  task: Pick<TaskState, 'key' | 'runId' | 'limit'>,
  worker: WorkerState,
  isSeceded: boolean,
): void {
  if (worker.identity.tellsRunEnds !== true) {
    sendFreeKeys(scope, task, worker);
    return;
  }
  const { stimulusId, killTimeoutMs } = scope;
  const { runId } = task;
  const limit = killTimeoutMs === undefined ? {} : { killTimeoutMs };
  const message = {
    op: 'free-keys',
    keys: [task.key],
    runIds: [runId],
    ...limit,
    stimulusId,
  } as const;
  // Before the run is counted: one of which the worker is never told would count for ever.
  scope.outbox.toWorker(worker, message);
  (isSeceded ? worker.lingeringRuns : worker.endingRuns).add(runId);
  if (task.limit !== undefined) scope.cluster.limits.addEndingRun(task.limit, runId);
  checkIdleSaturated(scope, worker);
}

/** A run has failed by its time limit, and its code goes on: it counts for the limit of the task until the worker says that it has ended. */
export function countOverdueRun(
  { limits }: ClusterState,
  { limit, runId }: TaskState,
  worker: WorkerState,
): void {
  if (limit === undefined) return;
  worker.lingeringRuns.add(runId);
  limits.addEndingRun(limit, runId);
}

/** A run that was taken back, or was overdue, has ended. Returns false when it was not known. */
export function endRun(cluster: ClusterState, worker: WorkerState, runId: number): boolean {
  if (!worker.endingRuns.delete(runId) && !worker.lingeringRuns.delete(runId)) return false;
  cluster.limits.endRun(runId);
  return true;
}

export function sendFreeKeys(
  scope: KernelScope,
  task: Pick<TaskState, 'key'>,
  worker: WorkerState,
): void {
  const { stimulusId, killTimeoutMs } = scope;
  const keys = [task.key];
  scope.outbox.toWorker(
    worker,
    killTimeoutMs === undefined
      ? { op: 'free-keys', keys, stimulusId }
      : { op: 'free-keys', keys, killTimeoutMs, stimulusId },
  );
}

/** Takes a forgotten task out of every container. */
export function removeKey(scope: KernelScope, task: TaskState): void {
  if (task.whoWants.size > 0) {
    for (const client of [...task.whoWants.items]) removeWant(client, task);
  }
  leaveUnrunnable(scope, task);
  scope.cluster.removeTask(task);
}

/**
 * The client stops wanting these tasks: those that no client wants are released, and forgotten
 * where nothing depends on them.
 */
export function releaseWants(
  scope: KernelScope,
  client: ClientState,
  tasks: Iterable<TaskState>,
): void {
  for (const task of tasks) {
    if (removeWant(client, task)) releaseUnwanted(scope, task);
  }
}

/** A client stops wanting the task. If it was the last one, the task is released or forgotten. */
export function releaseUnwanted(scope: KernelScope, task: TaskState): void {
  if (task.whoWants.size > 0) return;
  if (task.dependentCount === 0) scope.recommendRelease(task, 'forgotten');
  else if (task.state !== 'erred' && task.waiterCount === 0)
    scope.recommendRelease(task, 'released');
}

/** A fire-and-forget want ends as soon as the task is done, with or without success. */
export function dropFireAndForget(scope: KernelScope, task: TaskState): void {
  if (task.whoWants.size === 0) return;
  const service = scope.cluster.clients.get(FIRE_AND_FORGET);
  if (service === undefined || service.wantsWhat.size === 0) return;
  if (service.wantsWhat.has(task)) releaseWants(scope, service, [task]);
}

function rememberErred(scope: KernelScope, task: TaskState): void {
  const failure = task.blame?.failure;
  const { erredTasks } = scope.cluster;
  erredTasks.unshift({
    key: task.key,
    atMs: scope.nowMs,
    erredOn: [...task.erredOn],
    exceptionText: failure?.exceptionText ?? '',
    tracebackText: failure?.tracebackText ?? '',
  });
  if (erredTasks.length > scope.options.erredTasksMax) erredTasks.pop();
}

/** Reports to all clients that want the task that its result is in memory. */
function reportInMemory(scope: KernelScope, task: TaskState): void {
  for (const client of task.whoWants.items) tellInMemory(scope, task, client);
}

/** Reports to all clients that want the task that it failed, and which task caused that. */
export function reportErred(scope: KernelScope, task: TaskState): void {
  for (const client of task.whoWants.items) tellErred(scope, task, client);
}

/** Reports the state of a task to one client; silent while the task is open. */
export function reportState(scope: KernelScope, task: TaskState, client: ClientState): void {
  if (task.state === 'memory') tellInMemory(scope, task, client);
  else if (task.state === 'erred') tellErred(scope, task, client);
}

function tellInMemory(scope: KernelScope, task: TaskState, client: ClientState): void {
  const { key, nbytes, type } = task;
  const workers = task.whoHas.items.map((worker) => worker.address);
  // Spreads would make it several times as expensive.
  scope.outbox.toClient(
    client,
    type === undefined
      ? { op: 'key-in-memory', key, nbytes, workers }
      : { op: 'key-in-memory', key, type, nbytes, workers },
  );
}

function tellErred(scope: KernelScope, task: TaskState, client: ClientState): void {
  const { blame } = task;
  if (blame === undefined) throw nothingToBlame(scope, task);
  const { key } = blame.task;
  scope.outbox.toClient(client, {
    op: 'task-erred',
    key: task.key,
    blame: key,
    failure: blame.failure,
  });
}

/**
 * The failure could not be explained to clients: it needs a cause, its own or that of another task.
 */
export function nothingToBlame(scope: KernelScope, task: TaskState): YardmasterError {
  return invariantError(
    `${task.key} erred without anything to blame`,
    { key: task.key },
    scope.story.about([task.key]),
  );
}

/**
 * A failed dependency of these tasks starts again. A task that has failed follows with the last of them: before
 * that it would wait for one that may never start.
 */
export function recover(scope: KernelScope, tasks: readonly TaskState[]): void {
  const ready: TaskState[] = [];
  for (const task of tasks) {
    if (task.state !== 'erred') continue;
    if (erredDependency(task) === undefined) ready.push(task);
    else blameAnother(task);
  }
  scope.recommendAll(ready, 'waiting');
}

export function erredDependency(task: TaskState): TaskState | undefined {
  for (const dependency of task.dependencies) if (dependency.state === 'erred') return dependency;
  return undefined;
}

/**
 * Returns the first of the failures that hold a task back. Those that happen before a task that was left has its turn do
 * not change it. O(dependencies).
 */
export function firstFailure(task: TaskState): Blame | undefined {
  let first: Blame | undefined;
  for (const dependency of task.dependencies) {
    if (dependency.state !== 'erred') continue;
    const blame = dependency.blame as Blame;
    if (first === undefined || blame.failureNumber < first.failureNumber) first = blame;
  }
  return first;
}

/**
 * A task whose cause of failure is being computed again while another failure still holds it back: that
 * one is to blame from here on, for the task and for what failed with it. O(failed descendants).
 */
export function blameAnother(start: TaskState): void {
  const stack = [start];
  for (let task = stack.pop(); task !== undefined; task = stack.pop()) {
    if (task.state !== 'erred' || blamesWhatHoldsItBack(task)) continue;
    const other = erredDependency(task);
    // Without one, its dependencies are about to start again and take it along.
    if (other === undefined) continue;
    task.blame = other.blame;
    for (const dependent of task.dependents) stack.push(dependent);
  }
}

/** True when a failed task failed itself, or with a dependency that is failed for the same reason. */
export function blamesWhatHoldsItBack({ blame, failure, dependencies }: TaskState): boolean {
  if (failure !== undefined) return true;
  return dependencies.some((dependency) => {
    return dependency.state === 'erred' && dependency.blame === blame;
  });
}
