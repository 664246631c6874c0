import type { AmmPolicyInfo, AmmRound, AmmStatus, MemoryMeasure } from '../../core/api/index.ts';

/** The Active Memory Manager, from afar. */
export interface AmmControl {
  /** Runs rounds at its interval. Harmless when it runs. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** True when it runs at its interval. */
  running(): Promise<boolean>;
  /** One round now, whether it is started or not. */
  runOnce(): Promise<AmmRound>;
  /** True when it runs, its interval, its measure, and its policies in the order in which they run. */
  status(): Promise<AmmStatus>;
  /**
   * Changes its interval at once, and its measure from the next round on.
   * @throws RemoteError `ERR_CONFIG`
   */
  configure(settings: {
    readonly intervalMs?: number;
    readonly measure?: MemoryMeasure;
  }): Promise<AmmStatus>;
  /**
   * Adds a policy from the next round on: a built-in one, or one that the configuration names. A client
   * must not make the scheduler load files of its choice.
   * @throws RemoteError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
   */
  addPolicy(use: string, options?: Readonly<Record<string, unknown>>): Promise<AmmPolicyInfo>;
  /**
   * Removes the policy with this id, or all of this name.
   * @throws RemoteError `ERR_PLUGIN_LOAD` when there is none such
   */
  removePolicy(policy: string): Promise<readonly AmmPolicyInfo[]>;
}

/** Calls the commands of the plugin `amm`. */
export function ammControl(
  call: <T>(command: string, parameters?: Readonly<Record<string, unknown>>) => Promise<T>,
): AmmControl {
  return {
    start: async () => {
      await call('amm.start');
    },
    stop: async () => {
      await call('amm.stop');
    },
    running: () => call('amm.running'),
    runOnce: () => call('amm.runOnce'),
    status: () => call('amm.status'),
    configure: (settings) => call('amm.configure', settings),
    addPolicy: (use, options) => call('amm.addPolicy', { use, options }),
    removePolicy: (policy) => call('amm.removePolicy', { policy }),
  };
}
