/**
 * Which worker computes a task: restrictions and holders of inputs narrow the workers down, the
 * policies choose among them, and ties go by a fixed rule. Source: Dask's `decide_worker`.
 */
import type { Reach } from '../../api/policies.ts';
import type { WorkerView } from '../../api/views.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import {
  chooseCandidate,
  chooseForSlot,
  chooseFromPool,
  refuseWorker,
} from './choose-candidate.ts';
import type { KernelPorts, Placement } from '../ports.ts';
import { COMMON_COPIES, hasFreeResources, reachedWorkers } from './reach.ts';
import { isLoose, validWorkers } from './restrictions.ts';
import type { KernelScope } from '../scope.ts';

/** Chooses a worker for a task whose inputs are all there. O(dependencies + their replicas). */
export function placeTask(scope: KernelScope, task: TaskState): Placement {
  const asRootish = isRootish(scope, task);
  const placement = choosePlacement(scope, task, asRootish);
  if (scope.watchers.length > 0) tellPlaced(scope, task, placement, asRootish);
  return placement;
}

/** Chooses a worker for a task that leaves the queue; undefined when it should stay. */
export function placeQueued(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const worker = placeRootish(scope, task);
  if (scope.watchers.length > 0) tellPlaced(scope, task, worker ?? 'queued', true);
  return worker;
}

/** Chooses a worker for a task in `no-worker`; undefined when it should stay. */
export function placeParked(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const { holdsBack } = scope.ports.queuing.policy;
  const placement = choosePlacement(scope, task, !holdsBack && isRootish(scope, task));
  return typeof placement === 'string' ? undefined : placement;
}

/** Asks the policies without notifying the watchers. */
export function choosePlacement(
  scope: KernelScope,
  task: TaskState,
  asRootish: boolean,
): Placement {
  if (!asRootish) return placeUnqueued(scope, task) ?? 'no-worker';
  const worker = placeRootish(scope, task);
  if (worker !== undefined) return worker;
  // Who asked that a task be never held back wants it on a worker, with an open slot or without.
  if (!task.isQueueable) return placeUnqueued(scope, task) ?? 'no-worker';
  return scope.ports.queuing.policy.holdsBack ? 'queued' : 'no-worker';
}

function tellPlaced(
  scope: KernelScope,
  task: TaskState,
  placement: Placement,
  asRootish: boolean,
): void {
  for (const watcher of scope.watchers) {
    watcher.placed?.({ task, placement, isRootish: asRootish });
  }
}

/** Asks the queuing policy, which looks at collections as a whole: not at restrictions, not at actors. */
export function isRootish(scope: KernelScope, task: TaskState): boolean {
  if (task.restrictions !== undefined || task.isActor) return false;
  // Its limit holds it back; it would hold up others of its limit while it waited for a slot.
  if (task.limit !== undefined) return false;
  if (scope.cluster.languageFor(task) !== undefined) return false;
  // It is not as free as the others: it avoids workers.
  if (task.usedWorkers !== undefined && validWorkers(scope.cluster, task) !== undefined)
    return false;
  return askPolicy(scope, IS_ROOTISH, task);
}

/** Chooses a worker for a root-ish task; undefined when it should wait. */
function placeRootish(scope: KernelScope, task: TaskState): WorkerState | undefined {
  if (!selectionPlacesRootish(scope.ports)) {
    return askPolicy(scope, SELECT_ROOTISH, task) as WorkerState | undefined;
  }
  const { reach } = scope.ports.workerSelection.policy;
  scope.inputs.locate(scope.cluster, task, copiesMax(reach));
  return chooseForSlot(scope, task, slotCandidates(scope, task));
}

/** Whether the queuing policy decides only when a root-ish task starts, and worker selection where. */
export function selectionPlacesRootish({ queuing, workerSelection }: KernelPorts): boolean {
  return queuing.policy.leavesPlacement === true && workerSelection.policy.placesRootish !== false;
}

/** Workers with an open slot; within the reach of the policy if it has one. The inputs are located. */
export function slotCandidates(scope: KernelScope, task: TaskState): readonly WorkerState[] {
  const { openSlots } = scope.cluster;
  const { reach } = scope.ports.workerSelection.policy;
  if (reach === undefined || reach === 'all') return [...openSlots];
  const reached = reachedWorkers(scope, task, undefined, reach).filter((one) => one.openSlots > 0);
  const leastBusy = openSlots.peek();
  return reached.length > 0 || leastBusy === undefined ? reached : [leastBusy];
}

/** Inputs with more copies than this are left out of `missingBytes`. */
function copiesMax(reach: Reach | 'all' | undefined): number {
  return reach === undefined || reach === 'all' ? Infinity : COMMON_COPIES;
}

/** Root-ish tasks that the worker may have at once. */
export function slotLimitOf(scope: KernelScope, worker: WorkerState): number {
  return askPolicy(scope, SLOT_LIMIT, worker);
}

/** Chooses by inputs and restrictions, without regard to slots; undefined when no worker will do. */
function placeUnqueued(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const { cluster } = scope;
  if (cluster.running.size === 0) return undefined;
  const valid = validWorkers(cluster, task);
  const { reach } = scope.ports.workerSelection.policy;
  scope.inputs.locate(cluster, task, copiesMax(reach));
  if (isUnconstrained(scope, task, valid)) return chooseFromPool(scope, task);
  return chooseCandidate(scope, task, candidatesFor(scope, task, valid));
}

/**
 * Whether the policy places the task by `pickFromPool`: it has one, the task needs nothing and may
 * run anywhere, and all workers are running (Dask compares start times when one is paused).
 */
export function isUnconstrained(
  { cluster, ports }: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
): boolean {
  if (ports.workerSelection.policy.pickFromPool === undefined) return false;
  if (task.dependencies.length > 0 || valid !== undefined) return false;
  return cluster.running.size === cluster.workersByRank.length;
}

/** Holders of inputs first; any valid worker when none of them may run the task. The inputs are located. */
export function candidatesFor(
  scope: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
): readonly WorkerState[] {
  const { cluster, inputs } = scope;
  if (valid?.size === 0) {
    return isLoose(cluster, task) ? candidatesFor(scope, task, undefined) : [];
  }
  const { reach } = scope.ports.workerSelection.policy;
  if (reach === 'all') return [...(valid ?? cluster.running)];
  if (reach !== undefined && !task.isActor) return reachedWorkers(scope, task, valid, reach);
  const { holders } = inputs;
  if (valid === undefined) {
    return task.isActor || holders.length === 0 ? [...cluster.running] : holders;
  }
  const both = task.isActor ? [] : holders.filter((worker) => valid.has(worker));
  const { weighsResources = false } = scope.ports.workerSelection.policy;
  const isEnough = !weighsResources || both.some((worker) => hasFreeResources(task, worker));
  return both.length > 0 && isEnough ? both : [...valid];
}

const IS_ROOTISH: Question<'queuing', TaskState, boolean> = {
  slot: 'queuing',
  ask: (policy, { cluster }, task) => policy.isRootish(task, cluster),
  refuse: (answer) =>
    typeof answer === 'boolean' ? undefined : `answered isRootish with ${String(answer)}`,
};

const SLOT_LIMIT: Question<'queuing', WorkerState, number> = {
  slot: 'queuing',
  ask: (policy, _scope, worker) => policy.slotLimit(worker),
  refuse: (limit, _scope, worker) =>
    limit >= 1
      ? undefined
      : `gave worker ${worker.address} the slot limit ${String(limit)}; ` +
        'allowed are numbers from 1 on, and Infinity for no limit',
};

const SELECT_ROOTISH: Question<'queuing', TaskState, WorkerView | undefined> = {
  slot: 'queuing',
  ask: (policy, { cluster }, task) => policy.selectRootish(task, cluster),
  refuse: refuseWorker,
};
