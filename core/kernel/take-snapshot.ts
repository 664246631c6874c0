import { KERNEL_SLOT_NAMES, type PolicyMemory } from '../api/policies.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { TaskGroup, TaskPrefix } from '../state/groups.ts';
import { type StateCounts, TASK_STATE_NAMES, type TaskStateName } from '../state/state-names.ts';
import type { Blame, Restrictions, TaskState, WorkerState } from '../state/task.ts';
import { approximateBytes } from '../util/bytes.ts';
import type { KernelScope } from './scope.ts';
import {
  COMPUTABLE,
  type HoldingsPart,
  idOf,
  type KernelPart,
  type PoliciesPart,
  Positions,
  type SavedBlame,
  type SavedGroup,
  type SavedLimit,
  type SavedPrefix,
  type SavedRareFields,
  type SavedRestrictions,
  type SavedSteal,
  type SavedWorker,
  type SnapshotTables,
  type StatePart,
  type TasksPart,
  WAITER,
  type WorkersPart,
} from './state-parts.ts';

/** Tasks or groups in one part. */
const PART_ITEMS = 5000;
/** Of run specifications in one part, roughly, unless a single one is larger. */
const PART_BYTES = 64 * 2 ** 20;

/**
 * All that later decisions of the kernel depend on. Only while nothing is left to later stimuli
 * (`SchedulerKernel.isQuiet`). To be read to its end before the next stimulus. O(tasks + links).
 *
 * @param isToStart - for a scheduler that starts with it, maybe with other policies: with the run specifications of tasks,
 *   and without what policies remember; otherwise it only says whether there is a specification
 */
export function* takeSnapshot(
  scope: KernelScope,
  isToStart: boolean,
): Generator<StatePart, void, undefined> {
  const { cluster } = scope;
  const tables: SnapshotTables = {
    prefixes: new Positions(cluster.prefixes.values()),
    groups: new Positions(cluster.groups.values()),
    workers: new Positions(cluster.workersByRank),
    clients: new Positions(cluster.clients.values()),
  };
  collect(scope, tables);
  yield kernelPart(scope);
  const { prefixes, groups } = tables;
  yield { part: 'prefixes', prefixes: prefixes.items.map((prefix) => prefixOf(scope, prefix)) };
  for (const some of inParts(groups.items)) {
    yield { part: 'groups', groups: some.map((group) => groupOf(scope, tables, group)) };
  }
  yield workersPart(scope, tables);
  const nbytesOf = ({ runSpec }: TaskState): number =>
    isToStart ? approximateBytes(runSpec, PART_BYTES) : 0;
  for (const some of inParts([...cluster.tasks.values()], nbytesOf)) {
    const part = tasksPart(tables, some);
    yield isToStart ? { ...part, runSpecs: some.map(({ runSpec }) => runSpec) } : part;
  }
  yield holdingsPart(scope, tables);
  yield isToStart ? { part: 'policies', inCharge: {}, fallbacks: {} } : policiesPart(scope);
}

/** Finds the groups, prefixes and workers that are in no table any more, and that something still refers to. */
function collect({ cluster }: KernelScope, { prefixes, groups, workers }: SnapshotTables): void {
  // The list grows meanwhile.
  for (let index = 0; index < groups.items.length; index++) {
    const group = groups.items[index] as TaskGroup;
    prefixes.of(group.prefix);
    for (const dependency of group.dependencies) groups.of(dependency);
  }
  for (const worker of cluster.workersByRank) {
    for (const { steal } of worker.processing) {
      if (steal === undefined) continue;
      workers.of(steal.victim);
      workers.of(steal.thief);
    }
  }
  for (const { prefixCounts } of workers.items) {
    for (const { prefix } of prefixCounts) prefixes.of(prefix);
  }
}

function* inParts<T>(
  items: readonly T[],
  nbytesOf: (item: T) => number = () => 0,
): Generator<readonly T[], void, undefined> {
  let some: T[] = [];
  let nbytes = 0;
  for (const item of items) {
    const more = nbytesOf(item);
    if (some.length === PART_ITEMS || (some.length > 0 && nbytes + more > PART_BYTES)) {
      yield some;
      some = [];
      nbytes = 0;
    }
    some.push(item);
    nbytes += more;
  }
  if (some.length > 0) yield some;
}

function kernelPart(scope: KernelScope): KernelPart {
  const { cluster } = scope;
  const { nextTaskId, freeTaskIds, nextWorkerSequence } = cluster.counters;
  return {
    part: 'kernel',
    nextRunId: scope.nextRunId,
    nextArrival: scope.nextArrival,
    transitions: scope.transitionCounter,
    bandwidth: cluster.costs.bandwidth,
    stealsInFlight: cluster.stealsInFlight,
    assignedCount: cluster.assignedCount,
    generation: cluster.generation,
    lastGenerationMs: cluster.lastGenerationMs,
    computingCount: cluster.computingCount,
    computeOccupancyS: cluster.computeOccupancyS,
    networkBytes: cluster.networkBytes,
    noWorkersSinceMs: cluster.noWorkersSinceMs ?? null,
    nextTaskId,
    freeTaskIds: [...freeTaskIds],
    nextWorkerSequence,
    erredTasks: [...cluster.erredTasks],
  };
}

function countsOf(counts: StateCounts): readonly number[] {
  return TASK_STATE_NAMES.map((state) => counts[state]);
}

function prefixOf({ cluster }: KernelScope, prefix: TaskPrefix): SavedPrefix {
  const { name, durationAverageS, maxExecTimeS, durationEstimateS } = prefix;
  return {
    name,
    isKnown: cluster.prefixes.get(name) === prefix,
    durationAverageS,
    maxExecTimeS,
    durationEstimateS,
    suspicious: prefix.suspicious,
    processingCount: prefix.processingCount,
    entered: countsOf(prefix.stateCounts),
    sharing: prefix.sharing.learnt,
  };
}

function groupOf({ cluster }: KernelScope, tables: SnapshotTables, group: TaskGroup): SavedGroup {
  const { name, size, nbytesTotal, startS, stopS, durationS } = group;
  return {
    name,
    prefix: tables.prefixes.of(group.prefix),
    isKnown: cluster.groups.get(name) === group,
    states: countsOf(group.states),
    size,
    dependencies: Array.from(group.dependencies, (one) => tables.groups.of(one)),
    nbytesTotal,
    startS,
    stopS,
    durationS,
    otherDurationsS: [...group.otherDurationsS],
    types: [...group.types],
  };
}

function workersPart({ cluster }: KernelScope, tables: SnapshotTables): WorkersPart {
  const { workers, prefixes, groups } = tables;
  const place = (worker: WorkerState): number => workers.of(worker);
  return {
    part: 'workers',
    workers: workers.items.map((worker) => workerOf(tables, worker)),
    registered: cluster.workersByRank.length,
    order: Array.from(cluster.workers.values(), place),
    hosts: Array.from(cluster.hosts, ([host, addresses]) => [host, [...addresses]] as const),
    resources: Array.from(cluster.resources, ([name, supply]) => [name, [...supply]] as const),
    running: Array.from(cluster.running, place),
    idle: Array.from(cluster.idle, place),
    saturated: Array.from(cluster.saturated, place),
    openSlots: Array.from(cluster.openSlots, (worker) => {
      return [place(worker), cluster.openSlots.keyOf(worker) ?? 0] as const;
    }),
    clients: Array.from(cluster.clients.values(), ({ key, versions, isMute, lastSeenMs }) => {
      return { key, versions, isMute, lastSeenMs };
    }),
    unusedPrefixes: cluster.counters.unusedPrefixes.map((prefix) => prefixes.of(prefix)),
    prefixGroups: prefixes.items.map((prefix) => {
      return [...prefix.groups].map((group) => groups.of(group));
    }),
  };
}

function workerOf({ prefixes }: SnapshotTables, worker: WorkerState): SavedWorker {
  const { identity, sequence, status, slotLimit, networkBytes, nbytes, metrics } = worker;
  const { stealsInFlight, inFlightS, inFlightTasks, lastSeenMs, deafMs, timeDelayMs } = worker;
  return {
    ...{ identity, sequence, status, slotLimit, networkBytes, nbytes, metrics },
    ...{ stealsInFlight, inFlightS, inFlightTasks, lastSeenMs, deafMs, timeDelayMs },
    endingRuns: [...worker.endingRuns],
    prefixCounts: worker.prefixCounts.map(({ prefix, count }) => [prefixes.of(prefix), count]),
    resources: [...worker.resources],
    usedResources: [...worker.usedResources],
    unmanaged: worker.unmanagedHistory.measured,
    unmanagedOld: worker.unmanagedHistory.oldBytes,
    measuredNbytes: worker.measuredNbytes,
  };
}

function idsOf(tasks: Iterable<TaskState>): number[] {
  return Array.from(tasks, idOf);
}

/** Of tasks with a number each, those that are not forgotten. */
function numbered(
  entries: Iterable<readonly [TaskState, number]>,
): (readonly [task: number, value: number])[] {
  const known = [...entries].filter(([task]) => task.state !== 'forgotten');
  return known.map(([task, value]) => [task.id, value]);
}

function holdingsPart({ cluster, refused }: KernelScope, tables: SnapshotTables): HoldingsPart {
  const workers = cluster.workersByRank;
  return {
    part: 'holdings',
    processing: workers.map(({ processing }) => idsOf(processing)),
    longRunning: workers.map(({ longRunning }) => idsOf(longRunning)),
    hasWhat: workers.map(({ hasWhat }) => idsOf(hasWhat)),
    needsWhat: workers.map(({ needsWhat }) => numbered(needsWhat)),
    executing: workers.map(({ executing }) => numbered(executing)),
    translations: workers.map(({ translations }) => idsOf(translations)),
    actors: workers.map(({ actors }) => idsOf(actors)),
    wantsWhat: Array.from(cluster.clients.values(), ({ wantsWhat }) => idsOf(wantsWhat)),
    queued: idsOf(cluster.queued.sorted()),
    unrunnable: numbered(cluster.unrunnable),
    refused: idsOf(refused),
    refusedSeen: refused.seenCount,
    ...(cluster.limits.size === 0 ? {} : { limits: limitsOf(cluster) }),
    replicated: idsOf(cluster.replicated),
    replicasWanted: idsOf(cluster.replicasWanted),
    translated: Array.from(cluster.translations, ([task, holders]) => {
      return [idOf(task), Array.from(holders, (one) => tables.workers.of(one))] as const;
    }),
  };
}

function limitsOf({ limits, tasks }: ClusterState): SavedLimit[] {
  return Array.from(limits.members(tasks.values()), ([limit, its]) => ({
    name: limit.name,
    max: limit.max,
    tasks: idsOf(its),
    queued: idsOf(limits.queueOf(limit).sorted()),
    endingRuns: limits.endingRunsOf(limit),
  }));
}

function policiesPart({ ports, cluster }: KernelScope): PoliciesPart {
  const remembered = (policies: Readonly<Record<string, PolicyMemory>>): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(policies).flatMap(([slot, policy]) => {
        const memory = policy.snapshot?.(cluster);
        return memory === undefined ? [] : [[slot, memory]];
      }),
    );
  const inCharge = KERNEL_SLOT_NAMES.map((slot) => [slot, ports[slot].policy] as const);
  const { fallbacks } = ports;
  const others = inCharge.filter(([slot, policy]) => fallbacks[slot] !== policy);
  return {
    part: 'policies',
    inCharge: remembered(Object.fromEntries(inCharge)),
    fallbacks: remembered(Object.fromEntries(others.map(([slot]) => [slot, fallbacks[slot]]))),
  };
}

/** Positions of the states, looked up once for each task. */
const STATE_NUMBERS: ReadonlyMap<TaskStateName, number> = new Map(
  TASK_STATE_NAMES.map((state, position) => [state, position]),
);

/** These tasks, in columns. */
function tasksPart(
  { groups, workers, clients }: SnapshotTables,
  tasks: readonly TaskState[],
): TasksPart {
  const rare: [number, SavedRareFields][] = [];
  for (const [position, task] of tasks.entries()) {
    if (!task.hasRareFields) continue;
    rare.push([position, rareFieldsOf(task, (worker) => workers.of(worker))]);
  }
  return {
    part: 'tasks',
    keys: tasks.map(({ key }) => key),
    ids: tasks.map(({ id }) => id),
    groups: tasks.map(({ group }) => groups.of(group)),
    states: tasks.map(stateNumber),
    nbytes: tasks.map(({ nbytes }) => nbytes),
    types: tasks.map(({ type }) => type ?? null),
    runIds: tasks.map(({ runId }) => runId),
    negatedUserPriorities: tasks.map(({ negatedUserPriority }) => negatedUserPriority),
    generations: tasks.map(({ generation }) => generation),
    ranks: tasks.map(({ rank }) => rank),
    arrivals: tasks.map(({ arrival }) => arrival),
    waiterCounts: tasks.map(({ waiterCount }) => waiterCount),
    missingCounts: tasks.map(({ missingDependencyCount }) => missingDependencyCount),
    dependentCounts: tasks.map(({ dependentCount }) => dependentCount),
    dependencies: tasks.map(({ dependencies }) => dependencies.map(idOf)),
    dependents: tasks.map(({ dependentsWithForgotten }) => dependentsWithForgotten.map(idOf)),
    whoHas: tasks.map(({ whoHas }) => whoHas.items.map((worker) => workers.of(worker))),
    whoWants: tasks.map(({ whoWants }) => whoWants.items.map((client) => clients.of(client))),
    rare,
  };
}

function stateNumber({ state, countsAsWaiter, runSpec }: TaskState): number {
  const number = STATE_NUMBERS.get(state) ?? 0;
  return number + (countsAsWaiter ? WAITER : 0) + (runSpec === undefined ? 0 : COMPUTABLE);
}

type Place = (worker: WorkerState) => number;

function rareFieldsOf(task: TaskState, place: Place): SavedRareFields {
  const { restrictions, blame, usedWorkers, failure, sweep, steal } = task;
  const { fingerprint, reservation, metadata, annotations, erredOn, replicas } = task;
  const { retries, suspicious, reschedules } = task;
  return {
    ...(restrictions === undefined ? {} : { restrictions: restrictionsOf(restrictions) }),
    ...(blame === undefined || failure !== undefined ? {} : { blame: savedBlameOf(blame) }),
    ...(task.hasLostDependencies ? { hasLostDependencies: true } : {}),
    ...(retries === 0 ? {} : { retries }),
    ...(suspicious === 0 ? {} : { suspicious }),
    ...(reschedules === 0 ? {} : { reschedules }),
    ...(usedWorkers === undefined ? {} : { usedWorkers: [...usedWorkers] }),
    ...(task.isActor ? { isActor: true } : {}),
    ...(task.isDataProducer ? { isDataProducer: true } : {}),
    ...(task.isQueueable ? {} : { isQueueable: false }),
    ...(replicas === 1 ? {} : { replicas }),
    ...(failure === undefined ? {} : { failure }),
    ...(sweep?.list !== task.dependentsWithForgotten ? {} : { sweep: [sweep.seen, sweep.kept] }),
    ...(erredOn.size === 0 ? {} : { erredOn: [...erredOn] }),
    ...(steal === undefined ? {} : { steal: stealOf(steal, place) }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(reservation === 0 ? {} : { reservation }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}

function savedBlameOf(blame: Blame): number | SavedBlame {
  const { task, failure } = blame;
  if (task.state !== 'forgotten' && task.blame === blame) return task.id;
  return { key: task.key, failure };
}

function stealOf(steal: NonNullable<TaskState['steal']>, place: Place): SavedSteal {
  const { state, victim, thief, victimS, thiefS } = steal;
  return { state, victim: place(victim), thief: place(thief), victimS, thiefS };
}

function restrictionsOf(restrictions: Restrictions): SavedRestrictions {
  const { workers, names, hosts, resources, loose } = restrictions;
  return {
    ...(workers === undefined ? {} : { workers: [...workers] }),
    ...(names === undefined ? {} : { names: [...names] }),
    ...(hosts === undefined ? {} : { hosts: [...hosts] }),
    ...(resources === undefined ? {} : { resources: [...resources] }),
    ...(loose === undefined ? {} : { loose }),
  };
}
