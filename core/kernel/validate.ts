import { type ClusterState, FIRE_AND_FORGET } from '../state/cluster.ts';
import { isHeldBy, nbytesOf } from '../state/relations.ts';
import { isActive } from '../state/state-names.ts';
import { byPriority, NO_TASKS, type TaskState, type WorkerState } from '../state/task.ts';
import { unreachable } from '../util/values.ts';
import { isLeft, workOn } from './agenda.ts';
import { invariantError } from './ports.ts';
import { queueOf } from './queues.ts';
import type { KernelScope } from './scope.ts';
import { blamesWhatHoldsItBack } from './task-effects.ts';

// The invariants of limits.

/** Counts are right, and nothing waits for a limit that has room. O(tasks). */
function validateLimits(scope: KernelScope, fail: (complaint: string) => void): void {
  const { limits, tasks, running } = scope.cluster;
  const members = limits.members(tasks.values());
  const isHeld = scope.holdsQueue || scope.isRefillLeft || running.size === 0;
  for (const [limit, its] of members) {
    const { name, hasRoom } = limit;
    if (limits.get(name) !== limit) fail(`${its[0]?.key ?? name} has a limit that is not known`);
    const queue = limit.queued;
    const processing = its.filter(({ state }) => state === 'processing').length;
    const { paused, resuming, mayResume } = limit;
    const runningCount = processing - paused.size + limits.endingRunsOf(limit).length;
    if (its.length !== limit.taskCount) fail(`limit ${name} counts ${limit.taskCount} tasks`);
    if (limit.runningCount !== runningCount) fail(`limit ${name} counts ${limit.runningCount}`);
    const isOpen = hasRoom && queue.size > 0;
    const parked = its.filter(({ state }) => state === 'no-worker').length;
    if (limit.parkedCount !== parked) fail(`limit ${name} counts ${limit.parkedCount} parked`);
    if (limits.open.has(limit) !== isOpen) fail(`limit ${name} is open, or not`);
    if (isOpen && !isHeld) fail(`${queue.size} tasks wait for limit ${name}, which has room`);
    for (const task of paused)
      if (task.limit !== limit || task.state !== 'processing')
        fail(`${task.key} is paused in ${name}`);
    for (const task of resuming)
      if (!paused.has(task)) fail(`${task.key} goes on, and is not paused`);
    if (mayResume || limits.resumable.has(limit)) fail(`limit ${name} has room for runs to go on`);
    const isUsed = its.length + runningCount > 0;
    if (isUsed === limits.isKept(limit)) fail(`limit ${name} has ${isUsed ? 'a' : 'no'} task`);
    const isAsleep = queue.size > 0 && !limit.isFull && !hasRoom && limit.wakeAtMs === Infinity;
    if (isAsleep) fail(`${queue.size} tasks wait for the rate of ${name} for ever`);
    const best = queue.peek();
    for (const task of queue) {
      if (task.state !== 'queued') fail(`${task.key} waits for a limit in state ${task.state}`);
      if (best !== undefined && byPriority(best, task) <= 0) continue;
      fail(`${task.key} is behind ${best?.key ?? 'nothing'}, which is worse`);
    }
  }
  for (const limit of limits.open) if (!members.has(limit)) fail(`${limit.name} is open, and gone`);
}

// The invariants of one task, by state. Source: Dask's `validate_state`.

/** Throws when the condition does not hold. */
type Check = (condition: boolean, complaint: string) => void;

function validateTask(scope: KernelScope, task: TaskState, check: Check): void {
  const { cluster } = scope;
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
    task.whoWants.size > 0 || task.dependentCount > 0 || isLeft(task),
    'is known although no client wants it and nothing depends on it',
  );
  switch (state) {
    case 'released':
      check(task.waiterCount === 0 || isLeft(task), 'is released under its waiters');
      return;
    case 'waiting':
      check(task.missingDependencyCount > 0 || isLeft(task), 'waits for nothing');
      return validateInPlay(scope, task, check);
    case 'queued':
      if (task.limit === undefined) {
        check(task.restrictions === undefined, 'is queued with restrictions');
        check(!task.isActor, 'is queued although it is an actor');
      }
      return validateInPlay(scope, task, check);
    case 'no-worker':
      return validateInPlay(scope, task, check);
    case 'processing':
      check(task.processingOn?.processing.has(task) === true, 'is not listed by its worker');
      check(!task.isActor || task.processingOn?.actors.has(task) === true, 'is an unlisted actor');
      return validateInPlay(scope, task, check);
    case 'memory':
      return validateMemory(scope, task, check);
    case 'erred':
      check(task.blame !== undefined, 'blames nothing');
      check(mayBlame(scope, task), 'blames what does not hold it back');
      check(task.waiterCount === 0 || task.dependents.some(isLeft), 'failed under its waiters');
      return;
    case 'forgotten':
      check(false, 'is forgotten and still in the tables');
      return;
    default:
      unreachable(state);
  }
}

/** True when left work may change the task; the task that it failed with may be forgotten. */
function mayBlame({ hasLeft }: KernelScope, task: TaskState): boolean {
  if (hasLeft || task.hasLostDependencies) return true;
  return blamesWhatHoldsItBack(task);
}

/** True when something needs the task, or will, or its turn to go has not come. */
function isKept({ unproven }: KernelScope, task: TaskState): boolean {
  return task.isNeeded || isLeft(task) || unproven.includes(task);
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

function validateInPlay(scope: KernelScope, task: TaskState, check: Check): void {
  check(task.blame === undefined, 'is in play and blames a failure');
  check(!task.hasLostDependencies, 'is in play and lost dependencies');
  check(isKept(scope, task), 'is in play although it is not needed');
  let missing = 0;
  for (const dependency of task.dependencies) {
    if (dependency.whoHas.size > 0) continue;
    missing++;
    check(
      dependency.state !== 'released' || isLeft(dependency),
      `waits for ${dependency.key}, which is released`,
    );
    const isToFail = task.state === 'waiting' && isLeft(task);
    check(dependency.state !== 'erred' || isToFail, `waits for ${dependency.key}, which erred`);
  }
  const counted = task.missingDependencyCount;
  check(missing === counted, `counts ${counted} missing`);
}

function validateMemory(scope: KernelScope, task: TaskState, check: Check): void {
  const { cluster } = scope;
  check(isKept(scope, task), 'is in memory although it is not needed');
  check(task.type !== undefined, 'has a result without a type');
  if (!task.isActor) return;
  const hosts = task.whoHas.items.filter((worker) => worker.actors.has(task));
  check(hosts.length === 1, `is an actor on ${hosts.length} workers`);
  check(cluster.tasks.has(task.key), 'is an actor outside of the tables');
}

// Every invariant of the state, for tests and for `validate: true`. A check that fails throws
// `ERR_INVARIANT` with the story of the task.

/** A task may be placed, queued or parked: its inputs are there and nothing speaks against it. */
export function checkReady(scope: KernelScope, task: TaskState): void {
  if (!scope.options.validate) return;
  const check = checker(scope, task);
  check(task.missingDependencyCount === 0, 'is ready, but waits for dependencies');
  check(task.whoHas.size === 0, 'is ready, but has replicas');
  check(task.blame === undefined, 'is ready, but blames a failure');
  check(task.processingOn === undefined, 'is ready, but has a worker');
  check(!task.hasLostDependencies, 'is ready, but lost dependencies');
  check(!scope.cluster.unrunnable.has(task), 'is ready, but unrunnable');
  check(!scope.cluster.queued.has(task), 'is ready, but queued');
  for (const dependency of task.dependencies) {
    check(dependency.whoHas.size > 0, `is ready, but ${dependency.key} has no replica`);
  }
}

/** Checks everything. O(tasks + dependencies + workers). */
export function validateCluster(scope: KernelScope): void {
  const { cluster } = scope;
  for (const [key, task] of cluster.tasks) {
    const check = checker(scope, task);
    check(task.key === key, `is stored under ${key}`);
    check(task.pendingIndex < 0, 'has a recommendation that was not followed');
    const work = workOn(task);
    const isOnAgenda = work?.holds(task) === true && scope.agenda.includes(work);
    check(isOnAgenda || !isLeft(task), 'has a wrong position among what is left');
    validateTask(scope, task, check);
  }
  if (NO_TASKS.length > 0) throw invariantError('the shared empty list was written to', {});
  for (const worker of cluster.workersByRank) validateWorker(scope, worker);
  validateContainers(scope);
  validateSums(scope);
  validateSteals(scope);
  validateQueue(scope);
  validateLimits(scope, failer(scope));
}

function checker(scope: KernelScope, task: TaskState): Check {
  return (condition, complaint) => {
    if (condition) return;
    const { key, state } = task;
    throw invariantError(
      `task ${key} (${state}) ${complaint} (${scope.stimulusId})`,
      { key, state, stimulusId: scope.stimulusId },
      scope.story.about([key]),
    );
  };
}

function workerChecker(scope: KernelScope, worker: WorkerState): Check {
  return (condition, complaint) => {
    if (condition) return;
    throw invariantError(`worker ${worker.address} ${complaint} (${scope.stimulusId})`, {
      worker: worker.address,
      stimulusId: scope.stimulusId,
    });
  };
}

function validateWorker(scope: KernelScope, worker: WorkerState): void {
  const { cluster } = scope;
  const check = workerChecker(scope, worker);
  const isRunning = worker.status === 'running';
  check(cluster.workers.get(worker.address) === worker, 'is not stored under its address');
  check(cluster.workersByRank[worker.rank] === worker, 'is not stored under its rank');
  check(cluster.running.has(worker) === isRunning, 'is running, or in running, but not both');
  check(isRunning || !cluster.idle.has(worker), 'is idle without running');
  check(isRunning || !cluster.saturated.has(worker), 'is saturated without running');
  check(
    !(cluster.idle.has(worker) && cluster.saturated.has(worker)),
    'is idle and saturated at once',
  );
  check(
    cluster.openSlots.has(worker) === (isRunning && worker.openSlots > 0),
    'has an open slot, or is in openSlots, but not both',
  );
  const judged = cluster.openSlots.keyOf(worker) ?? worker.load;
  check(worker.load === judged, 'has more or less to do than judged');
  if (worker.processing.size === 0) {
    check(worker.occupancyS === 0, `has occupancy ${worker.occupancyS} with nothing to do`);
    const isFree = isRunning && worker.endingRuns.size === 0;
    check(!isFree || cluster.idle.has(worker), 'has nothing to do and is not idle');
  }
  for (const task of worker.longRunning) {
    check(worker.processing.has(task), `has seceded ${task.key}, which is not processing there`);
  }
  for (const task of worker.processing) {
    check(task.processingOn === worker, `processes ${task.key}, which is elsewhere`);
  }
  for (const task of worker.actors) {
    check(task.state === 'memory' || task.state === 'processing', `lists the actor ${task.key}`);
  }
  validateWorkerSums(scope, worker, check);
}

function validateWorkerSums(scope: KernelScope, worker: WorkerState, check: Check): void {
  const { cluster } = scope;
  let nbytes = 0;
  for (const task of worker.hasWhat) {
    nbytes += nbytesOf(cluster, task);
    check(
      isHeldBy(task, worker) && task.whoHas.has(worker),
      `holds ${task.key}, which does not know it`,
    );
  }
  check(nbytes === worker.nbytes, `counts ${worker.nbytes} bytes of results instead of ${nbytes}`);
  const needs = new Map<TaskState, number>();
  const used = new Map<string, number>();
  for (const task of worker.processing) {
    for (const dependency of task.dependencies) {
      if (worker.hasWhat.has(dependency) || worker.translations.has(dependency)) continue;
      needs.set(dependency, (needs.get(dependency) ?? 0) + 1);
    }
    for (const [resource, amount] of task.restrictions?.resources ?? []) {
      used.set(resource, (used.get(resource) ?? 0) + amount);
    }
  }
  check(needs.size === worker.needsWhat.size, 'needs other results than it counts');
  let networkBytes = 0;
  for (const [task, count] of needs) {
    check(worker.needsWhat.get(task) === count, `counts the need for ${task.key} wrongly`);
    networkBytes += nbytesOf(cluster, task);
  }
  check(worker.networkBytes === networkBytes, 'counts the bytes that it needs wrongly');
  for (const [resource, amount] of worker.usedResources) {
    const expected = used.get(resource) ?? 0;
    check(Math.abs(amount - expected) < 1e-9, `counts ${amount} of ${resource} as used`);
  }
}

function validateContainers(scope: KernelScope): void {
  const { cluster } = scope;
  const fail = failer(scope);
  let previousMs = -Infinity;
  for (const [task, sinceMs] of cluster.unrunnable) {
    if (task.state !== 'no-worker') fail(`${task.key} is unrunnable in state ${task.state}`);
    if (sinceMs < previousMs) fail('unrunnable tasks are not in the order of their times');
    previousMs = sinceMs;
  }
  for (const task of [...scope.refused, ...scope.ruled]) {
    if (!cluster.unrunnable.has(task)) fail(`${task.key} is refused in state ${task.state}`);
  }
  for (const task of cluster.queued) {
    if (task.state !== 'queued') fail(`${task.key} is queued in state ${task.state}`);
  }
  const queued = cluster.queued.sorted();
  for (let index = 1; index < queued.length; index++) {
    if (byPriority(queued[index - 1]!, queued[index]!) >= 0) fail('the queue is out of order');
  }
  for (const task of cluster.replicated) {
    if (cluster.tasks.get(task.key) !== task) fail(`${task.key} is replicated and forgotten`);
    if (task.whoHas.size < 2) fail(`${task.key} counts as replicated`);
  }
  for (const task of cluster.replicasWanted) {
    if (cluster.tasks.get(task.key) !== task) fail(`replicas of ${task.key} are wanted, not it`);
  }
  for (const client of cluster.clients.values()) {
    for (const task of client.wantsWhat) {
      if (!task.whoWants.has(client)) fail(`${client.key} wants ${task.key} one-sidedly`);
      if (cluster.tasks.get(task.key) !== task) fail(`${client.key} wants forgotten ${task.key}`);
    }
  }
  if (!cluster.clients.has(FIRE_AND_FORGET)) fail('the fire-and-forget client is gone');
  validateMembership(cluster, fail);
}

function validateMembership(cluster: ClusterState, fail: (complaint: string) => void): void {
  let threads = 0;
  const addresses = new Set<string>();
  for (const worker of cluster.workers.values()) {
    threads += worker.threadCount;
    if (cluster.aliases.get(worker.name) !== worker.address) fail(`alias of ${worker.name}`);
    if (cluster.hosts.get(worker.host)?.has(worker.address) !== true) {
      fail(`${worker.address} is not listed under its host`);
    }
    addresses.add(worker.address);
  }
  if (threads !== cluster.totalThreads) fail(`totalThreads is ${cluster.totalThreads}`);
  if (cluster.aliases.size !== addresses.size) fail('an alias of a worker that is gone');
  for (const onHost of cluster.hosts.values()) {
    for (const address of onHost) if (!addresses.has(address)) fail(`${address} haunts its host`);
  }
  if (cluster.workersByRank.length !== cluster.workers.size) fail('ranks and workers differ');
}

function validateSums(scope: KernelScope): void {
  const { cluster } = scope;
  const fail = failer(scope);
  let computeS = 0;
  let networkBytes = 0;
  const counts = new Map<string, number>();
  const needy = new Map<TaskState, number>();
  for (const worker of cluster.workersByRank) {
    networkBytes += worker.networkBytes;
    for (const [task] of worker.needsWhat) needy.set(task, (needy.get(task) ?? 0) + 1);
    for (const { prefix, count } of worker.prefixCounts) {
      counts.set(prefix.name, (counts.get(prefix.name) ?? 0) + count);
      computeS += count * prefix.durationEstimateS;
    }
  }
  for (const prefix of cluster.prefixes.values()) {
    if ((counts.get(prefix.name) ?? 0) !== prefix.processingCount) {
      fail(`prefix ${prefix.name} counts ${prefix.processingCount} processing tasks`);
    }
  }
  for (const { address, hasWhat, requestedBytes } of cluster.workersByRank) {
    let bytes = 0;
    for (const task of hasWhat) {
      if (task.needyCount !== (needy.get(task) ?? 0)) fail(`${task.key} is needed by others`);
      if (task.whoHas.size === 1) bytes += task.needyCount * nbytesOf(cluster, task);
    }
    if (requestedBytes !== bytes) fail(`${address} has ${requestedBytes} requested bytes`);
  }
  if (networkBytes !== cluster.networkBytes) fail(`networkBytes is ${cluster.networkBytes}`);
  if (Math.abs(computeS - cluster.computeOccupancyS) > 1e-6 * Math.max(1, computeS)) {
    fail(`computeOccupancyS is ${cluster.computeOccupancyS} instead of ${computeS}`);
  }
}

/** Checks the steal requests, summed up by worker. O(processing tasks). */
function validateSteals(scope: KernelScope): void {
  const { cluster } = scope;
  const fail = failer(scope);
  const tasks = new Map<WorkerState, number>();
  let inFlight = 0;
  const add = (worker: WorkerState, count: number): void => {
    tasks.set(worker, (tasks.get(worker) ?? 0) + count);
  };
  for (const task of cluster.tasks.values()) {
    const { steal } = task;
    if (steal === undefined) continue;
    const { victim, thief } = steal;
    const isAt = steal.state === 'moved' ? thief : victim;
    if (task.processingOn !== isAt) fail(`${task.key} is ${steal.state} by ${isAt.address}`);
    if (steal.state !== 'asked') continue;
    inFlight++;
    add(victim, -1);
    add(thief, 1);
  }
  if (inFlight !== cluster.stealsInFlight) fail(`${cluster.stealsInFlight} steals are in flight`);
  for (const worker of cluster.workersByRank) {
    const { inFlightTasks, inFlightS, stealsInFlight, address } = worker;
    if (inFlightTasks !== (tasks.get(worker) ?? 0)) fail(`${address} expects ${inFlightTasks}`);
    if (stealsInFlight === 0 && inFlightS !== 0) fail(`${address} expects ${inFlightS} s`);
  }
}

/** Nothing is held back while it could run, unless the policy wants it so. */
function validateQueue(scope: KernelScope): void {
  const { cluster, isQueueRefused, holdsQueue, isRefillLeft } = scope;
  const isHeld = isQueueRefused || holdsQueue || isRefillLeft;
  const { queued } = cluster;
  if (queued.size > 0 && cluster.openSlots.size > 0 && !isHeld) {
    failer(scope)(`${queued.size} tasks are queued while a worker has an open slot`);
  }
  const next = queued.peek();
  for (const task of queued) {
    if (next !== undefined && byPriority(next, task) <= 0) continue;
    failer(scope)(`${task.key} is queued behind ${next?.key ?? 'nothing'}`);
  }
}

function failer(scope: KernelScope): (complaint: string) => void {
  return (complaint) => {
    throw invariantError(`${complaint} (${scope.stimulusId})`, { stimulusId: scope.stimulusId });
  };
}
