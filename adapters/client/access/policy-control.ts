import type { ShadowReport, SlotName } from '../../../core/api/index.ts';

type Options = Readonly<Record<string, unknown>>;

/**
 * The policies of the scheduler, from afar. A client can name built-in policies, and those that the
 * operator offers under `scheduler.clientPolicies`: it must not make the scheduler load files of its choice.
 */
export interface PolicyControl {
  /** Names of the policies in charge, by slot. */
  current(): Promise<Readonly<Record<SlotName, string>>>;
  /**
   * Puts another policy in charge of a slot, between two stimuli; no task is lost.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  replace(slot: SlotName, policy: string, options?: Options): Promise<void>;
  /**
   * Puts the configured policy of a slot back in charge, made anew; without one, the default policy.
   * @throws RemoteError `ERR_SLOT` when a plugin fills the slot
   */
  restore(slot: SlotName): Promise<void>;
  /**
   * Calls a second policy for every decision of the slot and ignores its answers. `client.shadow`
   * shows how they differ from those of the policy in charge.
   * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
   */
  startShadow(slot: SlotName, policy: string, options?: Options): Promise<void>;
  /**
   * Puts the policy that is in the shadow of a slot in charge, also one that the operator configured there,
   * and ends the shadow. Returns what it found.
   * @throws RemoteError `ERR_SLOT` when the slot has no shadow
   */
  promote(slot: SlotName): Promise<ShadowReport>;
  /** Ends it. Returns what it found, or undefined when there was none. */
  stopShadow(slot: SlotName): Promise<ShadowReport | undefined>;
  /**
   * Keeps this many of the newest decisions with their candidates, for `client.why`; 0 keeps none.
   */
  recordDecisions(lengthMax: number): Promise<void>;
}

/** Calls the commands of the scheduler. */
export function policyControl(
  call: <T>(command: string, parameters?: Options) => Promise<T>,
): PolicyControl {
  const given = (slot: SlotName, use: string, options: Options | undefined): Options => ({
    slot,
    use,
    ...(options === undefined ? {} : { options }),
  });
  return {
    current: () => call('policies'),
    replace: (slot, policy, options) => call('replace-policy', given(slot, policy, options)),
    restore: (slot) => call('restore-policy', { slot }),
    startShadow: (slot, policy, options) => call('start-shadow', given(slot, policy, options)),
    promote: (slot) => call('promote-shadow', { slot }),
    stopShadow: (slot) => call('stop-shadow', { slot }),
    recordDecisions: (lengthMax) => call('record-decisions', { keep: lengthMax }),
  };
}
