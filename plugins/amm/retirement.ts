import { every, type Timer, type WorkerView } from '../../core/api/index.ts';
import { RetireWorker } from '../../policies/amm/retire-worker.ts';
import type { MemoryManager } from './memory-manager.ts';
import { type MovementScope, Patience, pause } from './movement.ts';

/** Why a worker was not retired. */
type KeptReason =
  /** No other worker can take what it holds, or it holds an actor. It works on as before. */
  | 'no-recipients'
  /** Nothing moved any more for a minute. It works on as before. */
  | 'stalled'
  /** It left by itself before. */
  | 'left'
  /** There is no such worker. */
  | 'unknown';

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

/** What became of the workers. */
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

/**
 * Retires workers: they get no new tasks, the policy `retire-worker` moves what they hold, then they
 * leave. The policies are added to the manager when it runs, else to one of this object's own, which
 * runs for as long as it is needed.
 */
export class Retirements {
  private readonly active = new Map<string, Promise<Outcome>>();
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
   * its outcome.
   * @param close - remove it from the tables and ask it to close; its running tasks are computed
   *   elsewhere. Otherwise it stays, without data and without new tasks.
   */
  async retire(workers: readonly WorkerView[], close: boolean): Promise<RetireResult> {
    if (workers.length === 0) return { retired: [], kept: [] };
    const { scope } = this;
    const addresses = workers.map(({ address }) => address);
    const outcomes = workers.map((worker) => {
      const known = this.active.get(worker.address);
      if (known !== undefined) return known;
      const outcome = this.begin(worker, close).finally(() => this.active.delete(worker.address));
      this.active.set(worker.address, outcome);
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
      if (policy.manager === manager || !policy.manager.policies.delete(policy)) continue;
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

  private begin(worker: WorkerView, close: boolean): Promise<Outcome> {
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
        if (reason === undefined) return this.end(worker, close);
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
      await pause(scope, Math.max(10, Math.min(500, (1000 * worker.hasWhat.size) / 400)));
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
