import type { Clock } from './clock.ts';
import {
  type ApiVersion,
  checkDefinition,
  type MadeDefinition,
  type NoOptions,
  type OptionsOf,
  type WrittenDefinition,
} from './definition.ts';

/** A result as a store keeps it. */
export interface StoredResult {
  /** Name of its type, for people. */
  readonly type: string;
  /** As the worker has serialised it. */
  readonly value: Uint8Array;
}

/**
 * Keeps results beyond the life of a cluster. Clients ask it before they submit, the threads of workers read and write
 * it: many instances in many processes share what is behind it.
 *
 * A key is the hash of what a result follows from, so what is kept under it never changes. A result that is missing is
 * computed again; one that is damaged has to count as missing.
 */
export interface ResultStore {
  /** The version of the contract that it was written for. Default 1. */
  readonly apiVersion?: ApiVersion;
  /**
   * True when the result is there and whole. The task is then read instead of computed, so a store that removes old
   * results takes this one to be used now.
   */
  has(key: string): Promise<boolean>;
  /** Undefined when it is missing or damaged. */
  read(key: string): Promise<StoredResult | undefined>;
  /** Seen by others whole or not at all, also when the process is killed meanwhile. */
  write(key: string, result: StoredResult): Promise<void>;
  /** No-op when it is not there. */
  delete(key: string): Promise<void>;
}

/** The context in which a store is made: once in each thread that uses it. */
export interface StoreContext {
  readonly clock: Clock;
}

type Opened = ResultStore | Promise<ResultStore>;

/** A store that a configuration or a client can name. */
export type StoreDefinition<Options = never> = MadeDefinition<
  'store',
  StoreContext,
  Opened,
  Options
>;

/**
 * Declares a store of results; types its options.
 * @throws YardmasterError `ERR_PLUGIN_LOAD` when the definition is missing or empty
 */
export function defineStore<const Schema extends object = NoOptions>(
  definition: WrittenDefinition<StoreContext, Opened, Schema>,
): StoreDefinition<OptionsOf<Schema>> {
  checkDefinition('defineStore', definition, '{ name, apiVersion: 1, create }');
  return { kind: 'store', ...definition };
}
