import {
  type ActiveMemoryManagerPolicy,
  type AmmMoves,
  type AmmPolicyFailure,
  type AmmRefusals,
  type AmmRound,
  type AmmView,
  type Bridge,
  CANDIDATES_MAX,
  type ClusterView,
  type DecisionCandidate,
  type DecisionSink,
  type LoadedExtension,
  type MemoryMeasure,
  messageOf,
  type MoveReplicas,
  type PendingReplicas,
  type PluginDecision,
  type RefusalReason,
  type Suggestion,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { isTrusted, original, readOnly } from '../../core/shared/read-only.ts';
import { ComputedMap } from '../../core/util/collections.ts';
import { IndexedHeap } from '../../core/util/heaps.ts';
import { countOf, SHOWN } from '../../core/util/values.ts';
import { NO_WORKERS, WorkerList } from './movement.ts';

/** Suggestions of a policy in one round, at most; a policy with more is taken for endless. */
const SUGGESTIONS_MAX = 1_000_000;
/** Time that one policy has in a round. */
const ROUND_MS_MAX = 1000;
/** Suggestions between two readings of the clock. */
const SUGGESTIONS_PER_LOOK = 1024;

/** Between rounds, unless the parts say otherwise. */
const INTERVAL_MS = 2000;

/** The pending replicas between rounds, as policies see them. */
const NOTHING: ReadonlyMap<TaskView, PendingReplicas> = new Map();

/** Copies to make and to drop, by worker. */
export type ReplicaMoves = Pick<MoveReplicas, 'acquire' | 'remove'>;

type Policy = ActiveMemoryManagerPolicy<unknown>;

/** The part of `AmmView` that is about rounds: all that the policies of this package use. */
type RoundView = Omit<AmmView, keyof Surroundings>;
type Surroundings = Pick<
  AmmView,
  'running' | 'start' | 'stop' | 'clock' | 'log' | 'workersToClose' | 'retire'
>;

interface MemoryManagerParts {
  readonly cluster: () => ClusterView;
  /** May change between rounds. */
  readonly measure: MemoryMeasure;
  /** Milliseconds between rounds, for policies that want to know. Default: 2000. */
  readonly intervalMs?: number;
  readonly nowMs: () => number;
  readonly decisions?: DecisionSink;
  /** Has the kernel do it. Not called when there is nothing to do. */
  readonly enact: (moves: ReplicaMoves) => void;
  /** A policy has had its round, or failed in it; the other policies continue. */
  readonly judge: (policy: string, failure?: YardmasterError) => void;
  /** Calls a policy, and has it named when that takes long. Default: only calls it. */
  readonly timed?: Bridge['timed'];
  /** The replicas that are under way, shared by the managers of one scheduler. Default: its own. */
  readonly book?: ReplicaBook;
}

/**
 * Drives the policies of the Active Memory Manager and decides which of their suggestions are
 * harmless. Rules and their order: Dask `active_memory_manager.py`, with the differences that a policy
 * which throws ends only its own round, that requests are remembered until they are met, and that
 * ties between workers go to the lowest rank.
 */
export class MemoryManager implements RoundView {
  [SHOWN]: object | 'manager' = 'manager';
  /** The view for policies that are not part of this package. */
  view: AmmView = readOnly<RoundView>(this) as AmmView;
  readonly policies: Set<Policy> = new PolicySet(this);
  readonly workersMemory: ReadonlyMap<WorkerView, number>;
  private readonly book: ReplicaBook;
  /** Filled anew in each round in which something is suggested or looked at. */
  private loads: WorkerLoads | undefined;
  private areLoadsFresh = false;
  private transferTime: TransferTime = { nowMs: 0, bandwidth: 1 };
  private isRunning = false;
  private tally = new RoundTally();
  private hasRun = false;
  /** By name of the policy. */
  readonly moved = new Map<string, { -readonly [Field in keyof AmmMoves]: AmmMoves[Field] }>();
  /** The newest refusal that was recorded about a task: the same one is not recorded again. */
  private readonly recordedRefusals = new WeakMap<TaskView, string>();

  constructor(private readonly parts: MemoryManagerParts) {
    this.book = parts.book ?? new ReplicaBook();
    this.workersMemory = new WorkersMemory(() =>
      this.isRunning ? this.loadsOfRound() : undefined,
    );
  }

  get cluster(): ClusterView {
    return this.parts.cluster();
  }

  get scheduler(): ClusterView {
    return this.parts.cluster();
  }

  get pending(): ReadonlyMap<TaskView, PendingReplicas> {
    return this.isRunning ? this.book : NOTHING;
  }

  get intervalMs(): number {
    return this.parts.intervalMs ?? INTERVAL_MS;
  }

  get measure(): MemoryMeasure {
    return this.parts.measure;
  }

  copies(task: TaskView): number {
    return task.whoHas.size + this.book.coming(task).size - this.book.going(task).size;
  }

  /** The outcome of the newest round; undefined before the first. */
  get lastRound(): AmmRound | undefined {
    return this.hasRun ? this.tally.result : undefined;
  }

  /**
   * One round: every policy in its order, then one stimulus for all that was accepted.
   * @throws YardmasterError `ERR_POLICY` when a policy calls it
   */
  runOnce(): AmmRound {
    if (this.isRunning) {
      throw new YardmasterError(
        'ERR_POLICY',
        'a round of the Active Memory Manager is running; a policy cannot start another one',
      );
    }
    this.isRunning = true;
    this.hasRun = true;
    const tally = (this.tally = new RoundTally());
    const timed = this.parts.timed ?? ((_subject, call) => call());
    this.transferTime = { nowMs: this.parts.nowMs(), bandwidth: this.cluster.costs.bandwidth };
    try {
      this.book.beginRound(this.cluster, this.transferTime.nowMs, () => this.loadsOfRound());
      for (const policy of [...this.policies]) {
        if (!this.policies.has(policy)) continue;
        const subject = `the policy "${policy.constructor.name}" of the Active Memory Manager`;
        timed(subject, () => this.drive(policy));
      }
      if (tally.accepted > 0) this.parts.enact(this.moves());
    } finally {
      this.isRunning = false;
      this.areLoadsFresh = false;
      this.book.endRound();
    }
    return tally.result;
  }

  /** Lets one policy speak. What it throws ends its round; what was accepted stands. */
  private drive(policy: Policy): void {
    let generator: SuggestionGenerator | undefined;
    const { failures } = this.tally;
    const failedBefore = failures.length;
    try {
      const returned: unknown = policy.run(managerFor(policy, this));
      checkGenerator(returned);
      generator = returned;
      this.converse(policy, generator);
    } catch (cause) {
      const message = messageOf(cause);
      this.fail(policy, `threw: ${message}; what it suggested before stands`, cause);
    } finally {
      this.end(policy, generator);
    }
    if (failures.length === failedBefore) this.parts.judge(policy.constructor.name);
  }

  private converse(policy: Policy, generator: SuggestionGenerator): void {
    const deadlineMs = this.parts.nowMs() + ROUND_MS_MAX;
    let step = silenced(generator.next());
    for (let count = 1; step.done !== true; count++) {
      const read = readSuggestion(step, this.cluster, this.loadsOfRound());
      this.tally.suggested++;
      const chosen = this.answer(read, policy);
      const isLate = count % SUGGESTIONS_PER_LOOK === 0 && this.parts.nowMs() > deadlineMs;
      if (count >= SUGGESTIONS_MAX || isLate) {
        this.fail(
          policy,
          `made ${count} suggestions in one round without an end; it continues in the next round`,
        );
        return;
      }
      step = silenced(
        generator.next(chosen && (isTrusted(policy.constructor) ? chosen : readOnly(chosen))),
      );
    }
  }

  /** So that `finally` of the policy runs, however its round ended. */
  private end(policy: Policy, generator: SuggestionGenerator | undefined): void {
    try {
      silenced(generator?.return());
    } catch (cause) {
      const message = messageOf(cause);
      this.fail(policy, `threw when it was ended: ${message}`, cause);
    }
  }

  /** The worker that was chosen for a suggestion; undefined: it is refused. */
  private answer(read: ReadSuggestion | RefusedSuggestion, policy: Policy): WorkerView | undefined {
    const chosen = 'reason' in read ? read.reason : this.consider(read, policy);
    if (typeof chosen !== 'string') return chosen;
    this.refuse('reason' in read ? read.suggestion : read, chosen, policy);
    return undefined;
  }

  private consider(suggestion: ReadSuggestion, policy: Policy): WorkerView | RefusalReason {
    const { task, candidates } = suggestion;
    const loads = this.loadsOfRound();
    const nbytes = Math.max(0, task.nbytes);
    if (suggestion.op === 'replicate') {
      if (suggestion.beyondPending !== true && task.state === 'memory') {
        const worker = this.book.claim(task, candidates);
        if (worker !== undefined) this.tally.underWay++;
        if (worker !== undefined) return worker;
      }
      const coming = this.book.coming(task);
      const load = chooseRecipient(loads, this.cluster.running, suggestion, coming);
      if (typeof load === 'string') return load;
      this.accept(suggestion, load, policy);
      this.book.addReplicate(task, load, this.transferTime);
      loads.setMemory(load, load.memory + nbytes);
      loads.acquire(load, task.key);
      return load.worker;
    }
    const wanted = Math.min(task.replicas, this.cluster.workers.size);
    const load = chooseDropper(loads, suggestion, this.book.going(task), wanted);
    if (typeof load === 'string') return load;
    this.accept(suggestion, load, policy);
    this.book.addDrop(task, load);
    loads.setMemory(load, Math.max(0, load.memory - nbytes));
    loads.remove(load, task.key);
    return load.worker;
  }

  /** Before anything is booked. */
  private accept(suggestion: Suggestion, chosen: WorkerLoad, policy: Policy): void {
    this.tally.accepted++;
    this.count(suggestion, policy.constructor.name);
    if (this.parts.decisions?.isRecording !== true) return;
    this.recordedRefusals.delete(suggestion.task);
    this.record(policy, explainMove(suggestion, chosen, this.loadsOfRound()));
  }

  private count({ op, task }: Suggestion, policy: string): void {
    const moves = this.moved.get(policy) ?? {
      ...{ policy, copies: 0, copiedBytes: 0, drops: 0, droppedBytes: 0 },
    };
    this.moved.set(policy, moves);
    const isCopy = op === 'replicate';
    moves[isCopy ? 'copies' : 'drops']++;
    moves[isCopy ? 'copiedBytes' : 'droppedBytes'] += Math.max(0, task.nbytes);
  }

  /** Does no harm: it is counted, and recorded for `why` unless the last record says the same. */
  private refuse(suggestion: Suggestion, reason: RefusalReason, policy: Policy): void {
    const { name } = policy.constructor;
    this.tally.refuse(suggestion, reason, name);
    const { task, op } = suggestion;
    if (this.parts.decisions?.isRecording !== true || reason === 'unknown-task') return;
    const text = `${name} ${op} ${reason}`;
    if (this.recordedRefusals.get(task) === text) return;
    this.recordedRefusals.set(task, text);
    this.record(policy, explainRefusal(suggestion, reason));
  }

  private record(policy: Policy, decision: PluginDecision): void {
    this.parts.decisions?.record({ policy: policy.constructor.name, ...decision });
  }

  /** O(workers) when the round first needs it, so that a round with nothing to do costs nothing. */
  private loadsOfRound(): WorkerLoads {
    if (this.areLoadsFresh && this.loads !== undefined) return this.loads;
    if (this.loads?.measure !== this.measure) {
      this.loads = new WorkerLoads(this.cluster, this.measure);
    }
    this.areLoadsFresh = true;
    return this.loads.refresh();
  }

  /** The accepted suggestions, by worker in the order of ranks. */
  private moves(): ReplicaMoves {
    const acquire: ReplicaMoves['acquire'][number][] = [];
    const remove: ReplicaMoves['remove'][number][] = [];
    for (const load of this.loadsOfRound().takeTouched()) {
      const { address } = load.worker;
      if (load.acquire !== undefined) acquire.push({ worker: address, keys: load.acquire });
      if (load.remove !== undefined) remove.push({ worker: address, keys: load.remove });
    }
    return { acquire, remove };
  }

  private fail({ constructor }: Policy, what: string, cause?: unknown): void {
    const policy = constructor.name;
    this.tally.failures.push({ policy, message: what });
    const message = `policy "${policy}" of the Active Memory Manager ${what}`;
    const options = cause === undefined ? {} : { cause };
    this.parts.judge(policy, new YardmasterError('ERR_POLICY', message, { policy }, options));
  }
}

/** Ignores the end of the promise that an asynchronous `run` has returned, which is refused. */
function silenced<T>(step: T): T {
  if (step instanceof Promise) step.catch(() => undefined);
  return step;
}

/** The policies of this package are trusted with the state itself. */
function managerFor(policy: Policy, manager: MemoryManager): AmmView {
  return isTrusted(policy.constructor) ? (manager as RoundView as AmmView) : manager.view;
}

/** Gives each added policy its manager, whichever caller adds it. */
class PolicySet extends Set<Policy> {
  constructor(private readonly manager: MemoryManager) {
    super();
  }

  /** Policies are given the set itself: they may add others, and leave. */
  get [SHOWN](): this {
    return this;
  }

  /** @throws YardmasterError `ERR_PLUGIN_LOAD` for what is no policy */
  override add(policy: Policy): this {
    checkPolicy(policy);
    policy.manager = managerFor(policy, this.manager);
    return super.add(policy);
  }
}

/** Time that every copy has to arrive, besides twice that of the transfer. */
const GRACE_MS = 30_000;

/** Copies of one task that were asked for. */
interface Request {
  readonly task: TaskView;
  workers: WorkerList;
  /** Number of workers, from the front, that were requested before this round. */
  openAtStart: number;
  /** Of these, what was suggested again in this round: all before the position, and some behind it. */
  claimedBefore: number;
  claimed: Set<WorkerView> | undefined;
  /** The time at which they count as lost on their way. */
  expiresMs: number;
}

/** The figures from which the time of a transfer is estimated. */
interface TransferTime {
  readonly nowMs: number;
  /** Bytes per second. */
  readonly bandwidth: number;
}

/**
 * The workers that will receive or lose copies, by task: within a round all accepted suggestions,
 * between rounds the requested copies that have not arrived. So a request that takes longer than
 * the interval is neither repeated nor given to another worker as well. The managers of a scheduler
 * share one; only one of them runs at a time.
 *
 * A round may drop a copy of every task there is, so drops are kept by the dense ids of tasks,
 * without an object or a hash for each.
 */
export class ReplicaBook extends ComputedMap<TaskView, PendingReplicas> {
  /** By the ids of tasks. */
  private readonly requests = new Map<number, Request>();
  /** By the ids of tasks; undefined everywhere between rounds. */
  private drops: (WorkerList | undefined)[] = [];
  private readonly dropped: TaskView[] = [];

  /** Workers that will receive a copy. */
  coming(task: TaskView): WorkerList {
    if (this.requests.size === 0) return NO_WORKERS;
    const request = this.requests.get(task.id);
    return request?.task === task ? request.workers : NO_WORKERS;
  }

  /** Workers that will lose theirs. */
  going(task: TaskView): WorkerList {
    return this.drops[task.id] ?? NO_WORKERS;
  }

  /** A copy was asked for. It has twice the time that all that this worker waits for needs. */
  addReplicate(task: TaskView, load: WorkerLoad, { nowMs, bandwidth }: TransferTime): void {
    load.queuedBytes += Math.max(0, task.nbytes);
    const expiresMs = nowMs + GRACE_MS + (2000 * load.queuedBytes) / bandwidth;
    const known = this.requests.get(task.id);
    if (known?.task === task) {
      known.workers = withWorker(known.workers, load);
      known.expiresMs = Math.max(known.expiresMs, expiresMs);
    } else {
      // The entry is of a forgotten task, whose id this task has got.
      const unclaimed = { openAtStart: 0, claimedBefore: 0, claimed: undefined };
      this.requests.set(task.id, { task, workers: load.alone, ...unclaimed, expiresMs });
    }
  }

  /**
   * A copy is suggested that was asked for in an earlier round and is still under way. Each counts once
   * a round. O(1) without candidates, else O(candidates + copies under way).
   *
   * @returns the worker that it is under way to; undefined when there is none (left)
   */
  claim(task: TaskView, candidates: readonly WorkerView[] | undefined): WorkerView | undefined {
    if (this.requests.size === 0) return undefined;
    const request = this.requests.get(task.id);
    if (request?.task !== task) return undefined;
    const { openAtStart, claimed, workers } = request;
    while (request.claimedBefore < openAtStart) {
      const worker = workers.items[request.claimedBefore] as WorkerView;
      if (claimed?.has(worker) !== true) break;
      request.claimedBefore++;
    }
    const named = candidates === undefined ? undefined : new Set(candidates);
    for (let index = request.claimedBefore; index < openAtStart; index++) {
      const worker = workers.items[index] as WorkerView;
      if (claimed?.has(worker) === true || named?.has(worker) === false) continue;
      if (candidates === undefined) request.claimedBefore = index + 1;
      else (request.claimed ??= new Set()).add(worker);
      return worker;
    }
    return undefined;
  }

  addDrop(task: TaskView, load: WorkerLoad): void {
    if (task.id >= this.drops.length) this.grow(task.id + 1);
    const known = this.drops[task.id];
    if (known === undefined) this.dropped.push(task);
    this.drops[task.id] = withWorker(known ?? NO_WORKERS, load);
  }

  /**
   * Begins a round: forgets requests that have arrived, that have lost their senders or recipients,
   * or that are late, and counts the others as memory of their recipients. O(requests under way).
   *
   * @param loads - called when requests are under way
   */
  beginRound({ running }: ClusterView, nowMs: number, loads: () => WorkerLoads): void {
    for (const [id, request] of this.requests) {
      const { task, workers, expiresMs } = request;
      const isOpen = (worker: WorkerView): boolean =>
        running.has(worker) && !worker.hasWhat.has(task);
      const open = task.state === 'memory' && nowMs < expiresMs ? workers.items.filter(isOpen) : [];
      if (open.length === 0) this.requests.delete(id);
      else if (open.length < workers.size) request.workers = new WorkerList(open);
      request.openAtStart = open.length;
      request.claimedBefore = 0;
      request.claimed = undefined;
      for (const worker of open) loads().expect(worker, task.nbytes);
    }
  }

  /** The drops of the round are done; requests stay. */
  endRound(): void {
    for (const { id } of this.dropped) this.drops[id] = undefined;
    this.dropped.length = 0;
  }

  // ---- as policies see it --------------------------------------------------------------------

  get size(): number {
    let size = this.requests.size;
    for (const task of this.dropped) if (this.coming(task).size === 0) size++;
    return size;
  }

  get(task: TaskView): PendingReplicas | undefined {
    const replicate = this.coming(task);
    const drop = this.going(task);
    return replicate.size + drop.size === 0 ? undefined : { replicate, drop };
  }

  override has(task: TaskView): boolean {
    return this.coming(task).size + this.going(task).size > 0;
  }

  override *keys(): MapIterator<TaskView> {
    for (const { task } of this.requests.values()) yield task;
    for (const task of this.dropped) if (this.coming(task).size === 0) yield task;
  }

  *entries(): MapIterator<[TaskView, PendingReplicas]> {
    for (const task of this.keys()) {
      yield [task, { replicate: this.coming(task), drop: this.going(task) }];
    }
  }

  /** Without holes, or the array would become a hash table. */
  private grow(length: number): void {
    const grown = new Array<WorkerList | undefined>(Math.max(length, 2 * this.drops.length));
    grown.fill(undefined);
    for (const { id } of this.dropped) grown[id] = this.drops[id];
    this.drops = grown;
  }
}

function withWorker(list: WorkerList, load: WorkerLoad): WorkerList {
  if (list.size === 0) return load.alone;
  // Lists of one are shared.
  if (list.size === 1) return new WorkerList([...list.items, load.worker]);
  list.add(load.worker);
  return list;
}

const REASONS: Readonly<Record<RefusalReason, string>> = {
  'unknown-task':
    'it is about no task of the cluster; look the task up with cluster.tasks.get(key) in each round',
  'unknown-candidates':
    'none of its candidates is a worker of the cluster; look workers up with cluster.workers.get(address) in each round',
  'not-in-memory': 'the task has no result',
  actor: 'the task is an actor, which is neither copied nor dropped',
  'not-running': 'no candidate is running',
  'no-recipient': 'every running candidate has a copy or gets one',
  'no-holder': 'no candidate has a copy that is not dropped already',
  'last-copy': 'it would be the last copy',
  'replicas-wanted': 'this number of copies was requested (replicas); force: true drops it',
  'in-use': 'a task that reads the copy is processing on every candidate',
  'last-running-copy': 'the other copies are in use on workers that leave',
};

/** Says why in words. */
function refusalText(reason: RefusalReason): string {
  return REASONS[reason];
}

/** Counts what becomes of the suggestions of one round. */
class RoundTally {
  suggested = 0;
  accepted = 0;
  underWay = 0;
  private readonly refusals = new Map<RefusalReason, { count: number; readonly example: string }>();
  readonly failures: AmmPolicyFailure[] = [];

  /** O(1). */
  refuse({ op, task }: Suggestion, reason: RefusalReason, policy: string): void {
    const known = this.refusals.get(reason);
    if (known !== undefined) known.count++;
    else {
      const key = (task as { readonly key?: unknown } | null | undefined)?.key;
      const subject = typeof key === 'string' ? ` "${key}"` : '';
      const example = `${policy}: ${op}${subject} is refused: ${refusalText(reason)}`;
      this.refusals.set(reason, { count: 1, example });
    }
  }

  get result(): AmmRound {
    const { suggested, accepted, underWay, failures } = this;
    const refusals: AmmRefusals[] = [...this.refusals].map(([reason, rest]) => ({
      reason,
      ...rest,
    }));
    refusals.sort((a, b) => b.count - a.count);
    const refused = refusals.reduce((sum, { count }) => sum + count, 0);
    return { suggested, accepted, underWay, refused, refusals, failures };
  }
}

/** A worker within one round. */
export class WorkerLoad {
  /** Bytes, with the effects of all that is pending. */
  memory = 0;
  /** Bytes that were asked for and have not arrived. */
  queuedBytes = 0;
  /** Position in the heap of the emptiest, or -1. */
  place = -1;
  /** Keys that it will receive, and lose. */
  acquire: string[] | undefined = undefined;
  remove: string[] | undefined = undefined;
  private only: WorkerList | undefined = undefined;

  constructor(readonly worker: WorkerView) {}

  /** @param memory - in bytes */
  reset(memory: number): void {
    this.memory = memory;
    this.queuedBytes = 0;
    this.acquire = undefined;
    this.remove = undefined;
  }

  /** The set that has this worker alone; shared by all that need one. */
  get alone(): WorkerList {
    return (this.only ??= new WorkerList([this.worker]));
  }
}

/** One function for each measure: a field that is named by a variable is slow to read. */
const MEMORY_READERS: Readonly<Record<MemoryMeasure, (worker: WorkerView) => number>> = {
  process: ({ memory }) => memory.process,
  managed: ({ memory }) => memory.managed,
  managedTotal: ({ memory }) => memory.managedTotal,
  spilled: ({ memory }) => memory.spilled,
  unmanaged: ({ memory }) => memory.unmanaged,
  unmanagedOld: ({ memory }) => memory.unmanagedOld,
  unmanagedRecent: ({ memory }) => memory.unmanagedRecent,
  optimistic: ({ memory }) => memory.optimistic,
};

/**
 * The memory of all workers within one round, and the running ones as a heap with the emptiest at the
 * top, so that to choose a recipient does not cost O(workers) for every result.
 */
export class WorkerLoads {
  private readonly byRank: WorkerLoad[] = [];
  /** Workers that keys were given to or taken from in this round. */
  private readonly touched: WorkerLoad[] = [];
  /** The running workers; filled when the emptiest is first needed. */
  private readonly heap = new IndexedHeap<WorkerLoad>(byEmptiness);
  private isHeapMade = false;
  private readonly memoryOf: (worker: WorkerView) => number;

  /** Empty until the first {@link refresh}. */
  constructor(
    private readonly cluster: ClusterView,
    readonly measure: MemoryMeasure,
  ) {
    this.memoryOf = MEMORY_READERS[measure];
  }

  /** A round begins: nothing is pending, and memory is as it is. O(workers). */
  refresh(): this {
    const { byRank, memoryOf } = this;
    const { workers } = this.cluster;
    this.touched.length = 0;
    this.heap.clear();
    this.isHeapMade = false;
    // Ranks are dense, so what was there before is replaced or cut off.
    byRank.length = Math.min(byRank.length, workers.size);
    const byArrival = [...workers.values()];
    if (byRank.length < workers.size) byArrival.sort((a, b) => a.rank - b.rank);
    for (const worker of byArrival) {
      let load = byRank[worker.rank];
      if (load?.worker !== worker) byRank[worker.rank] = load = new WorkerLoad(worker);
      load.reset(memoryOf(worker));
    }
    return this;
  }

  /** Undefined for what is no registered worker. O(1). */
  of(worker: WorkerView): WorkerLoad | undefined {
    const load = this.byRank[worker.rank];
    return load?.worker === worker ? load : undefined;
  }

  /** By rank. */
  get all(): readonly WorkerLoad[] {
    return this.byRank;
  }

  /** Those with something to receive or to lose, by rank. */
  takeTouched(): readonly WorkerLoad[] {
    return this.touched.sort((a, b) => a.worker.rank - b.worker.rank);
  }

  acquire(load: WorkerLoad, key: string): void {
    this.touch(load);
    (load.acquire ??= []).push(key);
  }

  remove(load: WorkerLoad, key: string): void {
    this.touch(load);
    (load.remove ??= []).push(key);
  }

  private touch(load: WorkerLoad): void {
    if (load.acquire === undefined && load.remove === undefined) this.touched.push(load);
  }

  /**
   * Adds the bytes that are on their way to a worker. To be called before recipients are chosen.
   */
  expect(worker: WorkerView, nbytes: number): void {
    const load = this.of(worker);
    if (load === undefined || nbytes < 0) return;
    load.memory += nbytes;
    load.queuedBytes += nbytes;
  }

  /** O(log workers). */
  setMemory(load: WorkerLoad, memory: number): void {
    load.memory = memory;
    if (load.place >= 0) this.heap.update(load);
  }

  /**
   * The running worker with the least memory that neither has the result nor gets it; of several the
   * one with the lowest rank. O(1) when the first will do, O(workers) at most.
   */
  emptiest(task: TaskView, excluded: WorkerList): WorkerLoad | undefined {
    if (!this.isHeapMade) this.fillHeap();
    const top = this.heap.peek();
    if (top === undefined || isFree(top.worker, task, excluded)) return top;
    return this.heap.find(({ worker }) => isFree(worker, task, excluded));
  }

  private fillHeap(): void {
    this.isHeapMade = true;
    for (const worker of this.cluster.running) {
      const load = this.of(worker);
      if (load !== undefined) this.heap.add(load);
    }
  }
}

/** True when it could receive the result. */
function isFree(worker: WorkerView, task: TaskView, excluded: WorkerList): boolean {
  if (worker.hasWhat.has(task) || (excluded.size > 0 && excluded.has(worker))) return false;
  // What passes into another language is a translation, which is no copy.
  return (task.whoHas.items[0]?.language ?? worker.language) === worker.language;
}

/** Below 0 when `a` is to receive a copy rather than `b`: less memory, then the lower rank. */
function byEmptiness(a: WorkerLoad, b: WorkerLoad): number {
  return a.memory - b.memory || a.worker.rank - b.worker.rank;
}

/** The memory of the workers in a round, as policies see it. Empty between rounds. */
class WorkersMemory extends ComputedMap<WorkerView, number> {
  /** @param loads - of the round; undefined between rounds */
  constructor(private readonly loads: () => WorkerLoads | undefined) {
    super();
  }

  get size(): number {
    return this.loads()?.all.length ?? 0;
  }

  get(worker: WorkerView): number | undefined {
    return this.loads()?.of(worker)?.memory;
  }

  *entries(): MapIterator<[WorkerView, number]> {
    for (const { worker, memory } of this.loads()?.all ?? []) yield [worker, memory];
  }
}

/** A suggestion whose task and candidates belong to the cluster. */
interface ReadSuggestion extends Suggestion {
  /** Without repetition. */
  readonly candidates: readonly WorkerView[] | undefined;
}

/** A suggestion that cannot be meant. */
interface RefusedSuggestion {
  readonly suggestion: Suggestion;
  readonly reason: RefusalReason;
}

/** A value that may be a suggestion. */
type Unchecked = { readonly [Part in keyof Suggestion]?: unknown } | null | undefined;

/**
 * At most this many candidates more than twice the workers are read, so that an endless list ends.
 */
const CANDIDATES_MORE = 1024;

/**
 * Reads a suggestion that a policy yielded. In plain JavaScript the parts may also be written as an array, as in Dask:
 * `yield ['drop', task, [worker]]`. Candidates that are no workers of the cluster are passed over.
 * O(1) without candidates, else O(candidates).
 *
 * @throws YardmasterError `ERR_POLICY` when it is no suggestion at all, saying what it is instead
 */
function readSuggestion(
  step: { readonly value?: unknown },
  cluster: ClusterView,
  loads: WorkerLoads,
): ReadSuggestion | RefusedSuggestion {
  const { value } = step;
  const unchecked = (Array.isArray(value) ? fromParts(value) : value) as Unchecked;
  const op = unchecked?.op;
  if (op !== 'replicate' && op !== 'drop') {
    throw new YardmasterError('ERR_POLICY', complaint(step), { op });
  }
  const given = unchecked as Suggestion;
  // A policy that is not part of this package names views.
  const own = original(given.task);
  const suggestion = own === given.task ? given : withTask(given, own);
  const task = own as Partial<Suggestion['task']> | null | undefined;
  if (task?.key === undefined || !isKnown(task as TaskView, cluster)) {
    return { suggestion, reason: task?.state === undefined ? 'unknown-task' : stateReason(task) };
  }
  const candidates: unknown = suggestion.candidates;
  // Most suggestions have none.
  if (candidates === undefined) return suggestion as ReadSuggestion;
  if (candidates === null) return { ...suggestion, candidates: undefined };
  const workers = workersIn(candidates, cluster, loads);
  if (workers.length === 0) return { suggestion, reason: 'unknown-candidates' };
  return { ...suggestion, candidates: workers };
}

/** Written out: a spread costs as much as all else that is done with most suggestions. */
function withTask(given: Suggestion, task: TaskView): Suggestion {
  const { op, candidates, force, beyondPending } = given;
  return { op, task, candidates, force, beyondPending };
}

/**
 * True when the task is the cluster's own. A copy is dropped of a task with several, so those are looked for
 * first, by identity: the look-up by key among all tasks would be a fifth of what a suggestion costs.
 */
function isKnown(task: TaskView, { replicated, tasks }: ClusterView): boolean {
  return replicated.has(task) || tasks.get(task.key) === task;
}

/** A task that the cluster has forgotten has no result; anything else with a state is no task of it. */
function stateReason({ state }: Partial<Suggestion['task']>): RefusalReason {
  return state === 'forgotten' ? 'not-in-memory' : 'unknown-task';
}

function workersIn(
  candidates: unknown,
  { workers }: ClusterView,
  loads: WorkerLoads,
): readonly WorkerView[] {
  const list = candidates as Partial<Iterable<unknown>>;
  // The characters of an address are no candidates.
  if (typeof candidates !== 'object' || typeof list[Symbol.iterator] !== 'function') return [];
  const found = new Set<WorkerView>();
  let left = 2 * workers.size + CANDIDATES_MORE;
  for (const candidate of list as Iterable<unknown>) {
    if (left-- === 0) break;
    if (typeof candidate !== 'object' || candidate === null) continue;
    const worker = original(candidate as WorkerView);
    if (loads.of(worker) !== undefined) found.add(worker);
  }
  return [...found];
}

function fromParts([op, task, candidates]: readonly unknown[]): Unchecked {
  return { op, task, candidates: candidates ?? undefined };
}

/** @throws YardmasterError `ERR_POLICY` when `run` is no generator */
function checkGenerator(generator: unknown): asserts generator is SuggestionGenerator {
  if (typeof (generator as { next?: unknown } | null | undefined)?.next === 'function') return;
  const what = generator instanceof Promise ? 'a promise' : String(generator);
  throw new YardmasterError(
    'ERR_POLICY',
    `its run returns ${what} and no generator; write *run(), and yield suggestions`,
  );
}

function complaint(step: unknown): string {
  if (step instanceof Promise) {
    return 'its run is asynchronous; a round is one step of the scheduler, so write *run() without async';
  }
  const { value } = step as { readonly value?: unknown };
  const advice = 'yield replicate(task) or drop(task)';
  if (typeof value !== 'object' || value === null) {
    return `${String(value)} is not a suggestion; ${advice}`;
  }
  const { op } = (Array.isArray(value) ? fromParts(value) : value) as { readonly op?: unknown };
  return `"${String(op)}" is not a suggestion; ${advice}`;
}

/**
 * The worker that receives one more copy: of the running candidates without one, the one with the
 * least memory; or why there is none. O(1) without candidates as a rule, else O(candidates).
 */
function chooseRecipient(
  loads: WorkerLoads,
  running: { readonly size: number; has(worker: WorkerView): boolean },
  { task, candidates }: ReadSuggestion,
  coming: WorkerList,
): WorkerLoad | RefusalReason {
  if (task.state !== 'memory') return 'not-in-memory';
  if (task.isActor) return 'actor';
  if (candidates === undefined) {
    return loads.emptiest(task, coming) ?? (running.size === 0 ? 'not-running' : 'no-recipient');
  }
  let best: WorkerLoad | undefined;
  let isAnyRunning = false;
  for (const worker of candidates) {
    const load = loads.of(worker);
    if (load === undefined || !running.has(worker)) continue;
    isAnyRunning = true;
    if (!isFree(worker, task, coming)) continue;
    if (best === undefined || byEmptiness(load, best) < 0) best = load;
  }
  return best ?? (isAnyRunning ? 'no-recipient' : 'not-running');
}

/**
 * The worker that drops its copy: of the candidates that hold one and do not need it for a task that
 * is processing there, one that is not running, else the one with the most memory; or why there is
 * none. O(candidates + waiters of the task).
 *
 * @param wanted - copies that are left at least, unless the suggestion forces it
 */
function chooseDropper(
  loads: WorkerLoads,
  { task, candidates, force }: ReadSuggestion,
  going: WorkerList,
  wanted: number,
): WorkerLoad | RefusalReason {
  if (task.whoHas.size === 0) return 'not-in-memory';
  if (task.isActor) return 'actor';
  const copies = task.whoHas.size - going.size;
  if (copies < 2) return 'last-copy';
  if (copies <= wanted && force !== true) return 'replicas-wanted';
  const readers = readersOf(task);
  let best: WorkerLoad | undefined;
  let hasOtherFree = false;
  let excluded = 0;
  let excludedRunning = 0;
  for (const worker of candidates ?? task.whoHas.items) {
    if (candidates !== undefined && !worker.hasWhat.has(task)) continue;
    if (going.size > 0 && going.has(worker)) continue;
    if (readers?.has(worker) === true) {
      excluded++;
      if (worker.status === 'running') excludedRunning++;
      continue;
    }
    const load = loads.of(worker);
    if (load === undefined || load === best) continue;
    hasOtherFree ||= best !== undefined;
    if (best === undefined || isRatherDropped(load, best)) best = load;
  }
  if (best === undefined) return excluded > 0 ? 'in-use' : 'no-holder';
  // A holder that is leaving but busy will be wanted gone next: the last running copy stays until
  // then, or two policies would copy to and fro.
  const isOnlyFree = !hasOtherFree && best.worker.status === 'running';
  return isOnlyFree && excluded > 0 && excludedRunning === 0 ? 'last-running-copy' : best;
}

/** Workers on which a task is processing that reads this result; undefined when there are none. */
function readersOf(task: TaskView): Set<WorkerView> | undefined {
  if (task.waiterCount === 0) return undefined;
  let readers: Set<WorkerView> | undefined;
  for (const { processingOn } of task.waiters) {
    if (processingOn !== undefined) (readers ??= new Set()).add(processingOn);
  }
  return readers;
}

/** Those that are not running go first, then those with the most memory, then the lowest rank. */
function isRatherDropped(load: WorkerLoad, best: WorkerLoad): boolean {
  const isLeaving = load.worker.status !== 'running';
  if (isLeaving !== (best.worker.status !== 'running')) return isLeaving;
  if (load.memory !== best.memory) return load.memory > best.memory;
  return load.worker.rank < best.worker.rank;
}

/**
 * A class is made with its options; an instance is taken as it is.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when it is no policy, or its constructor throws
 */
export function makePolicy(loaded: LoadedExtension): Policy {
  const { source, exported } = loaded;
  const instead = loaded.insteadOf('amm-policy');
  const made = instead === '' && exported !== undefined ? loaded.create() : undefined;
  checkPolicy(made, source, instead);
  return made;
}

/**
 * @param instead - what it is, for the end of the message
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
function checkPolicy(value: unknown, source = shown(value), instead = ''): asserts value is Policy {
  const isObject = typeof value === 'object' && value !== null;
  const run: unknown = isObject ? (value as { run?: unknown }).run : undefined;
  if (typeof run !== 'function') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${source} is no policy of the memory manager: it has no method run; extend ActiveMemoryManagerPolicy${instead}`,
      { source },
    );
  }
  if (run.constructor.name.startsWith('Async')) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `run of ${source} is asynchronous; a round is one step of the scheduler, so write *run(amm) without async`,
      { source },
    );
  }
}

function shown(value: unknown): string {
  if (typeof value === 'function') return `the class ${value.name}, which is no instance,`;
  return typeof value === 'object' && value !== null ? value.constructor.name : String(value);
}

/** Puts an accepted suggestion into words, before it is booked. O(workers). */
function explainMove(
  { op, task, candidates }: Suggestion,
  chosen: WorkerLoad,
  loads: WorkerLoads,
): PluginDecision {
  const isCopy = op === 'replicate';
  const named = candidates === undefined ? undefined : new Set<WorkerView>(candidates);
  const eligible = [...loads.all].filter(({ worker }) => {
    if (named?.has(worker) === false) return false;
    return isCopy
      ? worker.status === 'running' && !worker.hasWhat.has(task)
      : worker.hasWhat.has(task);
  });
  const among = `of ${countOf(eligible.length, named === undefined ? 'worker' : 'named worker')}`;
  // As they were chosen: the emptiest receives, the fullest drops.
  const sign = isCopy ? 1 : -1;
  eligible.sort(
    (a, b) =>
      Number(b === chosen) - Number(a === chosen) ||
      sign * (a.memory - b.memory) ||
      a.worker.rank - b.worker.rank,
  );
  return {
    kind: op,
    key: task.key,
    outcome: chosen.worker.address,
    rule: isCopy
      ? `one more copy: the least memory ${among} without one`
      : `one copy less: the most memory ${among} that can do without`,
    candidates: eligible.slice(0, CANDIDATES_MAX).map(candidate),
    candidateCount: eligible.length,
  };
}

/** Puts a refusal into words. */
function explainRefusal({ op, task }: Suggestion, reason: RefusalReason): PluginDecision {
  return {
    kind: op,
    key: task.key,
    outcome: 'refused',
    rule: refusalText(reason),
    candidates: [],
    candidateCount: 0,
  };
}

function candidate({ worker, memory }: WorkerLoad): DecisionCandidate {
  return {
    worker: worker.address,
    memoryBytes: memory,
    occupancyS: worker.occupancyS,
    processingCount: worker.processing.size,
  };
}
