import {
  type ClusterView,
  type Stealing,
  type TaskView,
  type Theft,
  type WorkerView,
  YardmasterError,
} from '../../core/api/index.ts';
import type { DaskStealing } from '../../policies/stealing/dask.ts';
import { LEVEL_COUNT, levelOf } from './cost-levels.ts';
import type { Load, Loads } from './loads.ts';

/** Which of two tasks of one level is stolen first, as for a sort. Never 0 for two tasks. */
export type TaskOrder = (a: TaskView, b: TaskView) => number;

/** What decides a round: the policy in charge, checked, and Dask's rules where it has none. */
export class RoundRules {
  readonly order: TaskOrder;
  private readonly taking: Pick<DaskStealing, 'mayTake'>;
  private readonly choosing: Pick<Required<Stealing>, 'victims'>;
  private readonly paying: Pick<DaskStealing, 'pays'>;
  /** Undefined: every task may pay. */
  private readonly bound: Pick<DaskStealing, 'mayPay'> | undefined;

  /** Begins a round of the policy. @throws what the policy throws */
  constructor(
    /** For decisions that are recorded. */
    readonly name: string,
    private readonly policy: Stealing,
    standard: DaskStealing,
    cluster: ClusterView,
  ) {
    this.taking = has(policy, 'mayTake') ? policy : standard;
    this.choosing = has(policy, 'victims') ? policy : standard;
    this.paying = has(policy, 'pays') ? policy : standard;
    if (has(policy, 'mayPay')) this.bound = policy;
    else this.bound = this.paying === standard ? standard : undefined;
    this.order = has(policy, 'order') ? checkedOrder(policy) : lastFirst;
    standard.begin(cluster);
    if (policy !== standard) policy.begin?.(cluster);
  }

  mayTake(thief: Load): boolean {
    return yesOrNo('mayTake', this.taking.mayTake(thief));
  }

  victims(cluster: ClusterView, loads: Loads): Load[] {
    const chosen: unknown = this.choosing.victims(cluster, (worker) => loads.of(worker));
    if (typeof chosen !== 'object' || chosen === null || !(Symbol.iterator in chosen)) {
      throw unusable(`answered victims with ${String(chosen)}; a list of workers is wanted`);
    }
    return Array.from(chosen as Iterable<WorkerView>, (worker) => {
      const address = (worker as Partial<WorkerView> | undefined)?.address;
      if (address !== undefined && cluster.workers.get(address) === worker) return loads.of(worker);
      throw unusable(`chose a victim that is not a worker of the cluster: ${String(address)}`);
    });
  }

  levelOf(task: TaskView, costs: ClusterView['costs']): number | undefined {
    const level = levelOf(task, costs);
    const { policy } = this;
    if (policy.levelOf === undefined) return level;
    const own = policy.levelOf(task, level);
    if (own === undefined || (Number.isInteger(own) && own >= 0 && own < LEVEL_COUNT)) return own;
    throw unusable(
      `gave ${task.key} the cost level ${String(own)}; allowed are whole numbers from 0 to ${LEVEL_COUNT - 1}, and undefined`,
    );
  }

  /** Whether a task of at least `computeS` can be worth stealing from the victim. */
  mayPay(victim: Load, leastS: number, computeS: number): boolean {
    if (victim.isStuck || this.bound === undefined) return true;
    return yesOrNo('mayPay', this.bound.mayPay(victim, leastS, computeS));
  }

  pays(theft: Theft & { readonly victim: Load }): boolean {
    return theft.victim.isStuck || yesOrNo('pays', this.paying.pays(theft));
  }
}

/** By descending priority: what would run soon is not worth moving, and may have begun by then. */
function lastFirst(a: TaskView, b: TaskView): number {
  const user = b.negatedUserPriority - a.negatedUserPriority;
  if (user !== 0) return user;
  const generation = b.generation - a.generation;
  if (generation !== 0) return generation;
  const rank = b.rank - a.rank;
  if (rank !== 0) return rank;
  const arrival = b.arrival - a.arrival;
  if (arrival !== 0) return arrival;
  return a.key < b.key ? 1 : -1;
}

function checkedOrder(policy: Pick<Required<Stealing>, 'order'>): TaskOrder {
  return (a, b) => {
    const answer = policy.order(a, b);
    if (typeof answer !== 'number' || Number.isNaN(answer)) {
      throw unusable(`answered order with ${String(answer)}; a number is wanted`);
    }
    return answer || lastFirst(a, b);
  };
}

function has<Name extends keyof Stealing>(
  policy: Stealing,
  name: Name,
): policy is Stealing & Pick<Required<Stealing>, Name> {
  return policy[name] !== undefined;
}

function yesOrNo(question: string, answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer;
  throw unusable(`answered ${question} with ${String(answer)}; true or false is wanted`);
}

/** @param what - in words that follow the name of the policy */
function unusable(what: string): YardmasterError {
  return new YardmasterError('ERR_POLICY', what);
}
