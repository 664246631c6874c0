import {
  type Clock,
  type ClusterView,
  every,
  type FewMembers,
  type NewStimulus,
  type Retirement,
  type TaskView,
  type Timer,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { pause } from '../../core/shared/timers.ts';
import { InTurn } from '../../core/util/steps.ts';
import {
  MoveResults,
  planRebalance,
  type RebalanceRules,
} from '../../policies/amm/balance-memory.ts';
import { SpreadReplicas } from '../../policies/amm/replicas.ts';
import { RetireWorker } from '../../policies/amm/retire-worker.ts';
import type { MemoryManager } from './memory-manager.ts';
import { pushTo } from '../../core/util/collections.ts';

/** The parts of the scheduler that movements of data use. */
export interface MovementScope {
  readonly clock: Clock;
  readonly cluster: ClusterView;
  /** Aborted when the plugin goes; whatever is under way then fails. */
  readonly signal: AbortSignal;
  enqueue(stimulus: NewStimulus): void;
  /** A manager without policies that shares its requests under way with all others. */
  makeManager(): MemoryManager;
}

/** A movement without any progress for longer than this is cancelled. */
const PATIENCE_MS = 60_000;

/** Decides whether a movement still makes progress. */
class Patience {
  private lastMs: number;
  private last: number | undefined;

  constructor(private readonly clock: Clock) {
    this.lastMs = clock.nowMs();
  }

  /**
   * @param left - what is left to do; any change is progress
   * @param bytes - that are left; large transfers have more time
   * @param bandwidth - bytes per second
   */
  isOver(left: number, bytes = 0, bandwidth = 1): boolean {
    const nowMs = this.clock.nowMs();
    if (left !== this.last) {
      this.last = left;
      this.lastMs = nowMs;
    }
    return nowMs - this.lastMs > PATIENCE_MS + (4000 * bytes) / bandwidth;
  }
}

/** @throws YardmasterError `ERR_CLOSED` when the plugin is removed before */
async function pauseIn({ clock, signal }: MovementScope, ms: number): Promise<void> {
  if (!(await pause(clock, ms, signal))) return;
  throw new YardmasterError('ERR_CLOSED', 'the scheduler closed before the data was moved', {});
}

/** Workers by address, name or host, and what fits none. O(workers + wanted + found). */
export function findWorkers(
  { workers }: ClusterView,
  wanted: readonly string[],
  by: 'any' | 'name' = 'any',
): { readonly found: WorkerView[]; readonly unknown: string[] } {
  const byName = new Map<string, WorkerView>();
  const byHost = new Map<string, WorkerView[]>();
  for (const worker of workers.values()) {
    byName.set(worker.name, worker);
    pushTo(byHost, worker.host, worker);
  }
  const found = new Set<WorkerView>();
  const unknown = new Set<string>();
  for (const which of new Set(wanted)) {
    const worker = (by === 'any' ? workers.get(which) : undefined) ?? byName.get(which);
    const onHost = by === 'any' ? byHost.get(which) : undefined;
    if (worker !== undefined) found.add(worker);
    else if (onHost === undefined) unknown.add(which);
    else for (const one of onHost) found.add(one);
  }
  return { found: [...found], unknown: [...unknown] };
}

/** Between two looks at what has arrived. */
const LOOK_MS = 20;

interface RebalanceResult {
  /** Keys of the results that have moved. */
  readonly moved: readonly string[];
  /** Addresses of the workers that had them. */
  readonly senders: readonly string[];
  /** Keys that were to be moved and stayed where they were; a copy may have been made. */
  readonly stayed: readonly string[];
  /** Keys that were asked for and are nowhere. If there are any, nothing was moved. */
  readonly missing: readonly string[];
}

/** Evens out the memory of workers once. One rebalance at a time. */
export class Rebalancer {
  private readonly calls = new InTurn();

  constructor(private readonly scope: MovementScope) {}

  /**
   * @param workers - undefined: all that are not leaving
   * @param keys - undefined: all results
   */
  rebalance(
    rules: RebalanceRules,
    workers: readonly WorkerView[] | undefined,
    keys: readonly string[] | undefined,
  ): Promise<RebalanceResult> {
    return this.calls.run(() => this.run(rules, workers, keys));
  }

  private async run(
    rules: RebalanceRules,
    given: readonly WorkerView[] | undefined,
    keys: readonly string[] | undefined,
  ): Promise<RebalanceResult> {
    const { cluster } = this.scope;
    const missing = (keys ?? []).filter((key) => cluster.tasks.get(key)?.state !== 'memory');
    if (missing.length > 0) return { moved: [], senders: [], stayed: [], missing };
    const workers = (given ?? [...cluster.workers.values()]).filter(
      (worker) => cluster.workers.has(worker.address) && !worker.status.startsWith('clos'),
    );
    const allowed = keys === undefined ? undefined : new Set(keys);
    const isMovable = (task: TaskView): boolean => allowed?.has(task.key) !== false;
    const policy = new MoveResults(planRebalance(workers, rules, isMovable));
    await this.carryOut(policy);
    const left = [...policy.open].map(({ task }) => task.key);
    const { moved } = policy;
    const senders = [...policy.senders];
    return { moved, senders, stayed: [...policy.stayed, ...left], missing: [] };
  }

  private carryOut(policy: MoveResults): Promise<void> {
    return untilDone(this.scope, policy, () => {
      let nbytes = 0;
      for (const { task } of policy.open) nbytes += Math.max(0, task.nbytes);
      return { left: policy.open.size, nbytes };
    });
  }
}

/**
 * Rounds of a manager of its own with this policy, until nothing is open, or nothing changes for long.
 * @param progress - after a round that accepted so many suggestions: a number that changes with each that arrives, and the
 *   bytes under way
 */
async function untilDone(
  scope: MovementScope,
  policy: MoveResults | SpreadReplicas,
  progress: (accepted: number) => { readonly left: number; readonly nbytes: number },
): Promise<void> {
  const manager = scope.makeManager();
  const patience = new Patience(scope.clock);
  manager.policies.add(policy);
  for (;;) {
    const { accepted } = manager.runOnce();
    if (policy.open.size === 0) return;
    const { left, nbytes } = progress(accepted);
    if (patience.isOver(left, nbytes, scope.cluster.costs.bandwidth)) return;
    await pauseIn(scope, LOOK_MS);
  }
}

interface ReplicateRequest {
  readonly keys: readonly string[];
  /** Copies of each. Default: one on every worker, also on those that come later. */
  readonly n?: number;
  /** Addresses or names of the workers to use. Default: all. */
  readonly workers?: readonly string[];
  /** Copies that each holder makes at once. Default 2. */
  readonly branchingFactor?: number;
  /** Drop copies beyond the number. Default true. */
  readonly dropSurplus?: boolean;
}

/** The outcome. Parallel arrays. */
interface ReplicateResult {
  readonly keys: readonly string[];
  /** Copies that there are now of each. */
  readonly copies: readonly number[];
  /** Keys without a result, which were not copied. */
  readonly missing: readonly string[];
}

/**
 * Makes copies of results now, and has them kept from then on.
 * @throws YardmasterError `ERR_NO_WORKER` when all of the workers are unknown, `ERR_CLOSED`
 */
export async function replicateKeys(
  scope: MovementScope,
  request: ReplicateRequest,
): Promise<ReplicateResult> {
  const { cluster } = scope;
  const { n = Infinity, branchingFactor = 2, dropSurplus = true } = request;
  const workers = addresses(scope, request.workers);
  const tasks: TaskView[] = [];
  const missing: string[] = [];
  for (const key of new Set(request.keys)) {
    const task = cluster.tasks.get(key);
    if (task?.state === 'memory' && !task.isActor) tasks.push(task);
    else missing.push(key);
  }
  const keys = tasks.map(({ key }) => key);
  const replicas = workers === undefined ? n : Math.min(n, workers.size);
  scope.enqueue({ op: 'want-replicas', keys, replicas });
  const options = { tasks, copies: n, workers, branchingFactor, dropSurplus };
  await spread(scope, new SpreadReplicas(options));
  return { keys, copies: tasks.map(({ whoHas }) => whoHas.size), missing };
}

function addresses(
  { cluster }: MovementScope,
  wanted: readonly string[] | undefined,
): ReadonlySet<string> | undefined {
  if (wanted === undefined && cluster.running.size > 0) return undefined;
  const { found, unknown } = findWorkers(cluster, wanted ?? []);
  const running = found.filter((worker) => cluster.running.has(worker));
  if (running.length > 0 && unknown.length === 0) return new Set(running.map((w) => w.address));
  const which = wanted === undefined ? 'no worker is running' : `${wanted.join(', ')}: not running`;
  throw new YardmasterError(
    'ERR_NO_WORKER',
    `the results cannot be replicated: ${unknown.length > 0 ? `there is no worker ${unknown.join(', ')}` : which}`,
    { workers: wanted ?? [], unknown },
  );
}

function spread(scope: MovementScope, policy: SpreadReplicas): Promise<void> {
  return untilDone(scope, policy, (accepted) => {
    let copies = accepted;
    let nbytes = 0;
    for (const { whoHas, nbytes: size } of policy.open) {
      copies += whoHas.size;
      nbytes += Math.max(0, size);
    }
    // Any change is progress; the fewer open, the more arrived.
    return { left: copies - 1e6 * policy.open.size, nbytes };
  });
}

/** The reason why a worker was not retired. All but one that left works on as before. */
type KeptReason = Exclude<Retirement, 'retired'>;

/** A worker whose data was moved away. */
interface RetiredWorker {
  readonly address: string;
  readonly name: string;
}

/** A worker that was asked for and not retired. */
interface KeptWorker {
  /** Address or name, as it was asked for when it is unknown. */
  readonly worker: string;
  readonly reason: KeptReason;
}

/** The outcome for each worker. */
export interface RetireResult {
  readonly retired: readonly RetiredWorker[];
  readonly kept: readonly KeptWorker[];
}

/** The manager that runs by itself, if it does. */
interface RunningManager {
  readonly manager: MemoryManager;
  readonly isRunning: boolean;
}

type Outcome = RetiredWorker | KeptWorker;

/** A retirement that is under way, by the address of its worker. */
interface Active {
  readonly outcome: Promise<Outcome>;
  /** The worker shall close at the end: any caller may want that. */
  close: boolean;
}

/**
 * Retires workers: they get no new tasks, the policy `retire-worker` moves what they hold, then they
 * leave. The policies are added to the manager when it runs, else to one of this object's own, which
 * runs for as long as it is needed.
 */
export class Retirements {
  private readonly active = new Map<string, Active>();
  private readonly policies = new Set<RetireWorker>();
  private readonly own: MemoryManager;
  private timer: Timer | undefined;

  /** @param intervalMs - between rounds that this class runs itself */
  constructor(
    private readonly scope: MovementScope,
    private readonly main: RunningManager,
    private readonly intervalMs: () => number,
  ) {
    this.own = scope.makeManager();
  }

  /**
   * Retires workers. A worker that is being retired already is not retired twice: both calls get
   * its outcome, and it closes when either of them asks for that.
   * @param close - remove it from the tables and ask it to close; its running tasks are computed
   *   elsewhere. Otherwise it stays, without data and without new tasks.
   */
  async retire(workers: readonly WorkerView[], close: boolean): Promise<RetireResult> {
    if (workers.length === 0) return { retired: [], kept: [] };
    const { scope } = this;
    const addresses = workers.map(({ address }) => address);
    const outcomes = workers.map((worker) => {
      const { address } = worker;
      const known = this.active.get(address);
      if (known !== undefined) {
        known.close ||= close;
        return known.outcome;
      }
      const isClosing = (): boolean => active.close;
      const outcome = this.begin(worker, isClosing).finally(() => this.active.delete(address));
      const active: Active = { outcome, close };
      this.active.set(address, active);
      return outcome;
    });
    this.manager.runOnce();
    const done = await Promise.all(outcomes);
    const retired = done.filter((outcome) => 'address' in outcome);
    const kept = done.filter((outcome) => 'reason' in outcome);
    scope.enqueue({
      op: 'log-event',
      topics: ['all'],
      message: {
        action: 'retire-workers',
        workers: addresses,
        retired: retired.map(({ address }) => address),
      },
    });
    return { retired, kept };
  }

  /**
   * Called when the manager was started or stopped: moves the policies to the manager that runs
   * rounds.
   */
  onManagerChange(): void {
    const { manager } = this;
    for (const policy of this.policies) {
      if (manager.policies.has(policy) || !policy.manager.policies.delete(policy)) continue;
      manager.policies.add(policy);
    }
    this.drive();
  }

  /** Nothing runs any more; what waits is ended by the signal of the scope. */
  close(): void {
    this.timer?.cancel();
  }

  private get manager(): MemoryManager {
    return this.main.isRunning ? this.main.manager : this.own;
  }

  /** Runs separate rounds while there are policies and the main manager is stopped. */
  private drive(): void {
    const isNeeded = this.policies.size > 0 && !this.main.isRunning;
    if (!isNeeded) {
      this.timer?.cancel();
      this.timer = undefined;
    } else {
      this.timer ??= every(this.scope.clock, this.intervalMs(), () => void this.own.runOnce());
    }
  }

  private begin(worker: WorkerView, isClosing: () => boolean): Promise<Outcome> {
    const policy = new RetireWorker({ address: worker.address });
    this.policies.add(policy);
    this.manager.policies.add(policy);
    this.drive();
    const { status: before } = worker;
    this.setStatus(worker, 'closing-gracefully');
    return this.follow(worker, policy)
      .catch((error: unknown) => {
        // The plugin is removed. The worker works on; no other would ever open it again.
        if (before !== 'closing-gracefully') this.setStatus(worker, before);
        throw error;
      })
      .then((reason) => {
        if (reason === undefined) return this.end(worker, isClosing());
        if (reason !== 'left' && before !== 'closing-gracefully') this.setStatus(worker, before);
        this.tell(worker, { action: 'could-not-retire', reason });
        return { worker: worker.address, reason };
      })
      .finally(() => {
        this.policies.delete(policy);
        policy.manager.policies.delete(policy);
        this.drive();
      });
  }

  /** Waits until it is done. Says why it will never be. */
  private async follow(
    worker: WorkerView,
    policy: RetireWorker,
  ): Promise<Exclude<KeptReason, 'unknown'> | undefined> {
    const { scope } = this;
    const patience = new Patience(scope.clock);
    for (;;) {
      // Many results take longer, and cost more to look at.
      await pauseIn(scope, Math.max(10, Math.min(500, (1000 * worker.hasWhat.size) / 400)));
      if (scope.cluster.workers.get(worker.address) !== worker) return 'left';
      if (policy.noRecipients) return 'no-recipients';
      const { count, nbytes } = policy.unique();
      if (count === 0) return undefined;
      // It was done, and then a task that ran there has brought one more result.
      if (!policy.manager.policies.has(policy)) policy.manager.policies.add(policy);
      if (patience.isOver(count, nbytes, scope.cluster.costs.bandwidth)) return 'stalled';
    }
  }

  private end(worker: WorkerView, close: boolean): RetiredWorker {
    const { address, name } = worker;
    this.tell(worker, { action: 'retired' });
    if (close) {
      this.scope.enqueue({ op: 'remove-worker', worker: address, expected: true, close });
    }
    return { address, name };
  }

  private setStatus(worker: WorkerView, status: WorkerView['status']): void {
    if (status === 'closing' || status === 'closed') return;
    this.scope.enqueue({ op: 'set-worker-status', worker: worker.address, status });
  }

  private tell({ address }: WorkerView, message: object): void {
    this.scope.enqueue({ op: 'log-event', topics: [address], message });
  }
}

/** Lists of at least this many members are searched by hash. */
const HASHED_FROM = 16;

/** A set of workers in the order in which they were added: few as a rule. */
export class WorkerList implements FewMembers<WorkerView> {
  private hashed: Set<WorkerView> | undefined;

  constructor(private readonly list: WorkerView[]) {}

  get items(): readonly WorkerView[] {
    return this.list;
  }

  get size(): number {
    return this.list.length;
  }

  /**
   * Adds a new member. Must not be called on shared lists: {@link NO_WORKERS}, and those of one worker.
   */
  add(worker: WorkerView): void {
    this.list.push(worker);
    this.hashed?.add(worker);
  }

  has(worker: WorkerView): boolean {
    const { list } = this;
    if (list.length < HASHED_FROM) return list.includes(worker);
    this.hashed ??= new Set(list);
    return this.hashed.has(worker);
  }

  [Symbol.iterator](): Iterator<WorkerView> {
    return this.list[Symbol.iterator]();
  }
}

/** The shared empty list. */
export const NO_WORKERS = new WorkerList([]);
