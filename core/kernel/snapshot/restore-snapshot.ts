import { FIRE_AND_FORGET, GenericClient } from '../../state/client.ts';
import { TaskGroup, TaskPrefix } from '../../state/groups.ts';
import type { ClientState, TaskState, WorkerState } from '../../state/task.ts';
import { type StateCounts, TASK_STATE_NAMES } from '../../state/task-state-name.ts';
import { GenericWorker } from '../../state/worker.ts';
import { SteadySet } from '../../util/collections/steady-map.ts';
import { KERNEL_SLOT_NAMES } from '../../api/policies.ts';
import type { KernelScope } from '../scope.ts';
import {
  type HoldingsPart,
  type KernelPart,
  type PoliciesPart,
  type SavedGroup,
  type SavedPrefix,
  type SavedWorker,
  STATE_VERSION,
  type StatePart,
  type TasksPart,
  type WorkersPart,
} from './state-parts.ts';
import { entryAt, RestoredTasks, StateError } from './restore-tasks.ts';

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
  if (kernel.state !== STATE_VERSION) {
    throw new StateError(
      `its state has the version ${kernel.state}, and this version of Yardmaster reads ${STATE_VERSION}`,
    );
  }
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
  scope.visits.epoch = saved.failureEpoch;
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
  const worker: WorkerState = new GenericWorker<TaskState>(identity, sequence, costs, lastSeenMs);
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
    const client = new GenericClient<TaskState>(key, lastSeenMs, versions, isMute, wants);
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
