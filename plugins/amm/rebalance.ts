import type { TaskView, WorkerView } from '../../core/api/index.ts';
import { MoveResults } from '../../policies/amm/move-results.ts';
import { planRebalance, type RebalanceRules } from '../../policies/amm/plan-rebalance.ts';
import { type MovementScope, Patience, pause } from './movement.ts';

/** Between two looks at what has arrived. */
const LOOK_MS = 20;

/** What a rebalance did. */
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
  private last: Promise<unknown> = Promise.resolve();

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
    const result = this.last.then(() => this.run(rules, workers, keys));
    this.last = result.catch(() => undefined); // The caller gets the error.
    return result;
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

  private async carryOut(policy: MoveResults): Promise<void> {
    const { scope } = this;
    const manager = scope.makeManager();
    const patience = new Patience(scope.clock);
    manager.policies.add(policy);
    for (;;) {
      manager.runOnce();
      if (policy.open.size === 0) return;
      let nbytes = 0;
      for (const { task } of policy.open) nbytes += Math.max(0, task.nbytes);
      if (patience.isOver(policy.open.size, nbytes, scope.cluster.costs.bandwidth)) return;
      await pause(scope, LOOK_MS);
    }
  }
}
