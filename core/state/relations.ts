import { append, SmallSet } from '../util/collections.ts';
import type { ClusterState } from './cluster.ts';
import { COMPARED_S_MIN, type TaskPrefix } from './groups.ts';
import type { TaskStateName } from './state-names.ts';
import {
  type ClientState,
  NO_TASKS,
  type Steal,
  type TaskState,
  type WorkerState,
} from './task.ts';

// The only writers of links with two sides, and of the sums that follow: every function keeps all of it in step.

/** Moves a task to another state and keeps the counters of its group in step. */
export function setTaskState(task: TaskState, state: TaskStateName): void {
  const { group } = task;
  group.states.change(task.state, -1);
  group.states.change(state, 1);
  group.prefix.stateCounts.change(state, 1);
  task.state = state;
}

/** Size of a result in bytes, the default size while it is unknown. */
export function nbytesOf(cluster: ClusterState, task: TaskState): number {
  return task.nbytes >= 0 ? task.nbytes : cluster.costs.defaultDataSize;
}

// ---- task and task ---------------------------------------------------------------------------

const NOTHING_EXPECTED: readonly number[] = [];

/**
 * Makes a task depend on these tasks, which are distinct and not among its dependencies yet.
 * @param dependentsExpected - a guess of the dependents that a task will have, by its index in its graph
 */
export function linkDependencies(
  task: TaskState,
  dependencies: TaskState[],
  dependentsExpected: ArrayLike<number> = NOTHING_EXPECTED,
): void {
  task.dependencies =
    task.dependencies.length === 0 ? dependencies : [...task.dependencies, ...dependencies];
  let alone: TaskState[] | undefined;
  for (const dependency of dependencies) {
    const { dependentsWithForgotten } = dependency;
    // Dependencies that have no other dependent share one list, which `append` never writes to.
    dependency.dependentsWithForgotten =
      dependentsWithForgotten.length === 0
        ? (alone ??= [task])
        : append(dependentsWithForgotten, task, dependentsExpected[dependency.graphIndex]);
    dependency.dependentCount++;
    if (task.countsAsWaiter) dependency.waiterCount++;
    task.group.addDependency(dependency.group);
  }
}

/**
 * Removes a forgotten task from the dependents of a dependency. The dependency skips it from then
 * on.
 */
export function dropDependent(dependency: TaskState, forgotten: TaskState): void {
  dependency.dependentCount--;
  if (forgotten.countsAsWaiter && dependency.waiterCount > 0) dependency.waiterCount--;
  const { dependentsWithForgotten: all, dependentCount } = dependency;
  if (dependentCount === 0) dependency.dependentsWithForgotten = NO_TASKS;
  else if (all.length > 2 * dependentCount + 16) dropForgotten(dependency);
}

/** A dependency was forgotten under a task that lives on. O(dependencies). */
export function dropDependency(cluster: ClusterState, task: TaskState, forgotten: TaskState): void {
  task.dependencies = task.dependencies.filter((dependency) => dependency !== forgotten);
  if (task.state === 'waiting' && forgotten.whoHas.size === 0) task.missingDependencyCount--;
  const worker = task.processingOn;
  if (worker?.needsWhat.has(forgotten) === true) forgetNeed(cluster, forgotten, worker);
}

/** The task comes into play: its dependencies are kept for it. */
export function startWaiting(task: TaskState): void {
  if (task.countsAsWaiter) return;
  task.countsAsWaiter = true;
  for (const dependency of task.dependencies) dependency.waiterCount++;
}

/** The task is out of play. Returns false when it was not in play; else each dependency loses it. */
export function stopWaiting(task: TaskState): boolean {
  if (!task.countsAsWaiter) return false;
  task.countsAsWaiter = false;
  return true;
}

/**
 * Removes a waiter from a dependency. Returns whether no task or client needs the dependency any
 * more.
 */
export function removeWaiter(dependency: TaskState): boolean {
  // A dependency that failed has lost all its waiters at once.
  if (dependency.waiterCount === 0) return false;
  return --dependency.waiterCount === 0 && dependency.whoWants.size === 0;
}

/**
 * After a failure: what tasks depend on is known, and everything that follows from it is made anew. What is not in the
 * tables is lost. No task has dependents, or is in play. O(tasks + dependencies).
 */
export function relinkDependents({ tasks: table }: ClusterState, tasks: Iterable<TaskState>): void {
  for (const task of tasks) {
    const dependencies = task.dependencies.filter((one) => table.get(one.key) === one);
    if (dependencies.length < task.dependencies.length) task.hasLostDependencies = true;
    task.dependencies = dependencies.length === 0 ? NO_TASKS : dependencies;
    for (const dependency of dependencies) {
      if (dependency.dependentCount++ === 0) dependency.dependentsWithForgotten = [task];
      else dependency.dependentsWithForgotten.push(task);
    }
  }
}

/** After a failure: takes a task out of all links, without a look at their other sides. */
export function unlinkTask(task: TaskState): void {
  task.whoHas = SmallSet.empty();
  task.whoWants = SmallSet.empty();
  task.dependentsWithForgotten = NO_TASKS;
  task.dependentCount = 0;
  task.sweep = undefined;
  task.waiterCount = 0;
  task.countsAsWaiter = false;
  task.missingDependencyCount = 0;
  task.needyCount = 0;
  task.processingOn = undefined;
  task.steal = undefined;
  task.place = -1;
}

/** After a failure: takes a worker out of all links, without a look at their other sides. */
export function unlinkWorker(worker: WorkerState): void {
  for (const links of [worker.processing, worker.longRunning, worker.needsWhat, worker.hasWhat]) {
    links.clear();
  }
  worker.actors.clear();
  worker.translations.clear();
  worker.prefixCounts.length = 0;
  worker.networkBytes = 0;
  worker.requestedBytes = 0;
  worker.nbytes = 0;
  worker.stealsInFlight = 0;
  worker.inFlightS = 0;
  worker.inFlightTasks = 0;
  worker.vacate();
}

// ---- task and client -------------------------------------------------------------------------

export function addWant(client: ClientState, task: TaskState): void {
  client.wantsWhat.add(task);
  keepAlive(client, task);
}

/** Returns false when the client did not want the task. */
export function removeWant(client: ClientState, task: TaskState): boolean {
  if (!client.wantsWhat.delete(task)) return false;
  task.whoWants = withoutMember(task.whoWants, client);
  return true;
}

/**
 * Adds the owner to the clients that want the task, without listing the task at the owner:
 * `GraphIntake` keeps its own list.
 */
export function keepAlive(holder: ClientState, task: TaskState): void {
  task.whoWants = withMember(task.whoWants, holder);
}

/** The reverse of {@link keepAlive}. Returns false when the task was not held. */
export function endKeepAlive(holder: ClientState, task: TaskState): boolean {
  if (!task.whoWants.has(holder)) return false;
  task.whoWants = withoutMember(task.whoWants, holder);
  return true;
}

/** An object that is often the only member of a set, and shares one such set. */
interface Member<T> {
  readonly alone: SmallSet<T>;
}

function withMember<T extends Member<T>>(set: SmallSet<T>, member: T): SmallSet<T> {
  return set.size === 0 ? member.alone : set.with(member);
}

function withoutMember<T extends Member<T>>(set: SmallSet<T>, member: T): SmallSet<T> {
  // Two are the rule: no list is made to find the other one.
  if (set.size === 2 && set.has(member)) {
    const other = set.items[0] === member ? set.items[1] : set.items[0];
    return (other as T).alone;
  }
  const left = set.without(member);
  return left.size === 1 ? (left.items[0] as T).alone : left;
}

// ---- task and worker: replicas ---------------------------------------------------------------

/** True when the worker holds the result. */
export function isHeldBy(task: TaskState, worker: WorkerState): boolean {
  const { whoHas } = task;
  // Most tasks have one holder, whose set is shared: the list of the worker need not be searched.
  return whoHas.size <= 1 ? whoHas === worker.alone : worker.hasWhat.has(task);
}

/** No-op when the worker holds the result already. */
export function addReplica(cluster: ClusterState, task: TaskState, worker: WorkerState): void {
  if (isHeldBy(task, worker)) return;
  if (worker.needsWhat.size > 0 && worker.needsWhat.has(task)) forgetNeed(cluster, task, worker);
  worker.hasWhat.add(task);
  worker.nbytes += nbytesOf(cluster, task);
  countRequests(cluster, task, -1);
  task.whoHas = withMember(task.whoHas, worker);
  countRequests(cluster, task, 1);
  if (task.whoHas.size === 2) cluster.replicated.add(task);
}

/** No-op when the worker does not hold the result. */
export function removeReplica(cluster: ClusterState, task: TaskState, worker: WorkerState): void {
  if (!worker.hasWhat.delete(task)) return;
  worker.nbytes -= nbytesOf(cluster, task);
  countRequests(cluster, task, -1);
  task.whoHas = withoutMember(task.whoHas, worker);
  countRequests(cluster, task, 1);
  if (task.whoHas.size === 1) cluster.replicated.delete(task);
  if (task.whoHas.size === 0 && task.waiterCount > 0) missInDependents(task);
  // A worker that is leaving fetches nothing any more.
  if (task.waiterCount > 0 && worker.rank >= 0 && worker.processing.size > 0) {
    needAgain(cluster, task, worker);
  }
}

/** The last copy is gone: dependents that are waiting wait for this one, too. */
function missInDependents(task: TaskState): void {
  for (const dependent of task.dependentsWithForgotten) {
    if (dependent.state === 'waiting') dependent.missingDependencyCount++;
  }
}

/** The worker has a translation of the result: it is freed with the result, and counts for nothing else. */
export function addTranslation(cluster: ClusterState, task: TaskState, worker: WorkerState): void {
  if (worker.needsWhat.has(task)) forgetNeed(cluster, task, worker);
  worker.translations.add(task);
  const workers = cluster.translations.get(task);
  if (workers === undefined) cluster.translations.set(task, new Set([worker]));
  else workers.add(worker);
}

/** Called when the result is released. @returns the workers that had a translation of it */
export function takeTranslations(cluster: ClusterState, task: TaskState): readonly WorkerState[] {
  const workers = [...(cluster.translations.get(task) ?? [])];
  cluster.translations.delete(task);
  for (const worker of workers) worker.translations.delete(task);
  return workers;
}

/** The worker is gone, and its translations with it. O(translations there). */
export function dropTranslations(cluster: ClusterState, worker: WorkerState): void {
  for (const task of worker.translations) {
    const workers = cluster.translations.get(task);
    workers?.delete(worker);
    if (workers?.size === 0) cluster.translations.delete(task);
  }
  worker.translations.clear();
}

export function removeAllReplicas(cluster: ClusterState, task: TaskState): void {
  for (const worker of task.whoHas.items) removeReplica(cluster, task, worker);
}

/** The size of a result is known (anew). */
export function setNbytes(cluster: ClusterState, task: TaskState, nbytes: number): void {
  const before = nbytesOf(cluster, task);
  task.group.nbytesTotal += nbytes - Math.max(0, task.nbytes);
  countRequests(cluster, task, -1);
  task.nbytes = nbytes;
  countRequests(cluster, task, 1);
  if (nbytes === before) return;
  for (const worker of task.whoHas.items) worker.nbytes += nbytes - before;
  if (task.waiterCount === 0) return;
  for (const dependent of task.dependentsWithForgotten) {
    const worker = dependent.processingOn;
    // A worker that needs it is met once for every dependent there; correct it the first time.
    if (worker?.needsWhat.has(task) !== true || firstDependentOn(task, worker) !== dependent)
      continue;
    addNetworkBytes(cluster, worker, nbytes - before);
  }
}

/** Sets the number of requested copies; 1: no further copies. Infinity: on every running worker. */
export function setWantedReplicas(cluster: ClusterState, task: TaskState, replicas: number): void {
  task.replicas = replicas;
  if (replicas > 1) cluster.replicasWanted.add(task);
  else cluster.replicasWanted.delete(task);
}

// ---- task and worker: processing -------------------------------------------------------------

/** The task is sent to the worker. */
export function addToProcessing(cluster: ClusterState, task: TaskState, worker: WorkerState): void {
  task.processingOn = worker;
  worker.processing.add(task);
  countPrefix(cluster, task.prefix, worker);
  if (task.limit !== undefined) cluster.limits.count(task.limit, 1);
  for (const dependency of task.dependencies) {
    // What it has a translation of it need not fetch.
    if (!isHeldBy(dependency, worker) && !worker.translations.has(dependency)) {
      need(cluster, dependency, worker);
    }
  }
}

/** The task continues without a thread: it counts as processing, but no longer as load. */
export function addToLongRunning(
  cluster: ClusterState,
  task: TaskState,
  worker: WorkerState,
): void {
  if (worker.longRunning.has(task)) return;
  uncountPrefix(cluster, task.prefix, worker);
  worker.longRunning.add(task);
}

/** The task is not on its worker any more. Returns that worker. */
export function removeFromProcessing(cluster: ClusterState, task: TaskState): WorkerState {
  const worker = task.processingOn as WorkerState;
  task.processingOn = undefined;
  if (task.steal !== undefined) forgetSteal(cluster, task);
  cluster.runs.delete(task);
  if (!worker.longRunning.delete(task)) uncountPrefix(cluster, task.prefix, worker);
  worker.processing.delete(task);
  if (task.limit !== undefined) cluster.limits.end(task.limit, task);
  if (worker.needsWhat.size > 0) {
    for (const dependency of task.dependencies) needLess(cluster, dependency, worker);
  }
  return worker;
}

/** A task of this prefix took that long on a worker; estimates everywhere follow. O(1). */
export function learnDuration(
  cluster: ClusterState,
  prefix: TaskPrefix,
  worker: WorkerState,
  seconds: number,
): void {
  if (seconds >= COMPARED_S_MIN) {
    const logRatio = prefix.compare(seconds, Math.log(worker.pace));
    if (logRatio !== undefined) worker.pacing.learn(logRatio - Math.log(worker.toldPace));
  }
  const before = prefix.durationEstimateS;
  prefix.addDuration(seconds);
  shiftOccupancy(cluster, prefix, before);
}

/** A running task of this prefix has taken that long so far. O(1). */
export function learnExecTime(cluster: ClusterState, prefix: TaskPrefix, seconds: number): void {
  const before = prefix.durationEstimateS;
  prefix.addExecTime(seconds);
  shiftOccupancy(cluster, prefix, before);
}

function shiftOccupancy(cluster: ClusterState, prefix: TaskPrefix, beforeS: number): void {
  cluster.computeOccupancyS += prefix.processingCount * (prefix.durationEstimateS - beforeS);
}

function countPrefix(cluster: ClusterState, prefix: TaskPrefix, worker: WorkerState): void {
  cluster.computingCount++;
  if (prefix.processingCount === 0) prefix.expect();
  prefix.processingCount++;
  cluster.computeOccupancyS += prefix.durationEstimateS;
  for (const entry of worker.prefixCounts) {
    if (entry.prefix === prefix) {
      entry.count++;
      return;
    }
  }
  worker.prefixCounts.push({ prefix, count: 1 });
}

function uncountPrefix(cluster: ClusterState, prefix: TaskPrefix, worker: WorkerState): void {
  cluster.computingCount--;
  prefix.processingCount--;
  // An exact zero when nothing is left: rounding errors do not outlive the work that made them.
  if (cluster.computingCount === 0) cluster.computeOccupancyS = 0;
  else cluster.computeOccupancyS -= prefix.durationEstimateS;
  const entries = worker.prefixCounts;
  let index = 0;
  while (index < entries.length && entries[index]?.prefix !== prefix) index++;
  const entry = entries[index];
  if (entry === undefined || --entry.count > 0) return;
  const last = entries.pop();
  if (last !== undefined && last !== entry) entries[index] = last;
}

// ---- work stealing ---------------------------------------------------------------------------

/** The worker of the task is asked to give it to another one. */
export function askBack(cluster: ClusterState, task: TaskState, steal: Steal): void {
  task.steal = steal;
  cluster.stealsInFlight++;
  book(steal.victim, 1, -steal.victimS, -1);
  book(steal.thief, 1, steal.thiefS, 1);
}

/** The worker has answered that it keeps the task; it is not asked for this task again. */
export function refuseSteal(cluster: ClusterState, task: TaskState): void {
  const steal = forgetSteal(cluster, task);
  if (steal === undefined) return;
  steal.state = 'refused';
  task.steal = steal;
}

/** The task has come to its worker by this. */
export function rememberSteal(task: TaskState, steal: Steal): void {
  steal.state = 'moved';
  task.steal = steal;
}

/** The question has been answered, or is of no interest any more. Returns it if there was one. */
function forgetSteal(cluster: ClusterState, task: TaskState): Steal | undefined {
  const { steal } = task;
  task.steal = undefined;
  if (steal?.state !== 'asked') return steal;
  cluster.stealsInFlight--;
  book(steal.victim, -1, steal.victimS, 1);
  book(steal.thief, -1, -steal.thiefS, -1);
  return steal;
}

function book(worker: WorkerState, steals: 1 | -1, seconds: number, tasks: 1 | -1): void {
  worker.stealsInFlight += steals;
  worker.inFlightTasks += tasks;
  // An exact zero when nothing is left: rounding errors do not add up.
  worker.inFlightS = worker.stealsInFlight === 0 ? 0 : worker.inFlightS + seconds;
}

// ---- what a worker still has to fetch --------------------------------------------------------

function need(cluster: ClusterState, dependency: TaskState, worker: WorkerState): void {
  if (worker.needsWhat.increment(dependency) === 1) changeNeed(cluster, dependency, worker, 1);
}

function needLess(cluster: ClusterState, dependency: TaskState, worker: WorkerState): void {
  if (worker.needsWhat.decrement(dependency) === 0) changeNeed(cluster, dependency, worker, -1);
}

function forgetNeed(cluster: ClusterState, dependency: TaskState, worker: WorkerState): void {
  worker.needsWhat.delete(dependency);
  changeNeed(cluster, dependency, worker, -1);
}

/** The worker lost its copy while tasks that need it are there (Dask leaves these uncounted). */
function needAgain(cluster: ClusterState, dependency: TaskState, worker: WorkerState): void {
  for (const dependent of dependency.dependentsWithForgotten) {
    if (dependent.processingOn === worker) need(cluster, dependency, worker);
  }
}

function firstDependentOn(task: TaskState, worker: WorkerState): TaskState | undefined {
  return task.dependentsWithForgotten.find((dependent) => dependent.processingOn === worker);
}

/** The worker needs the result from now on (1), or not any more (-1). */
function changeNeed(
  cluster: ClusterState,
  dependency: TaskState,
  worker: WorkerState,
  sign: 1 | -1,
): void {
  addNetworkBytes(cluster, worker, sign * nbytesOf(cluster, dependency));
  countNeed(cluster, dependency, sign);
}

/** One worker more (1) or less (-1) needs the result. */
export function countNeed(cluster: ClusterState, task: TaskState, sign: 1 | -1): void {
  countRequests(cluster, task, -1);
  task.needyCount += sign;
  countRequests(cluster, task, 1);
}

/** The only holder of a result has to send it to all that need it: called before (-1) and after (1) what changes that. */
function countRequests(cluster: ClusterState, task: TaskState, sign: 1 | -1): void {
  if (task.needyCount === 0 || task.whoHas.size !== 1) return;
  const [sole] = task.whoHas.items as readonly [WorkerState];
  sole.requestedBytes += sign * task.needyCount * nbytesOf(cluster, task);
}

function addNetworkBytes(cluster: ClusterState, worker: WorkerState, nbytes: number): void {
  worker.networkBytes += nbytes;
  cluster.networkBytes += nbytes;
}

/** A member of a {@link PlaceList}. */
interface Placed {
  /** Index in the list that owns it, or -1. */
  place: number;
}

/** Gaps that are not worth closing. */
const GAPS_MAX = 8;
/** Upper bound of the capacity that is kept, as a multiple of the entries in use. */
const ROOM_MAX = 8;

/**
 * Tasks in the order in which they were added, as a dense list in which each task knows its place, so
 * that nothing has to be hashed. Adding and deleting are O(1) on average.
 */
class PlaceList<Task extends Placed> implements Iterable<Task> {
  /**
   * With gaps where tasks have left, and spare capacity behind the end: an array that is shortened
   * gives up its capacity, and has to allocate it again for the next task.
   */
  private readonly places: (Task | undefined)[] = [];
  private end = 0;
  private count = 0;

  get size(): number {
    return this.count;
  }

  has(task: Task): boolean {
    return this.isAt(this.placeOf(task), task);
  }

  /** The task must not be here. */
  add(task: Task): void {
    const { places, end } = this;
    this.addPlace(task, end);
    if (end === places.length) places.push(task);
    else places[end] = task;
    this.end++;
    this.count++;
  }

  /** Returns false when the task is not here. */
  delete(task: Task): boolean {
    const place = this.placeOf(task);
    if (!this.isAt(place, task)) return false;
    this.places[place] = undefined;
    if (place === this.end - 1) this.end--;
    this.clearPlace(task);
    this.count--;
    if (this.end > 2 * this.count + GAPS_MAX) this.closeGaps();
    return true;
  }

  /** Forgets all members, whatever place they think that they have. */
  clear(): void {
    this.places.length = 0;
    this.end = 0;
    this.count = 0;
  }

  *[Symbol.iterator](): IterableIterator<Task> {
    for (const task of this.places) if (task !== undefined) yield task;
  }

  protected placeOf(task: Task): number {
    return task.place;
  }

  protected addPlace(task: Task, place: number): void {
    task.place = place;
  }

  protected movePlace(task: Task, place: number): void {
    task.place = place;
  }

  protected clearPlace(task: Task): void {
    task.place = -1;
  }

  /** Checks for negative indices, which an array would look up as property names. */
  private isAt(place: number, task: Task): boolean {
    return place >= 0 && place < this.end && this.places[place] === task;
  }

  private closeGaps(): void {
    const { places, end } = this;
    let next = 0;
    for (let place = 0; place < end; place++) {
      const task = places[place];
      if (task === undefined) continue;
      if (place !== next) {
        places[place] = undefined;
        places[next] = task;
        this.movePlace(task, next);
      }
      next++;
    }
    this.end = next;
    if (places.length > ROOM_MAX * (next + GAPS_MAX)) places.length = next;
  }
}

/** The tasks that a worker is processing. A task processes on one worker at a time, and keeps its place itself. */
export class ProcessingList<Task extends Placed> extends PlaceList<Task> {}

/**
 * The results that a worker holds. Most results have one holder, and the task keeps its place there itself; the
 * places of further copies are in a table of the worker.
 */
export class ReplicaList<Task extends Placed> extends PlaceList<Task> {
  private copies: Map<Task, number> | undefined = undefined;

  override clear(): void {
    super.clear();
    this.copies = undefined;
  }

  protected override placeOf(task: Task): number {
    // The table first: by chance a further copy may be where the first one is on its worker.
    return this.copies?.get(task) ?? task.place;
  }

  protected override addPlace(task: Task, place: number): void {
    if (task.place >= 0) (this.copies ??= new Map()).set(task, place);
    else task.place = place;
  }

  protected override movePlace(task: Task, place: number): void {
    if (this.copies?.has(task) === true) this.copies.set(task, place);
    else task.place = place;
  }

  protected override clearPlace(task: Task): void {
    const { copies } = this;
    if (copies?.delete(task) !== true) task.place = -1;
    else if (copies.size === 0) this.copies = undefined;
  }
}

/** Longer lists of dependents are swept by and by. */
const SWEPT_AT_ONCE_MAX = 10_000;
/** Dependents of a longer list that are looked at whenever one is forgotten. */
const SWEPT_PER_DROP = 8;

/** Takes the forgotten dependents off the list, when most of it is forgotten. */
function dropForgotten(task: TaskState): void {
  const list = task.dependentsWithForgotten;
  if (list.length > SWEPT_AT_ONCE_MAX) sweepSome(task);
  else task.dependentsWithForgotten = list.filter(({ state }) => state !== 'forgotten');
}

/**
 * Moves some of the forgotten dependents behind the others, and takes them off when all have been seen. Nothing else
 * leaves the list meanwhile, nor moves up: a walk through it from its end misses nothing.
 */
function sweepSome(task: TaskState): void {
  const list = task.dependentsWithForgotten;
  const sweep = task.sweep?.list === list ? task.sweep : { list, seen: 0, kept: 0 };
  task.sweep = sweep;
  for (let count = 0; count < SWEPT_PER_DROP && sweep.seen < list.length; count++) {
    const dependent = list[sweep.seen] as TaskState;
    if (dependent.state !== 'forgotten') {
      list[sweep.seen] = list[sweep.kept] as TaskState;
      list[sweep.kept++] = dependent;
    }
    sweep.seen++;
  }
  if (sweep.seen < list.length) return;
  list.length = sweep.kept;
  task.sweep = undefined;
}
