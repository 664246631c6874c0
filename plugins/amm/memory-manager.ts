import {
  type ActiveMemoryManagerPolicy,
  type AmmView,
  type ClusterView,
  type DecisionSink,
  type MemoryMeasure,
  type MoveReplicas,
  type PendingReplicas,
  type Suggestion,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { chooseDropper, chooseRecipient } from './choose-worker.ts';
import { explainMove } from './explain-move.ts';
import { readSuggestion } from './read-suggestion.ts';
import { ReplicaBook, type TransferTime } from './replica-book.ts';
import { type WorkerLoad, WorkerLoads } from './worker-loads.ts';
import { WorkersMemory } from './workers-memory.ts';

/** What a policy may suggest in one round; beyond it, it is taken for endless. */
const SUGGESTIONS_MAX = 1_000_000;
/** Time that one policy has in a round. */
const ROUND_MS_MAX = 1000;
/** The clock is looked at once in so many suggestions. */
const SUGGESTIONS_PER_LOOK = 1024;

/** What is pending between rounds, as policies see it. */
const NOTHING: ReadonlyMap<TaskView, PendingReplicas> = new Map();

/** Copies to make and to drop, by worker. */
export type ReplicaMoves = Pick<MoveReplicas, 'acquire' | 'remove'>;

/** What the manager is made of. */
export interface MemoryManagerParts {
  readonly cluster: () => ClusterView;
  readonly measure: MemoryMeasure;
  readonly nowMs: () => number;
  readonly decisions?: DecisionSink;
  /** Has the kernel do it. Not called when there is nothing to do. */
  readonly enact: (moves: ReplicaMoves) => void;
  /** A policy failed; the others go on. Called at its 1st, 2nd, 4th, 8th … failure. */
  readonly report: (error: YardmasterError) => void;
  /** What is under way, shared by the managers of one scheduler. Default: its own. */
  readonly book?: ReplicaBook;
}

/** What came of a round. */
export interface RoundResult {
  /** Suggestions that policies made. */
  readonly suggested: number;
  /** Suggestions that were accepted. */
  readonly accepted: number;
}

/**
 * Drives the policies of the Active Memory Manager and decides which of their suggestions are
 * harmless. Rules and their order: Dask `active_memory_manager.py`, with the differences that a policy
 * which throws ends only its own round, that requests are remembered until they are met, and that
 * ties between workers go to the lowest rank.
 */
export class MemoryManager implements AmmView {
  readonly policies: Set<ActiveMemoryManagerPolicy<unknown>> = new PolicySet(this);
  readonly workersMemory: ReadonlyMap<WorkerView, number>;
  private readonly book: ReplicaBook;
  private readonly failures = new WeakMap<ActiveMemoryManagerPolicy<unknown>, number>();
  /** Filled anew in each round in which something is suggested or looked at. */
  private loads: WorkerLoads | undefined;
  private areLoadsFresh = false;
  private transferTime: TransferTime = { nowMs: 0, bandwidth: 1 };
  private isRunning = false;
  private suggested = 0;
  private accepted = 0;

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

  /**
   * One round: every policy in its order, then one stimulus for all that was accepted.
   * @throws YardmasterError `ERR_POLICY` when a policy calls it
   */
  runOnce(): RoundResult {
    if (this.isRunning) {
      throw new YardmasterError(
        'ERR_POLICY',
        'a round of the Active Memory Manager is running; a policy cannot start another one',
      );
    }
    this.isRunning = true;
    this.suggested = 0;
    this.accepted = 0;
    this.transferTime = { nowMs: this.parts.nowMs(), bandwidth: this.cluster.costs.bandwidth };
    try {
      this.book.beginRound(this.cluster, this.transferTime.nowMs, () => this.loadsOfRound());
      for (const policy of [...this.policies]) if (this.policies.has(policy)) this.drive(policy);
      if (this.accepted > 0) this.parts.enact(this.moves());
    } finally {
      this.isRunning = false;
      this.areLoadsFresh = false;
      this.book.endRound();
    }
    return { suggested: this.suggested, accepted: this.accepted };
  }

  /** Lets one policy speak. What it throws ends its round; what was accepted stands. */
  private drive(policy: ActiveMemoryManagerPolicy<unknown>): void {
    let generator: SuggestionGenerator | undefined;
    try {
      generator = policy.run(this);
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
    let step = generator.next();
    for (let count = 1; step.done !== true; count++) {
      this.suggested++;
      const chosen = this.consider(readSuggestion(step), policy);
      if (chosen !== undefined) this.accepted++;
      const isLate = count % SUGGESTIONS_PER_LOOK === 0 && this.parts.nowMs() > deadlineMs;
      if (count >= SUGGESTIONS_MAX || isLate) {
        this.fail(
          policy,
          `made ${count} suggestions in one round without an end; it goes on in the next round`,
        );
        return;
      }
      step = generator.next(chosen);
    }
  }

  /** So that `finally` of the policy runs, however its round ended. */
  private end(
    policy: ActiveMemoryManagerPolicy<unknown>,
    generator: SuggestionGenerator | undefined,
  ): void {
    try {
      generator?.return();
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      this.fail(policy, `threw when it was ended: ${message}`, cause);
    }
  }

  private consider(
    suggestion: Suggestion,
    policy: ActiveMemoryManagerPolicy<unknown>,
  ): WorkerView | undefined {
    const { task } = suggestion;
    const loads = this.loadsOfRound();
    const nbytes = Math.max(0, task.nbytes);
    if (suggestion.op === 'replicate') {
      const coming = this.book.coming(task);
      const load = chooseRecipient(loads, this.cluster.running, suggestion, coming);
      if (load === undefined) return undefined;
      this.explain(suggestion, load, policy);
      this.book.addReplicate(task, load, this.transferTime);
      loads.setMemory(load, load.memory + nbytes);
      loads.acquire(load, task.key);
      return load.worker;
    }
    const load = chooseDropper(loads, suggestion, this.book.going(task));
    if (load === undefined) return undefined;
    this.explain(suggestion, load, policy);
    this.book.addDrop(task, load);
    loads.setMemory(load, Math.max(0, load.memory - nbytes));
    loads.remove(load, task.key);
    return load.worker;
  }

  /** Before anything is booked. Costs nothing unless somebody wants to know. */
  private explain(
    suggestion: Suggestion,
    chosen: WorkerLoad,
    policy: ActiveMemoryManagerPolicy<unknown>,
  ): void {
    const { decisions } = this.parts;
    if (decisions?.isRecording !== true) return;
    const { name } = policy.constructor;
    decisions.record({ policy: name, ...explainMove(suggestion, chosen, this.loadsOfRound()) });
  }

  /** O(workers) when the round first needs it, so that a round with nothing to do costs nothing. */
  private loadsOfRound(): WorkerLoads {
    this.loads ??= new WorkerLoads(this.cluster, this.parts.measure);
    if (!this.areLoadsFresh) this.loads.refresh();
    this.areLoadsFresh = true;
    return this.loads;
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

  /** A policy that fails in every round is not told of in every round. */
  private fail(policy: ActiveMemoryManagerPolicy<unknown>, what: string, cause?: unknown): void {
    const { name } = policy.constructor;
    const count = (this.failures.get(policy) ?? 0) + 1;
    this.failures.set(policy, count);
    if (!Number.isInteger(Math.log2(count))) return;
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

/** A policy knows its manager as soon as it is added, whoever adds it. */
class PolicySet extends Set<ActiveMemoryManagerPolicy<unknown>> {
  constructor(private readonly manager: AmmView) {
    super();
  }

  override add(policy: ActiveMemoryManagerPolicy<unknown>): this {
    policy.manager = this.manager;
    return super.add(policy);
  }
}
