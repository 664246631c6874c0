import type { MemoryMeasure } from '../state/worker.ts';
import type {
  ActiveMemoryManagerPolicy,
  AmmMoves,
  AmmPolicyClass,
  AmmRound,
  AmmView,
} from './amm.ts';
import { type Token, token } from './token.ts';

/** Built-in policies of the manager that a configuration or a client may name. */
export const AMM_POLICY_NAMES = [
  'reduce-replicas',
  'keep-replicas',
  'ensure-broadcast',
  'balance-memory',
] as const;

/** The ways to give the manager a policy: in a configuration, and in code. */
export const AMM_POLICY_PLACE = {
  place: 'scheduler.activeMemoryManager.policies',
  call: 'scheduler.amm.addPolicy(policy)',
} as const;
/** The command by which a worker leaves: the manager moves away what only it holds. */
export const RETIRE_SELF = 'amm.retireSelf';

/** A policy of the manager as data. */
export interface AmmPolicyInfo {
  /** For `removePolicy`; unique while the manager lives. */
  readonly id: string;
  /** As it was named; the name of its class for one that was given in code. */
  readonly name: string;
  /** The options it was made with; undefined for an instance that was given in code. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** The settings of the manager, as data. */
export interface AmmStatus {
  readonly running: boolean;
  readonly intervalMs: number;
  readonly measure: MemoryMeasure;
  readonly policies: readonly AmmPolicyInfo[];
  /** The outcome of the newest round; undefined before the first. */
  readonly lastRound?: AmmRound;
  /** Of each policy that has moved anything. */
  readonly moves: readonly AmmMoves[];
}

/**
 * The Active Memory Manager of a scheduler: `context.get(ACTIVE_MEMORY_MANAGER)` for plugins that come
 * after it, `scheduler.amm` where the scheduler runs. Dask's `ActiveMemoryManagerExtension`.
 */
export interface ActiveMemoryManager extends AmmView {
  /** Milliseconds between rounds, at least 1. A change takes effect at once. */
  intervalMs: number;
  /** By which workers are compared, from the next round on. */
  measure: MemoryMeasure;
  /**
   * Adds a policy, from the next round on: an instance, a class, or what a configuration could name;
   * Dask's names of the built-in ones work, too.
   * @param options - for a class or a name; checked against its `optionsSchema`
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
   */
  addPolicy(
    policy: string | AmmPolicyClass | ActiveMemoryManagerPolicy<unknown>,
    options?: Readonly<Record<string, unknown>>,
  ): Promise<AmmPolicyInfo>;
  /**
   * Removes policies: an instance, the one with this id, or all of this name.
   * @returns those that were removed
   * @throws YardmasterError `ERR_PLUGIN_LOAD` when there is none such
   */
  removePolicy(policy: string | ActiveMemoryManagerPolicy<unknown>): readonly AmmPolicyInfo[];
  /** Its policies, in the order in which they run. */
  listPolicies(): readonly AmmPolicyInfo[];
}

/** The manager of the built-in plugin `amm`. */
export const ACTIVE_MEMORY_MANAGER: Token<ActiveMemoryManager> = token('active-memory-manager');
