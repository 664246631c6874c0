import type { Reach, ScoringSelection, WorkerPool, WorkerSelection } from '../api/policies.ts';
import type { WorkerView } from '../api/views.ts';
import type { ReplicaLocations } from '../messages/to-worker.ts';
import type { ClusterState } from '../state/cluster.ts';
import { nbytesOf } from '../state/relations.ts';
import type { TaskState, WorkerState } from '../state/task.ts';
import type { SmallSet } from '../util/collections.ts';
import { empty } from '../util/values.ts';
import { askPolicy, nameAnswer, type Question } from './ask-policy.ts';
import type { Placement } from './ports.ts';
import { isLoose, suitableWorkers, validWorkers } from './restrictions.ts';
import { addScores } from './rules.ts';
import type { KernelScope } from './scope.ts';

// Which worker computes a task: restrictions and holders of inputs narrow the workers down, the
// policies choose among them, and ties go by a fixed rule. Source: Dask's `decide_worker`.

/** Chooses a worker for a task whose inputs are all there and that no rule holds back. O(dependencies + their replicas). */
export function placeTask(scope: KernelScope, task: TaskState): Placement {
  if (scope.rules.isHeld(task)) return 'no-worker';
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
  if (task.usedWorkers !== undefined && suitableWorkers(scope.cluster, task) !== undefined)
    return false;
  if (scope.rules.isFiltered(task)) return false;
  return askPolicy(scope, IS_ROOTISH, task);
}

/** Chooses a worker for a root-ish task; undefined when it should wait. */
function placeRootish(scope: KernelScope, task: TaskState): WorkerState | undefined {
  if (!selectionPlacesRootish(scope, task)) {
    return askPolicy(scope, SELECT_ROOTISH, task) as WorkerState | undefined;
  }
  scope.inputs.locate(scope.cluster, task, copiesMax(reachFor(scope, task)));
  return chooseForSlot(scope, task, slotCandidates(scope, task));
}

/** True when the queuing policy decides only when a root-ish task starts, and worker selection, or rules with scores, where. */
export function selectionPlacesRootish({ ports, rules }: KernelScope, task: TaskState): boolean {
  if (ports.queuing.policy.leavesPlacement !== true) return false;
  return ports.workerSelection.policy.placesRootish !== false || rules.isScored(task);
}

/** Rules score all workers that may run a task. */
function reachFor({ ports, rules }: KernelScope, task: TaskState): Reach | 'all' | undefined {
  return rules.isScored(task) ? 'all' : ports.workerSelection.policy.reach;
}

/** Workers with an open slot; within the reach of the policy if it has one. The inputs are located. */
export function slotCandidates(scope: KernelScope, task: TaskState): readonly WorkerState[] {
  const { openSlots } = scope.cluster;
  const reach = reachFor(scope, task);
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
  const { cluster, rules } = scope;
  if (cluster.running.size === 0) return undefined;
  scope.inputs.locate(cluster, task, copiesMax(reachFor(scope, task)));
  if (rules.isFiltered(task) && !rules.isScored(task)) {
    // Most choices are ones that no rule refuses: the rules are asked about one worker, and not about all of them.
    const worker = chooseAmong(scope, task, suitableWorkers(cluster, task));
    if (worker !== undefined && rules.allows(task, worker)) return worker;
  }
  return chooseAmong(scope, task, validWorkers(cluster, task));
}

function chooseAmong(
  scope: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
): WorkerState | undefined {
  if (isUnconstrained(scope, task, valid)) return chooseFromPool(scope, task);
  return chooseCandidate(scope, task, candidatesFor(scope, task, valid));
}

/**
 * True when the policy places the task by `pickFromPool`: it has one, the task needs nothing and may
 * run anywhere, and all workers are running (Dask compares start times when one is paused).
 */
export function isUnconstrained(
  { cluster, ports, rules }: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
): boolean {
  if (ports.workerSelection.policy.pickFromPool === undefined) return false;
  if (rules.isScored(task)) return false;
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
  const reach = reachFor(scope, task);
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
    typeof answer === 'boolean'
      ? undefined
      : `answered isRootish with ${nameAnswer(answer)} instead of true or false`,
};

const SLOT_LIMIT: Question<'queuing', WorkerState, number> = {
  slot: 'queuing',
  ask: (policy, _scope, worker) => policy.slotLimit(worker),
  refuse: (limit, _scope, worker) =>
    typeof limit === 'number' && limit >= 1
      ? undefined
      : `gave worker ${worker.address} ${nameAnswer(limit)} as its slot limit; ` +
        'allowed are numbers from 1 on, and Infinity for no limit',
};

const SELECT_ROOTISH: Question<'queuing', TaskState, WorkerView | undefined> = {
  slot: 'queuing',
  ask: (policy, { cluster }, task) => policy.selectRootish(task, cluster),
  refuse: refuseWorker,
};

// Asks the worker selection policy which of the candidates computes a task.

/** Chooses among the candidates; undefined when the policy wants none of them. */
function chooseCandidate(
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
function chooseForSlot(
  scope: KernelScope,
  task: TaskState,
  candidates: readonly WorkerState[],
): WorkerState | undefined {
  if (candidates.length === 0) return undefined;
  return askPolicy(scope, SELECT_FOR_SLOT, task, candidates) as WorkerState | undefined;
}

/** Asks `pickFromPool`, which looks at idle workers as long as there are any. */
function chooseFromPool(scope: KernelScope, task: TaskState): WorkerState | undefined {
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
    const isScored = scope.rules.isScored(task);
    if (policy.pickFromPool === undefined || isScored || task.dependencies.length > 0) {
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
      : candidates.filter((worker) => isAdmitted(policy.admits?.(task, worker)));
  if (admitted.length === 0) return undefined;
  const sums = combinedScores(policy, scope, task, admitted);
  if (policy.select !== undefined) {
    const least = sums === undefined ? 0 : Math.min(...sums);
    const chosen = sums === undefined ? admitted : admitted.filter((_, at) => sums[at] === least);
    return policy.select(task, chosen.toSorted(byRank), inputs.missingBytes, cluster);
  }
  const byLoad = task.dependencies.length === 0 && policy.pickFromPool === undefined;
  let best: WorkerState | undefined;
  let bestScore = 0;
  for (let index = 0; index < admitted.length; index++) {
    const worker = admitted[index] as WorkerState;
    const score = sums?.[index] ?? scoreOf(policy, scope, task, worker);
    if (best === undefined || comesBefore(task, worker, score, best, bestScore, byLoad)) {
      best = worker;
      bestScore = score;
    }
  }
  return best;
}

function scoreOf(
  policy: ScoringSelection,
  { cluster, inputs }: KernelScope,
  task: TaskState,
  worker: WorkerState,
): number {
  const score = policy.score(task, worker, inputs.missingBytes(worker), cluster);
  if (Number.isFinite(score)) return score;
  throw new RangeError(
    `score of worker ${worker.address} for task ${task.key} is ${nameAnswer(score)} instead of a finite number`,
  );
}

/** The sums of the scores of the rules and of the policy; undefined when no rule scores the task. The inputs are located. */
export function combinedScores(
  policy: WorkerSelection,
  scope: KernelScope,
  task: TaskState,
  workers: readonly WorkerState[],
): readonly number[] | undefined {
  const { rules } = scope;
  if (!rules.isScored(task)) return undefined;
  const sums = rules.scores(task, workers);
  if (policy.score !== undefined) {
    const own = workers.map((worker) => scoreOf(policy, scope, task, worker));
    addScores(sums, own, 1);
  }
  return sums;
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

function isAdmitted(answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer;
  throw new TypeError(`admits answered ${nameAnswer(answer)} instead of true or false`);
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
  // It may be anything: policies are not checked before.
  const given = answer as Partial<WorkerView> | null;
  if (cluster.workersByRank[given?.rank as number] !== answer) {
    return typeof given?.address === 'string'
      ? `chose ${given.address} for ${task.key}, which is not a registered worker; choose one of those that it was given`
      : `chose ${nameAnswer(answer)} for ${task.key}, instead of one of the workers that it was given`;
  }
  if (answer.status === 'running') return undefined;
  return `chose ${answer.address} for ${task.key}, which is ${answer.status}`;
}

const NOT_A_HOLDER = -1;

/**
 * Which running workers hold inputs of a task, and how many bytes each worker lacks.
 *
 * One pass over the inputs and their replicas into a reused column: O(dependencies + replicas),
 * however many candidates there are. (Dask sums over all inputs for each candidate.)
 */
export class InputTable {
  /** Ranks of the holders when they were met: workers may move to other ranks afterwards. */
  private readonly ranks: number[] = [];
  /** Running workers that hold at least one input, in the order in which they were met. */
  readonly holders: WorkerState[] = [];
  /** Bytes of the inputs by rank of the worker that holds them. */
  private readonly localBytes: number[] = [];
  private totalBytes = 0;

  /** @param copiesMax - inputs with more copies are left out; they are everywhere */
  locate(cluster: ClusterState, task: TaskState, copiesMax = Infinity): void {
    this.clear();
    while (this.localBytes.length < cluster.workersByRank.length) {
      this.localBytes.push(NOT_A_HOLDER);
    }
    for (const dependency of task.dependencies) {
      if (dependency.whoHas.size > copiesMax) continue;
      const nbytes = nbytesOf(cluster, dependency);
      this.totalBytes += nbytes;
      for (const worker of dependency.whoHas.items) this.credit(worker, nbytes);
    }
  }

  /** Bytes that would have to be fetched to run the task there. Can be handed on without this table. */
  readonly missingBytes = (worker: WorkerView): number =>
    this.totalBytes - Math.max(0, this.localBytes[worker.rank] ?? 0);

  clear(): void {
    for (const rank of this.ranks) this.localBytes[rank] = NOT_A_HOLDER;
    empty(this.ranks);
    empty(this.holders);
    this.totalBytes = 0;
  }

  private credit(worker: WorkerState, nbytes: number): void {
    if (worker.status !== 'running') return;
    const before = this.localBytes[worker.rank] as number;
    if (before === NOT_A_HOLDER) {
      this.holders.push(worker);
      this.ranks.push(worker.rank);
    }
    this.localBytes[worker.rank] = Math.max(0, before) + nbytes;
  }
}

// Where results are, for messages.

const NO_LOCATIONS: ReplicaLocations = { keys: [], nbytes: [], whoHas: [] };

/**
 * Says where the inputs of tasks are. Tasks that wait for the same single result are sent one after the
 * other, and share what is said about it.
 */
export class InputLocations {
  private task: TaskState | undefined = undefined;
  private whoHas: SmallSet<WorkerState> | undefined = undefined;
  private nbytes = -1;
  private latest = NO_LOCATIONS;

  /** O(dependencies + their replicas). */
  of(dependencies: readonly TaskState[]): ReplicaLocations {
    if (dependencies.length !== 1) {
      return dependencies.length === 0 ? NO_LOCATIONS : replicaLocations(dependencies);
    }
    const task = dependencies[0] as TaskState;
    const { whoHas, nbytes } = task;
    if (task !== this.task || whoHas !== this.whoHas || nbytes !== this.nbytes) {
      this.task = task;
      this.whoHas = whoHas;
      this.nbytes = nbytes;
      this.latest = replicaLocations(dependencies);
    }
    return this.latest;
  }
}

/** The places of these results, for a message. */
export function replicaLocations(tasks: readonly TaskState[]): ReplicaLocations {
  const [only] = tasks;
  if (tasks.length === 1 && only !== undefined) {
    return { keys: [only.key], nbytes: [only.nbytes], whoHas: [addresses(only.whoHas.items)] };
  }
  return {
    keys: tasks.map(keyOf),
    nbytes: tasks.map(sizeOf),
    whoHas: tasks.map(holdersOf),
  };
}

function keyOf(task: TaskState): string {
  return task.key;
}

function sizeOf(task: TaskState): number {
  return task.nbytes;
}

function holdersOf(task: TaskState): readonly string[] {
  return addresses(task.whoHas.items);
}

function addresses(workers: readonly WorkerState[]): readonly string[] {
  const [first] = workers;
  // Most results have one holder; its list is made once.
  if (workers.length === 1 && first !== undefined) return first.soleAddress;
  return workers.map((worker) => worker.address);
}

// The candidates of a policy that bounds its reach: a handful, however large the cluster is.

/** Inputs with more copies than this do not make their holders candidates. */
const COMMON_COPIES = 32;

/**
 * The best holders and the least busy others, in no order that matters, in an array that is reused.
 * O(holders * reach + reach²), and O(valid workers * reach) when the task is restricted.
 *
 * @param valid - running workers that satisfy the restrictions, not empty; undefined: all of them do
 */
function reachedWorkers(
  { cluster, inputs, reached }: KernelScope,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
  reach: Reach,
): readonly WorkerState[] {
  empty(reached);
  if (valid !== undefined && valid.size <= reach.holders + reach.others) {
    for (const worker of valid) reached.push(worker);
    return reached;
  }
  const isBetter = (a: WorkerState, b: WorkerState): boolean => holdsMore(inputs, a, b);
  for (const holder of inputs.holders) {
    if (valid?.has(holder) === false) continue;
    keepBest(reached, holder, reach.holders, isBetter);
  }
  addOthers(reached, cluster, task, valid, reach.others);
  // There are neither holders nor free candidates: any worker is better than none.
  if (reached.length === 0) addOthers(reached, cluster, task, valid, 1);
  return reached;
}

function addOthers(
  reached: WorkerState[],
  cluster: ClusterState,
  task: TaskState,
  valid: ReadonlySet<WorkerState> | undefined,
  count: number,
): void {
  const others: WorkerState[] = [];
  if (valid === undefined) {
    cluster.openSlots.smallestInto(others, count);
    // The others are full; those whose turn it is stand for all of them.
    for (let turn = 0; others.length < count && turn < count; turn++) {
      const worker = cluster.running.at((cluster.assignedCount + turn) % cluster.running.size);
      if (worker !== undefined && !others.includes(worker)) others.push(worker);
    }
  } else {
    const isLess = (a: WorkerState, b: WorkerState): boolean => isFreer(task, a, b);
    for (const worker of valid) keepBest(others, worker, count, isLess);
  }
  for (const worker of others) if (!reached.includes(worker)) reached.push(worker);
}

/** Puts a worker into an ascending list of at most `size`. */
function keepBest(
  best: WorkerState[],
  worker: WorkerState,
  size: number,
  comesBefore: (a: WorkerState, b: WorkerState) => boolean,
): void {
  let at = best.length;
  while (at > 0 && comesBefore(worker, best[at - 1] as WorkerState)) at--;
  if (at >= size) return;
  best.splice(at, 0, worker);
  if (best.length > size) best.pop();
}

function holdsMore(inputs: InputTable, a: WorkerState, b: WorkerState): boolean {
  const bytes = inputs.missingBytes(a) - inputs.missingBytes(b);
  return bytes === 0 ? isLessBusy(a, b) : bytes < 0;
}

function isFreer(task: TaskState, a: WorkerState, b: WorkerState): boolean {
  const isFree = hasFreeResources(task, a);
  return isFree === hasFreeResources(task, b) ? isLessBusy(a, b) : isFree;
}

function isLessBusy(a: WorkerState, b: WorkerState): boolean {
  const load = a.processing.size / a.threadCount - b.processing.size / b.threadCount;
  return load === 0 ? a.rank < b.rank : load < 0;
}

/** True when the resources that a task asks for are free on a worker; a task without any finds them everywhere. */
function hasFreeResources(task: TaskState, worker: WorkerState): boolean {
  for (const [resource, amount] of task.restrictions?.resources ?? []) {
    const used = worker.usedResources.get(resource) ?? 0;
    if (used + amount > (worker.resources.get(resource) ?? 0)) return false;
  }
  return true;
}
