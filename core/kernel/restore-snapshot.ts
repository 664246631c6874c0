import { KERNEL_SLOT_NAMES } from '../api/policies.ts';
import { FIRE_AND_FORGET, ClientState } from '../state/cluster.ts';
import { TaskGroup, TaskPrefix } from '../state/groups.ts';
import { type StateCounts, TASK_STATE_NAMES } from '../state/state-names.ts';
import { type Blame, Steal, NO_TASKS, type Restrictions, TaskState } from '../state/task.ts';
import { WorkerState } from '../state/worker.ts';
import { SmallSet, SteadySet } from '../util/collections.ts';
import type { KernelScope } from './scope.ts';
import {
  COMPUTABLE,
  FORGOTTEN,
  type HoldingsPart,
  type KernelPart,
  OPAQUE,
  type PoliciesPart,
  type SavedBlame,
  type SavedGroup,
  type SavedPrefix,
  type SavedRareFields,
  type SavedRestrictions,
  type SavedWorker,
  type StatePart,
  type TasksPart,
  WAITER,
  type WorkersPart,
} from './state-parts.ts';

/** Parts by their kind. */
interface Parts {
  readonly kernel: KernelPart;
  readonly prefixes: readonly SavedPrefix[];
  readonly groups: readonly SavedGroup[];
  readonly workers: WorkersPart;
  readonly tasks: readonly TasksPart[];
  readonly holdings: HoldingsPart;
  readonly policies: PoliciesPart;
}

/**
 * Gives a kernel that has handled nothing yet the state of another one, so that both decide alike from there on.
 * O(tasks + links).
 * @throws StateError when the parts are no complete state of this version
 */
export function restoreSnapshot(scope: KernelScope, parts: readonly StatePart[]): void {
  const sorted = sortParts(parts);
  const { cluster } = scope;
  setNumbers(scope, sorted.kernel);
  const prefixes = sorted.prefixes.map((saved) => restorePrefix(scope, saved));
  const groups = restoreGroups(scope, sorted, prefixes);
  const workers = restoreWorkers(scope, sorted.workers, prefixes);
  const clients = restoreClients(scope, sorted.workers);
  const limbo = new TaskGroup('', new TaskPrefix('', cluster.costs));
  const tasks = new RestoredTasks({ groups, workers, clients }, limbo);
  for (const part of sorted.tasks) {
    for (const task of tasks.make(part)) cluster.tasks.set(task.key, task);
  }
  for (const part of sorted.tasks) tasks.link(part);
  tasks.linkBlames();
  fillWorkers(scope, sorted.holdings, tasks);
  fillLimits(scope, sorted.holdings, tasks);
  fillLists(scope, sorted.holdings, tasks, workers, clients);
  const { nextTaskId, freeTaskIds, nextWorkerSequence } = sorted.kernel;
  cluster.counters = {
    ...{ nextTaskId, freeTaskIds, nextWorkerSequence },
    unusedPrefixes: sorted.workers.unusedPrefixes.map((at) => entryAt(prefixes, at, 'prefix')),
  };
  restorePolicies(scope, sorted.policies);
}

function sortParts(parts: readonly StatePart[]): Parts {
  const one = <Name extends StatePart['part']>(name: Name): Extract<StatePart, { part: Name }> => {
    const found = parts.find(({ part }) => part === name);
    if (found === undefined) throw new StateError(`its part "${name}" is missing`);
    return found as Extract<StatePart, { part: Name }>;
  };
  const kernel = one('kernel');
  return {
    kernel,
    prefixes: one('prefixes').prefixes,
    groups: parts.flatMap((part) => (part.part === 'groups' ? part.groups : [])),
    workers: one('workers'),
    tasks: parts.filter((part) => part.part === 'tasks'),
    holdings: one('holdings'),
    policies: one('policies'),
  };
}

function setNumbers(scope: KernelScope, saved: KernelPart): void {
  const { cluster } = scope;
  scope.nextRunId = saved.nextRunId;
  scope.nextArrival = saved.nextArrival;
  scope.transitionCounter = saved.transitions;
  cluster.costs.bandwidth = saved.bandwidth;
  cluster.stealsInFlight = saved.stealsInFlight;
  cluster.assignedCount = saved.assignedCount;
  cluster.generation = saved.generation;
  cluster.lastGenerationMs = saved.lastGenerationMs;
  cluster.computingCount = saved.computingCount;
  cluster.computeOccupancyS = saved.computeOccupancyS;
  cluster.networkBytes = saved.networkBytes;
  cluster.noWorkersSinceMs = saved.noWorkersSinceMs ?? undefined;
  for (const failure of saved.erredTasks) cluster.erredTasks.push(failure as never);
}

function setCounts(counts: StateCounts, saved: readonly number[]): void {
  TASK_STATE_NAMES.forEach((state, position) => {
    counts.change(state, (saved[position] ?? 0) - counts[state]);
  });
}

function restorePrefix({ cluster }: KernelScope, saved: SavedPrefix): TaskPrefix {
  const prefix = new TaskPrefix(saved.name, cluster.costs);
  prefix.durationAverageS = saved.durationAverageS;
  prefix.maxExecTimeS = saved.maxExecTimeS;
  prefix.durationEstimateS = saved.durationEstimateS;
  prefix.suspicious = saved.suspicious;
  prefix.processingCount = saved.processingCount;
  setCounts(prefix.stateCounts, saved.entered);
  prefix.sharing.learnt = saved.sharing;
  if (saved.isKnown) cluster.prefixes.set(saved.name, prefix);
  return prefix;
}

function restoreGroups(
  { cluster }: KernelScope,
  { groups: saved, workers: { prefixGroups } }: Parts,
  prefixes: readonly TaskPrefix[],
): TaskGroup[] {
  const groups = saved.map((one) => {
    const group = new TaskGroup(one.name, entryAt(prefixes, one.prefix, 'prefix'));
    setCounts(group.states, one.states);
    group.size = one.size;
    group.nbytesTotal = one.nbytesTotal;
    group.startS = one.startS;
    group.stopS = one.stopS;
    group.durationS = one.durationS;
    for (const [action, seconds] of one.otherDurationsS) group.otherDurationsS.set(action, seconds);
    for (const [type, count] of one.types) group.setTypeCount(type, count);
    if (one.isKnown) cluster.groups.set(one.name, group);
    return group;
  });
  saved.forEach(({ dependencies }, position) => {
    for (const at of dependencies) groups[position]?.addDependency(entryAt(groups, at, 'group'));
  });
  prefixes.forEach((prefix, position) => {
    prefix.groups.clear();
    for (const at of prefixGroups[position] ?? []) prefix.groups.add(entryAt(groups, at, 'group'));
  });
  return groups;
}

function restoreWorkers(
  { cluster }: KernelScope,
  part: WorkersPart,
  prefixes: readonly TaskPrefix[],
): WorkerState[] {
  const workers = part.workers.map((saved) => restoreWorker(cluster, saved, prefixes));
  const at = (position: number): WorkerState => entryAt(workers, position, 'worker');
  workers.slice(0, part.registered).forEach((worker, rank) => {
    worker.rank = rank;
    cluster.workersByRank.push(worker);
    cluster.totalThreads += worker.threadCount;
    cluster.totalMemoryBytes += worker.memoryLimitBytes;
    cluster.languages.set(worker.language, (cluster.languages.get(worker.language) ?? 0) + 1);
  });
  for (const worker of part.order.map(at)) {
    cluster.workers.set(worker.address, worker);
    cluster.aliases.set(worker.name, worker.address);
  }
  for (const [host, addresses] of part.hosts) cluster.hosts.set(host, new Set(addresses));
  for (const [resource, supply] of part.resources) {
    cluster.resources.set(resource, new Map(supply));
  }
  cluster.running.rebuild(part.running.map(at));
  cluster.idle.rebuild(part.idle.map(at));
  cluster.saturated.rebuild(part.saturated.map(at));
  for (const [position, load] of part.openSlots) cluster.openSlots.put(at(position), load);
  return workers;
}

function restoreWorker(
  { costs }: KernelScope['cluster'],
  saved: SavedWorker,
  prefixes: readonly TaskPrefix[],
): WorkerState {
  const { identity, sequence, lastSeenMs } = saved;
  const worker: WorkerState = new WorkerState(identity, sequence, costs, lastSeenMs);
  worker.status = saved.status;
  worker.slotLimit = saved.slotLimit;
  for (const run of saved.endingRuns) worker.endingRuns.add(run);
  for (const [at, count] of saved.prefixCounts) {
    worker.prefixCounts.push({ prefix: entryAt(prefixes, at, 'prefix'), count });
  }
  worker.networkBytes = saved.networkBytes;
  worker.nbytes = saved.nbytes;
  worker.resources = new Map(saved.resources);
  worker.occupyAll(new Map(saved.usedResources), 1);
  worker.stealsInFlight = saved.stealsInFlight;
  worker.inFlightS = saved.inFlightS;
  worker.inFlightTasks = saved.inFlightTasks;
  worker.metrics = saved.metrics;
  worker.deafMs = saved.deafMs;
  worker.timeDelayMs = saved.timeDelayMs;
  worker.unmanagedHistory.restore(saved.unmanaged, saved.unmanagedOld);
  worker.measuredNbytes = saved.measuredNbytes;
  return worker;
}

function restoreClients({ cluster }: KernelScope, { clients }: WorkersPart): ClientState[] {
  cluster.clients.clear();
  return clients.map(({ key, lastSeenMs, versions, isMute }) => {
    const wants = key === FIRE_AND_FORGET ? new Set<TaskState>() : new SteadySet<TaskState>();
    const client = new ClientState(key, lastSeenMs, versions, isMute, wants);
    cluster.clients.set(key, client);
    return client;
  });
}

function fillWorkers({ cluster }: KernelScope, part: HoldingsPart, tasks: RestoredTasks): void {
  cluster.workersByRank.forEach((worker, rank) => {
    for (const task of tasks.all(part.processing[rank] ?? [])) {
      worker.processing.add(task);
      task.processingOn = worker;
      cluster.runs.add(task);
    }
    for (const task of tasks.all(part.longRunning[rank] ?? [])) worker.longRunning.add(task);
    for (const task of tasks.all(part.hasWhat[rank] ?? [])) worker.hasWhat.add(task);
    for (const task of tasks.all(part.translations[rank] ?? [])) worker.translations.add(task);
    for (const task of tasks.all(part.actors[rank] ?? [])) worker.actors.add(task);
    for (const [id, count] of part.needsWhat[rank] ?? []) {
      worker.needsWhat.set(tasks.of(id), count);
    }
    const executing = part.executing[rank] ?? [];
    if (executing.length > 0) {
      worker.executing = new Map(executing.map(([id, seconds]) => [tasks.of(id), seconds]));
    }
  });
}

function fillLimits(
  { cluster: { limits } }: KernelScope,
  { limits: saved = [] }: HoldingsPart,
  tasks: RestoredTasks,
): void {
  for (const { name, max, tasks: members, queued, endingRuns } of saved) {
    const limit = limits.add(name, max);
    for (const task of tasks.all(members)) {
      limits.join(task, limit);
      if (task.processingOn !== undefined) limits.count(limit, 1);
    }
    for (const task of tasks.all(queued)) limits.enqueue(limit, task);
    for (const runId of endingRuns) limits.addEndingRun(limit, runId);
  }
}

function fillLists(
  { cluster, refused }: KernelScope,
  part: HoldingsPart,
  tasks: RestoredTasks,
  workers: readonly WorkerState[],
  clients: readonly ClientState[],
): void {
  clients.forEach(({ wantsWhat }, position) => {
    for (const task of tasks.all(part.wantsWhat[position] ?? [])) wantsWhat.add(task);
  });
  for (const task of tasks.all(part.queued)) cluster.queued.add(task);
  for (const [id, sinceMs] of part.unrunnable) cluster.unrunnable.set(tasks.of(id), sinceMs);
  for (const task of tasks.all(part.refused)) refused.add(task);
  if (part.refusedSeen > 0) refused.skip(part.refusedSeen);
  for (const task of tasks.all(part.replicated)) cluster.replicated.add(task);
  for (const task of tasks.all(part.replicasWanted)) cluster.replicasWanted.add(task);
  for (const [id, holders] of part.translated) {
    const all = holders.map((position) => entryAt(workers, position, 'worker'));
    cluster.translations.set(tasks.of(id), new Set(all));
  }
}

function restorePolicies({ ports, cluster }: KernelScope, part: PoliciesPart): void {
  for (const slot of KERNEL_SLOT_NAMES) {
    const memory = part.inCharge[slot];
    if (memory !== undefined) ports[slot].policy.restore?.(memory, cluster);
    const fallback = ports.fallbacks[slot];
    const ofFallback = fallback === ports[slot].policy ? undefined : part.fallbacks[slot];
    if (ofFallback !== undefined) fallback.restore?.(ofFallback, cluster);
  }
}

/** The error for data that is no state. The reader of the log says where it is. */
export class StateError extends Error {}

/** The tables that the columns of tasks refer to. */
interface RestoredTables {
  readonly groups: readonly TaskGroup[];
  readonly workers: readonly WorkerState[];
  readonly clients: readonly ClientState[];
}

/** @throws StateError when there is no such entry */
function entryAt<T>(list: readonly T[], position: number, what: string): T {
  const entry = list[position];
  if (entry === undefined) throw new StateError(`it refers to ${what} ${position}, which it lacks`);
  return entry;
}

/** Tasks by their ids while a state is read. */
class RestoredTasks {
  private readonly byId: (TaskState | undefined)[] = [];
  private readonly blamed: [TaskState, number | SavedBlame][] = [];
  /** Stands in lists for tasks that are forgotten. */
  private readonly forgotten: TaskState;

  /** @param limbo - a group that is in no table, for tasks that are not either */
  constructor(
    private readonly tables: RestoredTables,
    private readonly limbo: TaskGroup,
  ) {
    this.forgotten = new TaskState('', FORGOTTEN, limbo);
    this.forgotten.state = 'forgotten';
  }

  /** @throws StateError when there is no such task */
  of(id: number): TaskState {
    const task = id === FORGOTTEN ? this.forgotten : this.byId[id];
    if (task === undefined) throw new StateError(`it refers to task ${id}, which it lacks`);
    return task;
  }

  /** Tasks of a list. */
  all(ids: readonly number[]): TaskState[] {
    return ids.map((id) => this.of(id));
  }

  /** Makes the tasks of a part, without what links them. */
  make(part: TasksPart): TaskState[] {
    return part.keys.map((key, n) => {
      const id = part.ids[n] as number;
      const task = new TaskState(
        key,
        id,
        entryAt(this.tables.groups, part.groups[n] as number, 'group'),
      );
      const number = part.states[n] as number;
      task.state = entryAt(TASK_STATE_NAMES, number % WAITER, 'state');
      task.countsAsWaiter = (number & WAITER) !== 0;
      task.runSpec = (number & COMPUTABLE) === 0 ? undefined : (part.runSpecs?.[n] ?? OPAQUE);
      task.nbytes = part.nbytes[n] as number;
      task.type = part.types[n] ?? undefined;
      task.runId = part.runIds[n] as number;
      task.negatedUserPriority = part.negatedUserPriorities[n] as number;
      task.generation = part.generations[n] as number;
      task.rank = part.ranks[n] as number;
      task.arrival = part.arrivals[n] as number;
      task.waiterCount = part.waiterCounts[n] as number;
      task.missingDependencyCount = part.missingCounts[n] as number;
      task.dependentCount = part.dependentCounts[n] as number;
      this.byId[id] = task;
      return task;
    });
  }

  /** Links the tasks of a part, when all tasks are there. */
  link(part: TasksPart): void {
    const { workers, clients } = this.tables;
    for (let n = 0; n < part.ids.length; n++) {
      const task = this.of(part.ids[n] as number);
      task.dependencies = listOf(this.all(part.dependencies[n] as number[]));
      task.dependentsWithForgotten = listOf(this.all(part.dependents[n] as number[]));
      task.whoHas = setOf(part.whoHas[n] as number[], workers, 'worker');
      task.whoWants = setOf(part.whoWants[n] as number[], clients, 'client');
    }
    for (const [position, fields] of part.rare) {
      this.setRareFields(this.of(entryAt(part.ids, position, 'task')), fields);
    }
  }

  private setRareFields(task: TaskState, fields: SavedRareFields): void {
    const { restrictions, blame, failure, sweep, steal, usedWorkers, erredOn } = fields;
    if (restrictions !== undefined) task.restrictions = restrictionsOf(restrictions);
    if (failure !== undefined) task.blame = { task, failure, failureNumber: 0 };
    if (blame !== undefined) this.blamed.push([task, blame]);
    task.hasLostDependencies = fields.hasLostDependencies ?? false;
    task.retries = fields.retries ?? 0;
    if (fields.suspicious !== undefined) task.suspicious = fields.suspicious;
    task.reschedules = fields.reschedules ?? 0;
    if (usedWorkers !== undefined) task.usedWorkers = new Set(usedWorkers);
    task.isActor = fields.isActor ?? false;
    task.isDataProducer = fields.isDataProducer ?? false;
    task.isQueueable = fields.isQueueable ?? true;
    task.replicas = fields.replicas ?? 1;
    if (sweep !== undefined) {
      task.sweep = { list: task.dependentsWithForgotten, seen: sweep[0], kept: sweep[1] };
    }
    if (erredOn !== undefined) task.erredOn = new Set(erredOn);
    if (steal !== undefined) {
      const { workers } = this.tables;
      const victim = entryAt(workers, steal.victim, 'worker');
      const thief = entryAt(workers, steal.thief, 'worker');
      task.steal = new Steal(victim, thief, steal.victimS, steal.thiefS);
      task.steal.state = steal.state;
    }
    task.fingerprint = fields.fingerprint;
    task.reservation = fields.reservation ?? 0;
    task.metadata = fields.metadata;
    task.annotations = fields.annotations;
  }

  /** Called when all tasks are linked: what failed because of others shares their blame. */
  linkBlames(): void {
    for (const [task, blame] of this.blamed) task.blame = this.blameOf(blame);
  }

  private blameOf(blame: number | SavedBlame): Blame | undefined {
    if (typeof blame === 'number') return this.of(blame).blame;
    const task = new TaskState(blame.key, FORGOTTEN, this.limbo);
    task.state = 'forgotten';
    return { task, failure: blame.failure, failureNumber: 0 };
  }
}

function listOf(tasks: TaskState[]): TaskState[] {
  return tasks.length === 0 ? NO_TASKS : tasks;
}

/** The sets with one member are shared. */
function setOf<T extends { readonly alone: SmallSet<T> }>(
  positions: readonly number[],
  list: readonly T[],
  what: string,
): SmallSet<T> {
  let set = SmallSet.empty<T>();
  for (const position of positions) {
    const member = entryAt(list, position, what);
    set = set.size === 0 ? member.alone : set.with(member);
  }
  return set;
}

function restrictionsOf(saved: SavedRestrictions): Restrictions {
  const { workers, names, hosts, resources, loose } = saved;
  return {
    ...(workers === undefined ? {} : { workers: new Set(workers) }),
    ...(names === undefined ? {} : { names: new Set(names) }),
    ...(hosts === undefined ? {} : { hosts: new Set(hosts) }),
    ...(resources === undefined ? {} : { resources: new Map(resources) }),
    ...(loose === undefined ? {} : { loose }),
  };
}
