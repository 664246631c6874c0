import { isTrusted, leaveOpen, readOnly } from '../../core/shared/read-only.ts';
import { isReported } from '../../core/util/failure-count.ts';
import {
  type ActiveMemoryManagerPolicy,
  type AmmRound,
  type AmmView,
  type ClusterView,
  type DecisionSink,
  type MemoryMeasure,
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
import { chooseDropper, chooseRecipient } from './choose-worker.ts';
import { explainMove, explainRefusal } from './explain-move.ts';
import {
  checkGenerator,
  type ReadSuggestion,
  readSuggestion,
  type RefusedSuggestion,
} from './read-suggestion.ts';
import { checkPolicy } from './make-policy.ts';
import { ReplicaBook, type TransferTime } from './replica-book.ts';
import { RoundTally } from './round-tally.ts';
import { type WorkerLoad, WorkerLoads } from './worker-loads.ts';
import { WorkersMemory } from './workers-memory.ts';

/** What a policy may suggest in one round; beyond it, it is taken for endless. */
const SUGGESTIONS_MAX = 1_000_000;
/** Time that one policy has in a round. */
const ROUND_MS_MAX = 1000;
/** Suggestions between two readings of the clock. */
const SUGGESTIONS_PER_LOOK = 1024;

/** Between rounds, unless the parts say otherwise. */
const INTERVAL_MS = 2000;

/** What is pending between rounds, as policies see it. */
const NOTHING: ReadonlyMap<TaskView, PendingReplicas> = new Map();

/** Copies to make and to drop, by worker. */
export type ReplicaMoves = Pick<MoveReplicas, 'acquire' | 'remove'>;

/** What the manager is made of. */
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
  /**
   * A policy failed; the other policies continue. Called at the 1st, 2nd, 4th, 8th … failure of a
   * policy.
   */
  readonly report: (error: YardmasterError) => void;
  /** What is under way, shared by the managers of one scheduler. Default: its own. */
  readonly book?: ReplicaBook;
}

/**
 * Drives the policies of the Active Memory Manager and decides which of their suggestions are
 * harmless. Rules and their order: Dask `active_memory_manager.py`, with the differences that a policy
 * which throws ends only its own round, that requests are remembered until they are met, and that
 * ties between workers go to the lowest rank.
 */
export class MemoryManager implements AmmView {
  readonly policies: Set<ActiveMemoryManagerPolicy<unknown>> = leaveOpen(new PolicySet(this));
  readonly workersMemory: ReadonlyMap<WorkerView, number>;
  private readonly book: ReplicaBook;
  private readonly failures = new WeakMap<ActiveMemoryManagerPolicy<unknown>, number>();
  /** Filled anew in each round in which something is suggested or looked at. */
  private loads: WorkerLoads | undefined;
  private areLoadsFresh = false;
  private transferTime: TransferTime = { nowMs: 0, bandwidth: 1 };
  private isRunning = false;
  private tally = new RoundTally();
  private hasRun = false;
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
    this.transferTime = { nowMs: this.parts.nowMs(), bandwidth: this.cluster.costs.bandwidth };
    try {
      this.book.beginRound(this.cluster, this.transferTime.nowMs, () => this.loadsOfRound());
      for (const policy of [...this.policies]) if (this.policies.has(policy)) this.drive(policy);
      if (tally.accepted > 0) this.parts.enact(this.moves());
    } finally {
      this.isRunning = false;
      this.areLoadsFresh = false;
      this.book.endRound();
    }
    return tally.result;
  }

  /** Lets one policy speak. What it throws ends its round; what was accepted stands. */
  private drive(policy: ActiveMemoryManagerPolicy<unknown>): void {
    let generator: SuggestionGenerator | undefined;
    try {
      const returned: unknown = policy.run(viewFor(policy, this));
      checkGenerator(returned);
      generator = returned;
      this.converse(policy, generator);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      this.fail(policy, `threw: ${message}; what it suggested before stands`, cause);
    } finally {
      this.end(policy, generator);
    }
  }

  private converse(
    policy: ActiveMemoryManagerPolicy<unknown>,
    generator: SuggestionGenerator,
  ): void {
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
      step = silenced(generator.next(chosen && viewFor(policy, chosen)));
    }
  }

  /** So that `finally` of the policy runs, however its round ended. */
  private end(
    policy: ActiveMemoryManagerPolicy<unknown>,
    generator: SuggestionGenerator | undefined,
  ): void {
    try {
      silenced(generator?.return());
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      this.fail(policy, `threw when it was ended: ${message}`, cause);
    }
  }

  /** The worker that was chosen for a suggestion; undefined: it is refused. */
  private answer(
    read: ReadSuggestion | RefusedSuggestion,
    policy: ActiveMemoryManagerPolicy<unknown>,
  ): WorkerView | undefined {
    const chosen = 'reason' in read ? read.reason : this.consider(read, policy);
    if (typeof chosen !== 'string') return chosen;
    this.refuse('reason' in read ? read.suggestion : read, chosen, policy);
    return undefined;
  }

  private consider(
    suggestion: ReadSuggestion,
    policy: ActiveMemoryManagerPolicy<unknown>,
  ): WorkerView | RefusalReason {
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
  private accept(
    suggestion: Suggestion,
    chosen: WorkerLoad,
    policy: ActiveMemoryManagerPolicy<unknown>,
  ): void {
    this.tally.accepted++;
    if (this.parts.decisions?.isRecording !== true) return;
    this.recordedRefusals.delete(suggestion.task);
    this.record(policy, explainMove(suggestion, chosen, this.loadsOfRound()));
  }

  /** Does no harm: it is counted, and recorded for `why` unless the last record says the same. */
  private refuse(
    suggestion: Suggestion,
    reason: RefusalReason,
    policy: ActiveMemoryManagerPolicy<unknown>,
  ): void {
    const { name } = policy.constructor;
    this.tally.refuse(suggestion, reason, name);
    const { task, op } = suggestion;
    if (this.parts.decisions?.isRecording !== true || reason === 'unknown-task') return;
    const text = `${name} ${op} ${reason}`;
    if (this.recordedRefusals.get(task) === text) return;
    this.recordedRefusals.set(task, text);
    this.record(policy, explainRefusal(suggestion, reason));
  }

  private record(policy: ActiveMemoryManagerPolicy<unknown>, decision: PluginDecision): void {
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

  /** What was accepted, by worker in the order of ranks. */
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

  /** Reports a failure, but for a policy that fails in every round only at growing distances. */
  private fail(policy: ActiveMemoryManagerPolicy<unknown>, what: string, cause?: unknown): void {
    const { name } = policy.constructor;
    this.tally.fail({ policy: name, message: what });
    const count = (this.failures.get(policy) ?? 0) + 1;
    this.failures.set(policy, count);
    if (!isReported(count)) return;
    const times = count === 1 ? '' : ` (failure ${count} of this policy)`;
    this.parts.report(
      new YardmasterError(
        'ERR_POLICY',
        `policy "${name}" of the Active Memory Manager ${what}${times}`,
        { policy: name, count },
        cause === undefined ? {} : { cause },
      ),
    );
  }
}

/** What an asynchronous `run` answers is refused; how its promise ends is of no interest any more. */
function silenced<T>(step: T): T {
  if (step instanceof Promise) step.catch(() => undefined);
  return step;
}

/** The policies of this package are trusted with the state itself. */
function viewFor<T>(policy: ActiveMemoryManagerPolicy<unknown>, value: T): T {
  return isTrusted(policy.constructor) ? value : readOnly(value);
}

/** Gives each added policy its manager, whichever caller adds it. */
class PolicySet extends Set<ActiveMemoryManagerPolicy<unknown>> {
  constructor(private readonly manager: AmmView) {
    super();
  }

  /** @throws YardmasterError `ERR_PLUGIN_LOAD` for what is no policy */
  override add(policy: ActiveMemoryManagerPolicy<unknown>): this {
    checkPolicy(policy);
    policy.manager = viewFor(policy, this.manager);
    return super.add(policy);
  }
}
