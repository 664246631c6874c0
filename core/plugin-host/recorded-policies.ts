import { YardmasterError } from '../api/errors.ts';
import type { Builtins, UseEntry } from '../api/plugin.ts';
import {
  KERNEL_SLOT_NAMES,
  type KernelSlotName,
  type KernelSlots,
  type PolicyDefinition,
} from '../api/policies.ts';
import { HOOK_NAMES } from '../api/hooks.ts';
import { show } from '../shared/words.ts';
import type { HookCalls, KernelPorts, Named } from '../kernel/ports.ts';
import { AT_RUN_TIME } from './loading/extension-options.ts';
import { DEFAULT_POLICIES } from './loading/load-extensions.ts';
import { loadPolicy } from './loading/policy-loader.ts';
import { PluginResolver } from './loading/plugin-resolver.ts';

type SlotPolicy = Named<KernelSlots[KernelSlotName]>;

/** Policies for slots whose recorded ones were given as objects in code: their definitions, or instances of them. */
export type GivenPolicies = Readonly<{
  [Slot in KernelSlotName]?: KernelSlots[Slot] | PolicyDefinition<Slot, never>;
}>;

/** A policy that a recording names. */
export interface RecordedPolicy {
  readonly name: string;
  readonly entry?: UseEntry;
}

/** Loads the policies that a recording names. There are no plugins, so there are no hooks. */
export class RecordedPolicies {
  private readonly resolver: PluginResolver;
  private readonly loaded = new Map<KernelSlotName, SlotPolicy>();

  /**
   * @param folder - that relative paths are resolved from
   * @param allowsModules - false: of what the recording names, only built-in policies are loaded
   */
  constructor(
    builtins: Builtins,
    private readonly folder: string,
    private readonly given: GivenPolicies = {},
    private readonly allowsModules = false,
  ) {
    this.resolver = new PluginResolver(builtins, folder);
  }

  /**
   * What a kernel calls. A slot whose policy is the same as in the call before keeps it, and what it
   * remembers.
   * @throws YardmasterError `ERR_REPLAY` for a policy that has to be given; `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
   */
  async ports(recorded: Readonly<Record<string, RecordedPolicy>>): Promise<KernelPorts> {
    const policies: Partial<Record<KernelSlotName, SlotPolicy>> = {};
    const fallbacks: Partial<Record<KernelSlotName, unknown>> = {};
    for (const slot of KERNEL_SLOT_NAMES) {
      policies[slot] = await this.load(slot, recorded[slot]);
      const builtin = { use: DEFAULT_POLICIES[slot] };
      const { policy } = await loadPolicy(this.resolver, slot, builtin, AT_RUN_TIME);
      fallbacks[slot] = policy;
    }
    return {
      ...(policies as Pick<KernelPorts, KernelSlotName>),
      fallbacks: fallbacks as unknown as KernelSlots,
      hooks: NO_HOOKS,
      onPolicyFailure: () => undefined,
    };
  }

  private async load(slot: KernelSlotName, recorded?: RecordedPolicy): Promise<SlotPolicy> {
    if (recorded === undefined) throw missing(slot, 'no policy');
    const { name, entry } = recorded;
    const before = this.loaded.get(slot);
    if (before?.name === name && isSame(before.entry, entry)) return before;
    const given = this.given[slot];
    let policy: SlotPolicy;
    if (given !== undefined) {
      const { policy: made } = await loadPolicy(this.resolver, slot, { use: given }, AT_RUN_TIME);
      policy = { name, policy: made };
    } else if (entry === undefined) throw missing(slot, `the policy "${name}", an object in code`);
    else if (!this.allowsModules && !this.resolver.isBuiltin(entry.use, slot)) {
      throw refused(slot, show(entry.use), this.folder);
    } else policy = await loadPolicy(this.resolver, slot, entry, AT_RUN_TIME);
    this.loaded.set(slot, policy);
    return policy;
  }
}

const NO_HOOKS = Object.fromEntries(HOOK_NAMES.map((name) => [name, []])) as unknown as HookCalls;

function isSame(a: UseEntry | undefined, b: UseEntry | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function refused(slot: string, use: string, folder: string): YardmasterError {
  return new YardmasterError(
    'ERR_REPLAY',
    `the recording names the policy ${use} in the slot ${slot}, which is not built in; to replay it would run code from ${folder}. If you trust the recording, say --allow-policies (in code allowPolicies: true), or give the policy as policies.${slot}`,
    { slot, use, folder },
  );
}

function missing(slot: string, what: string): YardmasterError {
  return new YardmasterError(
    'ERR_REPLAY',
    `the recording has ${what} in the slot ${slot}; give it to the replay as policies.${slot}`,
    { slot },
  );
}
