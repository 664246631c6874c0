/** Asks the worker selection policy which of the candidates computes a task. */
import type { WorkerPool, WorkerSelection } from '../../api/policies.ts';
import type { WorkerView } from '../../api/views.ts';
import type { TaskState, WorkerState } from '../../state/task.ts';
import { askPolicy, nameAnswer, type Question } from './ask-policy.ts';
import { isLoose, validWorkers } from './restrictions.ts';
import type { KernelScope } from '../scope.ts';

/** Chooses among the candidates; undefined when the policy wants none of them. */
export function chooseCandidate(
  scope: KernelScope,
  task: TaskState,
  candidates: readonly WorkerState[],
): WorkerState | undefined {
  if (candidates.length === 0) return undefined;
  const { policy } = scope.ports.workerSelection;
  const hasSay = policy.admits !== undefined || policy.select !== undefined;
  if (candidates.length === 1 && !hasSay) return candidates[0];
  return askPolicy(scope, SELECT_CANDIDATE, task, candidates) as WorkerState | undefined;
}

/** Chooses for a root-ish task among the candidates, all of which have an open slot. */
export function chooseForSlot(
  scope: KernelScope,
  task: TaskState,
  candidates: readonly WorkerState[],
): WorkerState | undefined {
  if (candidates.length === 0) return undefined;
  return askPolicy(scope, SELECT_FOR_SLOT, task, candidates) as WorkerState | undefined;
}

/** Asks `pickFromPool`, which looks at idle workers as long as there are any. */
export function chooseFromPool(scope: KernelScope, task: TaskState): WorkerState | undefined {
  return askPolicy(scope, PICK_FROM_POOL, task) as WorkerState | undefined;
}

/** Candidates by ascending rank, as `pickFromPool` expects a pool. */
class CandidatePool implements WorkerPool {
  private readonly workers: readonly WorkerState[];

  constructor(candidates: readonly WorkerState[]) {
    this.workers = candidates.toSorted(byRank);
  }

  get size(): number {
    return this.workers.length;
  }

  at(k: number): WorkerView | undefined {
    return this.workers[k];
  }

  [Symbol.iterator](): Iterator<WorkerView> {
    return this.workers[Symbol.iterator]();
  }
}

/** A task that may run anywhere and needs nothing, for a policy with `pickFromPool`. */
const PICK_FROM_POOL: Question<'workerSelection', TaskState, WorkerView | undefined> = {
  slot: 'workerSelection',
  ask: (policy, scope, task) => {
    const { cluster } = scope;
    const pool = cluster.idle.size > 0 ? cluster.idle : cluster.running;
    if (policy.pickFromPool !== undefined) return policy.pickFromPool(task, pool, cluster);
    return selectBest(policy, scope, task, [...pool]);
  },
  refuse: refuseWorker,
};

/** Which of these workers computes the task. */
type CandidateQuestion = Question<
  'workerSelection',
  TaskState,
  WorkerView | undefined,
  readonly WorkerState[]
>;

/** A root-ish task among the workers with an open slot, which are the candidates. */
const SELECT_FOR_SLOT: CandidateQuestion = {
  slot: 'workerSelection',
  ask: (policy, scope, task, candidates) => {
    if (policy.pickFromPool === undefined || task.dependencies.length > 0) {
      return selectBest(policy, scope, task, candidates);
    }
    return policy.pickFromPool(task, new CandidatePool(candidates), scope.cluster);
  },
  refuse: (answer, scope, task) =>
    refuseWorker(answer, scope, task) ??
    (answer === undefined || answer.openSlots > 0
      ? undefined
      : `chose ${answer.address} for ${task.key}, which has no open slot`),
};

const SELECT_CANDIDATE: CandidateQuestion = {
  slot: 'workerSelection',
  ask: (policy, scope, task, candidates) => selectBest(policy, scope, task, candidates),
  refuse: (answer, scope, task) =>
    refuseWorker(answer, scope, task) ?? refuseRestricted(answer, scope, task),
};

/** `score` chooses among the candidates; `select` may name any worker, and must not break restrictions. */
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
    return policy.select(task, admitted.toSorted(byRank), inputs.missingBytes, cluster);
  }
  const byLoad = task.dependencies.length === 0 && policy.pickFromPool === undefined;
  let best: WorkerState | undefined;
  let bestScore = 0;
  for (const worker of admitted) {
    const score = policy.score(task, worker, inputs.missingBytes(worker), cluster);
    if (!Number.isFinite(score)) {
      throw new RangeError(`score of worker ${worker.address} for task ${task.key} is ${score}`);
    }
    if (best === undefined || comesBefore(task, worker, score, best, bestScore, byLoad)) {
      best = worker;
      bestScore = score;
    }
  }
  return best;
}

/**
 * Score, then stored bytes, then rank. For an actor the number of actors comes before all that. For a task
 * without inputs `byLoad` puts the load of the workers before their stored bytes.
 */
function comesBefore(
  task: TaskState,
  worker: WorkerState,
  score: number,
  best: WorkerState,
  bestScore: number,
  byLoad: boolean,
): boolean {
  if (task.isActor && worker.actors.size !== best.actors.size) {
    return worker.actors.size < best.actors.size;
  }
  if (score !== bestScore) return score < bestScore;
  if (byLoad && worker.load !== best.load) return worker.load < best.load;
  if (worker.nbytes !== best.nbytes) return worker.nbytes < best.nbytes;
  return worker.rank < best.rank;
}

function byRank(a: WorkerState, b: WorkerState): number {
  return a.rank - b.rank;
}

export function refuseWorker(
  answer: WorkerView | undefined,
  { cluster }: KernelScope,
  task: TaskState,
): string | undefined {
  if (answer === undefined) return undefined;
  // It may be anything: policies are not checked before.
  const given = answer as Partial<WorkerView> | null;
  if (cluster.workersByRank[given?.rank as number] !== answer) {
    return typeof given?.address === 'string'
      ? `chose ${given.address} for ${task.key}, which is not a registered worker`
      : `chose ${nameAnswer(answer)} for ${task.key}, instead of one of the workers that it was given`;
  }
  if (answer.status === 'running') return undefined;
  return `chose ${answer.address} for ${task.key}, which is ${answer.status}`;
}
