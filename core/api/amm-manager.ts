import type { MemoryMeasure } from '../state/worker.ts';
import type { ActiveMemoryManagerPolicy, AmmPolicyClass, AmmView } from './amm.ts';
import { type Token, token } from './plugin.ts';

/** Built-in policies of the manager that a configuration or a client may name. */
export const AMM_POLICY_NAMES = [
  'reduce-replicas',
  'keep-replicas',
  'ensure-broadcast',
  'balance-memory',
] as const;

/** Why a suggestion was refused. */
export type RefusalReason =
  /** It is about no task of the cluster. */
  | 'unknown-task'
  /** Candidates are given, and all of them are unknown in the cluster. */
  | 'unknown-candidates'
  /** There is no result to copy or to drop. */
  | 'not-in-memory'
  /** An actor is neither copied nor dropped. */
  | 'actor'
  /** No candidate runs: all are paused or leaving. */
  | 'not-running'
  /** Every candidate that runs has a copy or gets one. */
  | 'no-recipient'
  /** No candidate has a copy, or all of theirs are dropped already. */
  | 'no-holder'
  /** One copy always stays. */
  | 'last-copy'
  /** Fewer copies would be left than were asked for on purpose. */
  | 'replicas-wanted'
  /** A task that reads the copy is processing on each candidate. */
  | 'in-use'
  /** The others are on workers that leave and are busy with it. */
  | 'last-running-copy';

/** Suggestions of a round that were refused for one reason. */
export interface AmmRefusals {
  readonly reason: RefusalReason;
  readonly count: number;
  /** The first of them in words. */
  readonly example: string;
}

/** A policy that did not come to its end in a round. */
export interface AmmPolicyFailure {
  /** Name of its class. */
  readonly policy: string;
  readonly message: string;
}

/** The outcome of a round: `suggested` is the sum of `accepted`, `underWay` and `refused`. */
export interface AmmRound {
  /** Suggestions that policies made. */
  readonly suggested: number;
  /** What will be done now. */
  readonly accepted: number;
  /** Copies that were asked for in an earlier round and have not arrived. */
  readonly underWay: number;
  readonly refused: number;
  /** Why, the most frequent reason first. */
  readonly refusals: readonly AmmRefusals[];
  /** Policies that crashed or were stopped. What they had suggested before counts. */
  readonly failures: readonly AmmPolicyFailure[];
}

/** A policy of the manager as data. */
export interface AmmPolicyInfo {
  /** For `removePolicy`; unique while the manager lives. */
  readonly id: string;
  /** As it was named; the name of its class for one that was given in code. */
  readonly name: string;
  /** What it was made with; undefined for an instance that was given in code. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** What the manager is set to, as data. */
export interface AmmStatus {
  readonly running: boolean;
  readonly intervalMs: number;
  readonly measure: MemoryMeasure;
  readonly policies: readonly AmmPolicyInfo[];
  /** The outcome of the newest round; undefined before the first. */
  readonly lastRound?: AmmRound;
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
  /** Whether it runs at its interval. */
  readonly running: boolean;
  /** Runs rounds at its interval. No-op when it runs. */
  start(): void;
  /** No more rounds at the interval. */
  stop(): void;
  /**
   * One round now, whether it is started or not.
   * @throws YardmasterError `ERR_POLICY` from within a round
   */
  runOnce(): AmmRound;
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
