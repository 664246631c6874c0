import { placeTask } from '../../core/kernel/placement.ts';
import type { ClusterState } from '../../core/state/cluster.ts';
import {
  addReplica,
  addToProcessing,
  linkDependencies,
  setNbytes,
} from '../../core/state/relations.ts';
import type { Restrictions, TaskState } from '../../core/state/task.ts';
import { type WorkerStatus, WorkerState } from '../../core/state/worker.ts';
import type { CoAssignment, RunMemory } from '../../policies/queuing/co-assign.ts';
import type { CaseResult } from './report.ts';
import type { TraceConfig } from './trace-format.ts';
import { hostOf, TraceKernel } from './trace-kernel.ts';

/** One recorded choice of a worker, with all that it depends on. */
export interface Decision {
  readonly id: string;
  readonly rule: string;
  readonly task: {
    readonly key: string;
    readonly prefix: string;
    readonly group: string;
    readonly actor: boolean;
    readonly durationEstimate: number | null;
    readonly deps: readonly {
      readonly key: string;
      readonly nbytes: number;
      readonly whoHas: readonly string[];
    }[];
    readonly workerRestrictions: readonly string[];
    readonly hostRestrictions: readonly string[];
    readonly resourceRestrictions: Readonly<Record<string, number>>;
    readonly looseRestrictions: boolean;
  };
  readonly group: {
    readonly size: number;
    readonly dependencyGroups: readonly { readonly name: string; readonly size: number }[];
    readonly lastWorker: string | null;
    readonly lastWorkerTasksLeft: number;
    readonly statesReleasedPlusWaiting: number;
  };
  readonly cluster: {
    readonly bandwidth: number;
    readonly workerSaturation: number | 'inf';
    readonly tasksAssignedSoFar: number;
  };
  readonly workers: readonly DecisionWorker[];
  readonly anyOf: readonly string[];
  readonly mustBeNull: boolean;
  readonly after?: { readonly lastWorker: string | null; readonly lastWorkerTasksLeft: number };
}

interface DecisionWorker {
  readonly address: string;
  readonly name?: string;
  readonly host?: string;
  readonly status: string;
  readonly nthreads: number;
  readonly occupancy: number;
  readonly nprocessing: number;
  readonly nlongRunning: number;
  readonly nbytes: number;
  readonly nactors: number;
  readonly resources: Readonly<Record<string, number>>;
  readonly idle: boolean;
  readonly openSlots: boolean;
  readonly saturated: boolean;
}

/** Builds the recorded situation out of real state objects and asks the kernel where the task goes. */
export function runDecision(decision: Decision): CaseResult {
  const { id, anyOf, mustBeNull } = decision;
  const config: TraceConfig = {
    workerSaturation: decision.cluster.workerSaturation,
    bandwidth: decision.cluster.bandwidth,
  };
  const { scope, kernel } = new TraceKernel(config);
  const { cluster } = kernel;
  cluster.assignedCount = decision.cluster.tasksAssignedSoFar;
  for (const worker of decision.workers) addWorker(cluster, worker, scope.ports.queuing.policy);
  const task = addTask(cluster, decision);
  const { runs } = scope.ports.queuing.policy as unknown as { runs: CoAssignment };
  const { lastWorker, lastWorkerTasksLeft } = decision.group;
  const last = lastWorker === null ? undefined : cluster.workers.get(lastWorker);
  if (last !== undefined) runs.begin(task.group, last, lastWorkerTasksLeft);
  const placement = placeTask(scope, task);
  const chosen = typeof placement === 'string' ? null : placement.address;
  if (mustBeNull) {
    return chosen === null ? { id } : { id, failure: `chose ${chosen} instead of no worker` };
  }
  if (chosen === null || !anyOf.includes(chosen)) {
    const failure = `${decision.rule} chose ${chosen ?? 'no worker'} instead of ${anyOf.join(' or ')}`;
    return { id, failure };
  }
  return checkRun(decision, runs.snapshot(cluster));
}

function checkRun({ id, after, rule }: Decision, [run]: RunMemory): CaseResult {
  if (after === undefined || !rule.startsWith('rootish') || rule === 'rootishQueued') return { id };
  const [, last = null, left] = run ?? [];
  // Dask remembers the worker of a run that is over.
  const goesOnAt = after.lastWorkerTasksLeft === 0 ? null : after.lastWorker;
  if (last !== goesOnAt) {
    return { id, failure: `the run goes on at ${String(last)} instead of ${String(goesOnAt)}` };
  }
  if (last !== null && left !== after.lastWorkerTasksLeft) {
    return { id, failure: `${String(left)} tasks left instead of ${after.lastWorkerTasksLeft}` };
  }
  return { id };
}

function addWorker(
  cluster: ClusterState,
  recorded: DecisionWorker,
  queuing: { slotLimit(worker: WorkerState): number },
): void {
  const identity = {
    address: recorded.address,
    serverId: recorded.address,
    name: recorded.name ?? recorded.address,
    host: recorded.host ?? hostOf(recorded.address),
    threadCount: recorded.nthreads,
    memoryLimitBytes: 0,
    resources: recorded.resources,
  };
  const worker = new WorkerState(identity, cluster.nextSequence(), cluster.costs, 0);
  worker.status = recorded.status.replaceAll('_', '-') as WorkerStatus;
  worker.slotLimit = queuing.slotLimit(worker);
  cluster.addWorker(worker);
  load(cluster, worker, recorded);
  worker.nbytes = recorded.nbytes;
  if (worker.status === 'running') cluster.running.add(worker);
  if (recorded.idle) cluster.idle.add(worker);
  if (recorded.saturated) cluster.saturated.add(worker);
  if (recorded.openSlots && worker.status === 'running') {
    cluster.openSlots.put(worker, worker.load);
  }
}

/** Gives the worker tasks that add up to the recorded occupancy. */
function load(cluster: ClusterState, worker: WorkerState, recorded: DecisionWorker): void {
  const name = `load-${worker.sequence}x`;
  const computing = recorded.nprocessing - recorded.nlongRunning;
  for (let index = 0; index < recorded.nprocessing; index++) {
    const filler = cluster.newTask(`${name}-${index}`, name, name);
    addToProcessing(cluster, filler, worker);
    if (index === 0) {
      filler.prefix.durationAverageS = 0;
      filler.prefix.durationEstimateS = computing === 0 ? 0 : recorded.occupancy / computing;
    }
    if (index >= computing) {
      worker.longRunning.add(filler);
      const entry = worker.prefixCounts.find(({ prefix }) => prefix === filler.prefix);
      if (entry !== undefined) entry.count--;
    }
  }
  if (computing === 0) worker.networkBytes = recorded.occupancy * cluster.costs.bandwidth;
  for (let index = 0; index < recorded.nactors; index++) {
    worker.actors.add(cluster.newTask(`actor-${worker.sequence}-${index}`));
  }
}

function addTask(cluster: ClusterState, { task: recorded, group }: Decision): TaskState {
  const task = cluster.newTask(recorded.key, recorded.group, recorded.prefix);
  task.runSpec = 'spec';
  task.rank = 0;
  task.isActor = recorded.actor;
  task.restrictions = restrictionsOf(recorded);
  for (const { key, nbytes, whoHas } of recorded.deps) {
    const dependency = cluster.newTask(key, `inputs of ${recorded.group}`, 'inputs');
    linkDependencies(task, [dependency]);
    if (nbytes >= 0) setNbytes(cluster, dependency, nbytes);
    for (const address of whoHas) {
      const holder = cluster.workers.get(address);
      if (holder === undefined) continue;
      const before = holder.nbytes;
      addReplica(cluster, dependency, holder);
      // The recorded sum includes it.
      holder.nbytes = before;
    }
  }
  task.group.dependencies.clear();
  for (const { name, size } of group.dependencyGroups) {
    const other = cluster.newTask(`${name}-member`, `group ${name}`, 'other').group;
    other.size = size;
    task.group.dependencies.add(other);
  }
  task.group.size = group.size;
  task.group.states.released = group.statesReleasedPlusWaiting;
  return task;
}

function restrictionsOf(task: Decision['task']): Restrictions | undefined {
  const workers = new Set(task.workerRestrictions);
  const hosts = new Set(task.hostRestrictions);
  const resources = new Map(Object.entries(task.resourceRestrictions));
  if (workers.size + hosts.size + resources.size === 0) return undefined;
  return {
    ...(workers.size > 0 ? { workers } : {}),
    ...(hosts.size > 0 ? { hosts } : {}),
    ...(resources.size > 0 ? { resources } : {}),
    loose: task.looseRestrictions,
  };
}
