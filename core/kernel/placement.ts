/**
 * Which worker computes a task: restrictions and holders of inputs narrow the workers down, the
 * policies choose among them, and ties go by a fixed rule. Source: behaviour.md section 4.
 */
import type { Queuing, WorkerSelection } from '../api/policies.ts';
import type { WorkerView } from '../api/views.ts';
import type { ClusterState } from '../state/cluster.ts';
import type { TaskState } from '../state/task.ts';
import type { WorkerState } from '../state/worker.ts';
import { askPolicy } from './ask-policy.ts';
import { validWorkers } from './restrictions.ts';
import type { KernelScope } from './scope.ts';

/** A choice; without a worker, the state in which the task waits for one. */
export interface Placement {
  readonly worker: WorkerState | undefined;
  readonly otherwise: 'queued' | 'no-worker';
}

/** Chooses a worker for a task whose inputs are all there. O(dependencies + their replicas). */
export function placeTask(scope: KernelScope, task: TaskState): Placement {
  if (!isRootish(scope, task)) return { worker: placeNormal(scope, task), otherwise: 'no-worker' };
  const worker = placeRootish(scope, task);
  const isHeldBack = scope.ports.queuing.policy.holdsBack && task.isQueueable && !task.isActor;
  return { worker, otherwise: isHeldBack ? 'queued' : 'no-worker' };
}

/** Chooses a worker for a task that leaves the queue. */
export function placeQueued(scope: KernelScope, task: TaskState): WorkerState | undefined {
  return placeRootish(scope, task);
}

/** Asks the queuing policy, which looks at collections as a whole. */
export function isRootish(scope: KernelScope, task: TaskState): boolean {
  return askPolicy(
    scope,
    'queuing',
    (policy) => policy.isRootish(task, scope.cluster),
    (answer) =>
      typeof answer === 'boolean' ? undefined : `answered isRootish with ${String(answer)}`,
  );
}

function placeRootish(scope: KernelScope, task: TaskState): WorkerState | undefined {
  return askPolicy(
    scope,
    'queuing',
    (policy: Queuing) => policy.selectRootish(task, scope.cluster),
    (answer) => refuseWorker(scope.cluster, task, answer),
  ) as WorkerState | undefined;
}

function placeNormal(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const { cluster } = scope;
  if (cluster.running.size === 0) return undefined;
  const valid = validWorkers(cluster, task);
  // Turns are taken in a healthy cluster only; Dask compares start times when a worker is paused.
  const areAllRunning = cluster.running.size === cluster.workersByRank.length;
  if (task.dependencies.length === 0 && valid === undefined && areAllRunning) {
    return placeUnconstrained(scope, task);
  }
  scope.inputs.locate(cluster, task);
  return chooseAmong(scope, task, candidatesFor(cluster, task, scope.inputs.holders, valid));
}

/** A task that may run anywhere and needs nothing. */
function placeUnconstrained(scope: KernelScope, task: TaskState): WorkerState | undefined {
  const { cluster } = scope;
  const pool = cluster.idle.size > 0 ? cluster.idle : cluster.running;
  scope.inputs.clear();
  return askPolicy(
    scope,
    'workerSelection',
    (policy: WorkerSelection): WorkerView | undefined =>
      policy.selectUnconstrained === undefined
        ? choose(policy, scope, task, [...pool])
        : policy.selectUnconstrained(task, pool, cluster),
    (answer) => refuseWorker(cluster, task, answer),
  ) as WorkerState | undefined;
}

/** Holders of inputs first; any valid worker when none of them may run the task. */
function candidatesFor(
  cluster: ClusterState,
  task: TaskState,
  holders: readonly WorkerState[],
  valid: ReadonlySet<WorkerState> | undefined,
): readonly WorkerState[] {
  if (valid === undefined) {
    if (task.isActor || holders.length === 0) return [...cluster.running];
    return holders;
  }
  if (valid.size === 0) {
    if (task.restrictions?.loose !== true) return [];
    return candidatesFor(cluster, task, holders, undefined);
  }
  const both = task.isActor ? [] : holders.filter((worker) => valid.has(worker));
  return both.length > 0 ? both : [...valid];
}

function chooseAmong(
  scope: KernelScope,
  task: TaskState,
  candidates: readonly WorkerState[],
): WorkerState | undefined {
  if (candidates.length === 0) return undefined;
  const { policy } = scope.ports.workerSelection;
  const hasSay = policy.admits !== undefined || policy.select !== undefined;
  if (candidates.length === 1 && !hasSay) return candidates[0];
  return askPolicy(
    scope,
    'workerSelection',
    (policy: WorkerSelection): WorkerView | undefined => choose(policy, scope, task, candidates),
    (answer) => refuseWorker(scope.cluster, task, answer),
  ) as WorkerState | undefined;
}

function choose(
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
    return policy.select(task, admitted.toSorted(byRank), cluster);
  }
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
  cluster: ClusterState,
  task: TaskState,
  answer: WorkerView | undefined,
): string | undefined {
  if (answer === undefined) return undefined;
  const worker = cluster.workers.get(answer.address);
  if (worker !== answer) {
    return `chose ${answer.address} for ${task.key}, which is not a registered worker`;
  }
  if (worker.status !== 'running') {
    return `chose ${worker.address} for ${task.key}, which is ${worker.status}`;
  }
  return undefined;
}
