/** The invariants of one task, by state. Source: Dask's `validate_state`. */
import type { ClusterState } from '../../state/cluster.ts';
import { isActive } from '../../state/task-state-name.ts';
import type { TaskState } from '../../state/task.ts';
import { unreachable } from '../../util/assert.ts';
import { queueOf } from '../placement/queues.ts';
import { isDeferred } from '../transitions/deferred-releases.ts';
import { blamesWhatHoldsItBack } from '../transitions/recovery.ts';
import { isInLine } from '../graph/pending-starts.ts';

/** Throws when the condition does not hold. */
export type Check = (condition: boolean, complaint: string) => void;

/** What earlier stimuli have left to later ones. */
export interface LeftWork {
  /** Dependents that a failed task has not taken along yet, by the failed task. */
  readonly unvisited: ReadonlyMap<TaskState, ReadonlySet<TaskState>>;
  /** Results that dependents may still count as missing. */
  readonly startingLater: ReadonlySet<TaskState>;
}

export function validateTask(
  cluster: ClusterState,
  task: TaskState,
  left: LeftWork,
  check: Check,
): void {
  validateLinks(cluster, task, check);
  const { state } = task;
  check((task.processingOn !== undefined) === (state === 'processing'), 'has a worker, or not');
  check(task.whoHas.size > 0 === (state === 'memory'), 'has replicas, or not');
  check(queueOf({ cluster }, task).has(task) === (state === 'queued'), 'is in the queue, or not');
  check(cluster.unrunnable.has(task) === (state === 'no-worker'), 'is unrunnable, or not');
  check(cluster.replicated.has(task) === task.whoHas.size > 1, 'is replicated, or not');
  check(cluster.replicasWanted.has(task) === task.replicas > 1, 'has wanted replicas, or not');
  check(task.countsAsWaiter === isActive(state), 'counts as a waiter, or not');
  check(
    task.whoWants.size > 0 || task.dependentCount > 0 || isDeferred(task),
    'is known although no client wants it and nothing depends on it',
  );
  switch (state) {
    case 'released':
      check(task.waiterCount === 0 || isInLine(task), 'is released under its waiters');
      return;
    case 'waiting':
      check(task.missingDependencyCount > 0, 'waits for nothing');
      return validateInPlay(task, left, check);
    case 'queued':
      if (task.limit === undefined) {
        check(task.restrictions === undefined, 'is queued with restrictions');
        check(!task.isActor, 'is queued although it is an actor');
      }
      return validateInPlay(task, left, check);
    case 'no-worker':
      return validateInPlay(task, left, check);
    case 'processing':
      check(task.processingOn?.processing.has(task) === true, 'is not listed by its worker');
      check(!task.isActor || task.processingOn?.actors.has(task) === true, 'is an unlisted actor');
      return validateInPlay(task, left, check);
    case 'memory':
      return validateMemory(cluster, task, check);
    case 'erred':
      check(task.blame !== undefined, 'blames nothing');
      check(mayBlame(task, left), 'blames what does not hold it back');
      check(task.waiterCount === 0 || left.unvisited.has(task), 'failed under its waiters');
      return;
    case 'forgotten':
      check(false, 'is forgotten and still in the tables');
      return;
    default:
      unreachable(state);
  }
}

/** What earlier stimuli have left may change it; what it failed with may be forgotten. */
function mayBlame(task: TaskState, { unvisited }: LeftWork): boolean {
  return unvisited.size > 0 || task.hasLostDependencies || blamesWhatHoldsItBack(task);
}

function validateLinks(cluster: ClusterState, task: TaskState, check: Check): void {
  const { dependents } = task;
  check(dependents.length === task.dependentCount, 'counts its dependents wrongly');
  let waiters = 0;
  for (const dependent of dependents) {
    check(dependent.dependencies.includes(task), `is unknown to its dependent ${dependent.key}`);
    check(
      cluster.tasks.get(dependent.key) === dependent,
      `has the lost dependent ${dependent.key}`,
    );
    if (dependent.countsAsWaiter) waiters++;
  }
  check(waiters === task.waiterCount, 'counts its waiters wrongly');
  for (const dependency of task.dependencies) {
    check(dependency.dependents.includes(task), `is unknown to its dependency ${dependency.key}`);
    check(cluster.tasks.get(dependency.key) === dependency, `depends on lost ${dependency.key}`);
  }
  for (const worker of task.whoHas.items) {
    check(worker.hasWhat.has(task), `is not listed by its holder ${worker.address}`);
    check(cluster.workers.get(worker.address) === worker, `is held by lost ${worker.address}`);
  }
  for (const client of task.whoWants.items) {
    const isListed = client.isMute || client.wantsWhat.has(task);
    check(isListed, `is not listed by ${client.key}, which wants it`);
  }
}

function validateInPlay(task: TaskState, left: LeftWork, check: Check): void {
  check(task.blame === undefined, 'is in play and blames a failure');
  check(!task.hasLostDependencies, 'is in play and lost dependencies');
  check(task.isNeeded || isDeferred(task), 'is in play although it is not needed');
  let missing = 0;
  for (const dependency of task.dependencies) {
    if (dependency.whoHas.size > 0) continue;
    missing++;
    check(
      dependency.state !== 'released' || isInLine(dependency),
      `waits for ${dependency.key}, which is released`,
    );
    const isToFail = task.state === 'waiting' && left.unvisited.get(dependency)?.has(task) === true;
    check(dependency.state !== 'erred' || isToFail, `waits for ${dependency.key}, which erred`);
  }
  const counted = task.missingDependencyCount;
  const isToStart = task.dependencies.some((dependency) => left.startingLater.has(dependency));
  const mayCountMore = task.state === 'waiting' && isToStart;
  check(missing === counted || (mayCountMore && counted > missing), `counts ${counted} missing`);
}

function validateMemory(cluster: ClusterState, task: TaskState, check: Check): void {
  check(task.isNeeded || isDeferred(task), 'is in memory although it is not needed');
  check(task.type !== undefined, 'has a result without a type');
  if (!task.isActor) return;
  const hosts = task.whoHas.items.filter((worker) => worker.actors.has(task));
  check(hosts.length === 1, `is an actor on ${hosts.length} workers`);
  check(cluster.tasks.has(task.key), 'is an actor outside of the tables');
}
