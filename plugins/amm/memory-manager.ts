import {
  type ActiveMemoryManagerPolicy,
  type AmmView,
  type ClusterView,
  type MemoryMeasure,
  type MoveReplicas,
  type PendingReplicas,
  type Suggestion,
  type SuggestionGenerator,
  type TaskView,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import { chooseDropper, chooseRecipient, type Pending } from './choose-worker.ts';

/** What a policy may suggest in one round; beyond it, it is taken for endless. */
const SUGGESTIONS_MAX = 1_000_000;
/** Time that one policy has in a round. */
const ROUND_MS_MAX = 1000;
/** The clock is looked at once in so many suggestions. */
const SUGGESTIONS_PER_LOOK = 1024;

/** Copies to make and to drop, by worker. */
export type ReplicaMoves = Pick<MoveReplicas, 'acquire' | 'remove'>;

/** What the manager is made of. */
export interface MemoryManagerParts {
  readonly cluster: () => ClusterView;
  readonly measure: MemoryMeasure;
  readonly nowMs: () => number;
  /** Has the kernel do it. Not called when there is nothing to do. */
  readonly enact: (moves: ReplicaMoves) => void;
  /** A policy failed; the others go on. */
  readonly report: (error: YardmasterError) => void;
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
 * which throws ends only its own round, and that ties between workers go to the lowest rank.
 */
export class MemoryManager implements AmmView {
  readonly policies: Set<ActiveMemoryManagerPolicy<unknown>> = new PolicySet(this);
  readonly workersMemory = new Map<WorkerView, number>();
  readonly pending = new Map<TaskView, PendingReplicas & Pending>();
  private isRunning = false;
  private suggested = 0;
  private accepted = 0;

  constructor(private readonly parts: MemoryManagerParts) {}

  get cluster(): ClusterView {
    return this.parts.cluster();
  }

  get scheduler(): ClusterView {
    return this.parts.cluster();
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
    try {
      for (const worker of this.cluster.workers.values()) {
        this.workersMemory.set(worker, worker.memory[this.parts.measure]);
      }
      for (const policy of [...this.policies]) if (this.policies.has(policy)) this.drive(policy);
      const moves = this.moves();
      if (moves.acquire.length > 0 || moves.remove.length > 0) this.parts.enact(moves);
    } finally {
      this.isRunning = false;
      this.pending.clear();
      this.workersMemory.clear();
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
      const chosen = this.consider(step.value);
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

  private consider({ op, task, candidates }: Suggestion): WorkerView | undefined {
    const { cluster, workersMemory } = this;
    const pending = this.pending.get(task);
    const nbytes = Math.max(0, task.nbytes);
    if (op === 'replicate') {
      const chosen = chooseRecipient({ cluster, workersMemory, task, candidates, pending });
      if (chosen === undefined) return undefined;
      this.pendingOf(task).replicate.add(chosen);
      workersMemory.set(chosen, (workersMemory.get(chosen) ?? 0) + nbytes);
      return chosen;
    }
    if ((op as unknown) !== 'drop') {
      throw new YardmasterError(
        'ERR_POLICY',
        `"${op as string}" is not a suggestion; yield replicate(task) or drop(task)`,
        { op },
      );
    }
    const chosen = chooseDropper({ cluster, workersMemory, task, candidates, pending });
    if (chosen === undefined) return undefined;
    this.pendingOf(task).drop.add(chosen);
    workersMemory.set(chosen, Math.max(0, (workersMemory.get(chosen) ?? 0) - nbytes));
    return chosen;
  }

  private pendingOf(task: TaskView): Pending {
    let pending = this.pending.get(task);
    if (pending === undefined) {
      pending = { replicate: new Set(), drop: new Set() };
      this.pending.set(task, pending);
    }
    return pending;
  }

  /** What was accepted, by worker in the order of ranks. */
  private moves(): ReplicaMoves {
    const acquire = new Map<WorkerView, string[]>();
    const remove = new Map<WorkerView, string[]>();
    for (const [task, pending] of this.pending) {
      if (task.whoHas.size === 0) continue;
      for (const worker of pending.replicate) keysOf(acquire, worker).push(task.key);
      for (const worker of pending.drop) keysOf(remove, worker).push(task.key);
    }
    return { acquire: byRank(acquire), remove: byRank(remove) };
  }

  private fail(policy: ActiveMemoryManagerPolicy<unknown>, what: string, cause?: unknown): void {
    const { name } = policy.constructor;
    this.parts.report(
      new YardmasterError(
        'ERR_POLICY',
        `policy "${name}" of the Active Memory Manager ${what}`,
        { policy: name },
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

function keysOf(byWorker: Map<WorkerView, string[]>, worker: WorkerView): string[] {
  let keys = byWorker.get(worker);
  if (keys === undefined) {
    keys = [];
    byWorker.set(worker, keys);
  }
  return keys;
}

function byRank(byWorker: ReadonlyMap<WorkerView, string[]>): ReplicaMoves['acquire'] {
  return [...byWorker]
    .sort(([a], [b]) => a.rank - b.rank)
    .map(([worker, keys]) => ({ worker: worker.address, keys }));
}
