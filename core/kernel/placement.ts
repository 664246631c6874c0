/**
 * Which worker computes a task: restrictions and holders of inputs narrow the workers down, the
 * policies choose among them, and ties go by a fixed rule. Source: Dask's `decide_worker`.
 */
import type { WorkerSelection } from '../api/policies.ts';
import type { WorkerView } from '../api/views.ts';
import type { TaskState } from '../state/task.ts';
import type { WorkerState } from '../state/worker.ts';
import { askPolicy, type Question } from './ask-policy.ts';
import { COMMON_COPIES, reachedWorkers } from './reach.ts';
import { isLoose, validWorkers } from './restrictions.ts';
import type { KernelScope } from './scope.ts';

/** A worker, or the state in which the task waits for one. */
export type Placement = WorkerState | 'queued' | 'no-worker';

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

/** Asks the policies without telling the watchers. */
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
    watcher.placed?.(scope, { task, placement, isRootish: asRootish });
  }
}

/** Asks the queuing policy, which looks at collections as a whole: not at restrictions, not at actors. */
export function isRootish(scope: KernelScope, task: TaskState): boolean {
  if (task.restrictions !== undefined || task.isActor) return false;
  if (scope.cluster.languageFor(task) !== undefined) return false;
  // It is not as free as the others: a worker has come back that died under it.
  if (task.usedWorkers !== undefined && validWorkers(scope.cluster, task) !== undefined)
    return false;
  return askPolicy(scope, IS_ROOTISH, task);
}

/** Chooses a worker for a root-ish task; undefined when it should wait. */
function placeRootish(scope: KernelScope, task: TaskState): WorkerState | undefined {
  return askPolicy(scope, SELECT_ROOTISH, task) as WorkerState | undefined;
}

/** Root-ish tasks that the worker may have at once. */
export function slotLimitOf(scope: KernelScope, worker: WorkerState): number {
  return askPolicy(scope, SLOT_LIMIT, worker);
}

/** Chooses by inputs and restrictions, without regard to slots; undefined when no worker will do. */
export function placeUnqueued(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const { cluster } = scope;
  if (cluster.running.size === 0) return undefined;
  const valid = validWorkers(cluster, task);
  // Turns are taken in a healthy cluster only; Dask compares start times when a worker is paused.
  const areAllRunning = cluster.running.size === cluster.workersByRank.length;
  const { reach } = scope.ports.workerSelection.policy;
  scope.inputs.locate(cluster, task, reach === undefined ? Infinity : COMMON_COPIES);
  if (task.dependencies.length === 0 && valid === undefined && areAllRunning) {
    return askPolicy(scope, SELECT_UNCONSTRAINED, task) as WorkerState | undefined;
  }
  scope.candidates = candidatesFor(scope, task, valid);
  return chooseCandidate(scope, task);
}

/** Holders of inputs first; any valid worker when none of them may run the task. */
function candidatesFor(
  scope: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
): readonly WorkerState[] {
  const { cluster, inputs } = scope;
  if (valid?.size === 0) {
    return isLoose(cluster, task) ? candidatesFor(scope, task, undefined) : [];
  }
  const { reach } = scope.ports.workerSelection.policy;
  if (reach !== undefined && !task.isActor) return reachedWorkers(scope, task, valid, reach);
  const { holders } = inputs;
  if (valid === undefined) {
    return task.isActor || holders.length === 0 ? [...cluster.running] : holders;
  }
  const both = task.isActor ? [] : holders.filter((worker) => valid.has(worker));
  return both.length > 0 ? both : [...valid];
}

function chooseCandidate(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const { candidates } = scope;
  if (candidates.length === 0) return undefined;
  const { policy } = scope.ports.workerSelection;
  const hasSay = policy.admits !== undefined || policy.select !== undefined;
  if (candidates.length === 1 && !hasSay) return candidates[0];
  return askPolicy(scope, SELECT_CANDIDATE, task) as WorkerState | undefined;
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
      : `gave worker ${worker.address} the slot limit ${limit}, which is below 1`,
};

const SELECT_ROOTISH: Question<'queuing', TaskState, WorkerView | undefined> = {
  slot: 'queuing',
  ask: (policy, { cluster }, task) => policy.selectRootish(task, cluster),
  refuse: refuseWorker,
};

/** A task that may run anywhere and needs nothing. */
const SELECT_UNCONSTRAINED: Question<'workerSelection', TaskState, WorkerView | undefined> = {
  slot: 'workerSelection',
  ask: (policy, scope, task) => {
    const { cluster } = scope;
    const pool = cluster.idle.size > 0 ? cluster.idle : cluster.running;
    if (policy.selectUnconstrained !== undefined) {
      return policy.selectUnconstrained(task, pool, cluster);
    }
    return selectBest(policy, scope, task, [...pool]);
  },
  refuse: refuseWorker,
};

const SELECT_CANDIDATE: Question<'workerSelection', TaskState, WorkerView | undefined> = {
  slot: 'workerSelection',
  ask: (policy, scope, task) => selectBest(policy, scope, task, scope.candidates),
  refuse: (answer, scope, task) =>
    refuseWorker(answer, scope, task) ?? refuseRestricted(answer, scope, task),
};

/** Who scores chooses among the candidates; who selects may choose anybody but must not break rules. */
function refuseRestricted(
  answer: WorkerView | undefined,
  { cluster, ports }: KernelScope,
  task: TaskState,
): string | undefined {
  if (answer === undefined || ports.workerSelection.policy.select === undefined) return undefined;
  const valid = validWorkers(cluster, task);
  const worker = cluster.workers.get(answer.address);
  if (valid === undefined || worker === undefined || valid.has(worker)) return undefined;
  if (valid.size === 0 && isLoose(cluster, task)) return undefined;
  return `chose ${answer.address} for ${task.key}, against the restrictions of the task`;
}

function selectBest(
  policy: WorkerSelection,
  scope: KernelScope,
  task: TaskState,
  candidates: readonly WorkerState[],
): WorkerView | undefined {
  const { cluster, inputs } = scope;
  const admitted =
    policy.admits === undefined
      ? candidates
      : candidates.filter((worker) => policy.admits?.(task, worker) === true);
  if (admitted.length === 0) return undefined;
  if (policy.select !== undefined) {
    return policy.select(task, admitted.toSorted(byRank), cluster, inputs.missingBytes);
  }
  if (policy.score === undefined) throw new TypeError('it has neither score nor select');
  let best: WorkerState | undefined;
  let bestScore = 0;
  for (const worker of admitted) {
    const score = policy.score(task, worker, inputs.missingBytes(worker), cluster);
    if (!Number.isFinite(score)) {
      throw new RangeError(`score of worker ${worker.address} for task ${task.key} is ${score}`);
    }
    if (best === undefined || comesBefore(task, worker, score, best, bestScore)) {
      best = worker;
      bestScore = score;
    }
  }
  return best;
}

/** Score, then stored bytes, then rank; an actor looks at the number of actors before all that. */
function comesBefore(
  task: TaskState,
  worker: WorkerState,
  score: number,
  best: WorkerState,
  bestScore: number,
): boolean {
  if (task.isActor && worker.actors.size !== best.actors.size) {
    return worker.actors.size < best.actors.size;
  }
  if (score !== bestScore) return score < bestScore;
  if (worker.nbytes !== best.nbytes) return worker.nbytes < best.nbytes;
  return worker.rank < best.rank;
}

function byRank(a: WorkerState, b: WorkerState): number {
  return a.rank - b.rank;
}

function refuseWorker(
  answer: WorkerView | undefined,
  { cluster }: KernelScope,
  task: TaskState,
): string | undefined {
  if (answer === undefined) return undefined;
  if (cluster.workersByRank[answer.rank] !== answer) {
    return `chose ${answer.address} for ${task.key}, which is not a registered worker`;
  }
  if (answer.status === 'running') return undefined;
  return `chose ${answer.address} for ${task.key}, which is ${answer.status}`;
}
