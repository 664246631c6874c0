import type { Clock } from '../api/clock.ts';
import { YardmasterError } from '../api/errors.ts';
import { HOOK_NAMES } from '../api/hooks.ts';
import type { Builtins, Logger, UseEntry } from '../api/plugin.ts';
import {
  KERNEL_SLOT_NAMES,
  type KernelSlotName,
  type KernelSlots,
  type PolicyDefinition,
  type PolicySlots,
  SLOT_NAMES,
  type SlotName,
} from '../api/policies.ts';
import type { Segment } from '../config/check.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { OnError } from '../config/types.ts';
import type { HookCalls, KernelPorts, Named } from '../kernel/ports.ts';
import {
  AMM_OPTIONS,
  COORDINATION_OPTIONS,
  WORK_STEALING_OPTIONS,
} from '../shared/plugin-settings.ts';
import { optionsOf } from '../shared/settings.ts';
import { show } from '../shared/words.ts';
import { AT_RUN_TIME, type Place, ProblemList, UniqueNames } from './extension-options.ts';
import { type Blueprint, blueprintOf, checkRequired } from './plugin-blueprint.ts';
import { PluginResolver } from './plugin-resolver.ts';
import { loadPolicy } from './policy-loader.ts';
import type { PolicySlotTable } from './policy-slots.ts';
import { Preloads } from './preloads.ts';

/** What decides when a configuration names nothing, and when a policy fails. */
export const DEFAULT_POLICIES: Readonly<Record<SlotName, string>> = {
  workerSelection: 'earliest-start',
  queuing: 'root-ish',
  ordering: 'depth-first',
  fairness: 'fifo',
  stealing: 'dask',
};

/** Built-in name of the plugin that the section `scheduler.activeMemoryManager` is for. */
const AMM = 'amm';
/** Built-in name of the plugin that the section `scheduler.workStealing` is for. */
const WORK_STEALING = 'work-stealing';

/** Built-in name of the plugin that the section `scheduler.coordination` is for. */
const COORDINATION = 'coordination';
/** Built-in name of the plugin that collects what a report is about. */
const REPORT = 'report';

/** Who fills a slot that the configuration, or a call at run time, names a policy for. */
export const CONFIGURATION = 'the configuration';

/** One plugin that is to be loaded, and where it was asked for. */
interface Wanted {
  readonly entry: UseEntry;
  readonly onError: OnError;
  readonly at: readonly Segment[];
  readonly place: Place;
}

/**
 * Fills the slots: what is built in, and what the configuration names.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
 */
export async function loadPolicies(
  slots: PolicySlotTable,
  resolver: PluginResolver,
  { config, origin }: LoadedConfig,
): Promise<void> {
  const builtin: Partial<Record<SlotName, Named<PolicySlots[SlotName]>>> = {};
  const problems = new ProblemList(origin);
  for (const slot of SLOT_NAMES) {
    const at = ['scheduler', 'policies', slot];
    const place = { origin, optionsAt: [...at, 'options'] };
    builtin[slot] = await loadPolicy(resolver, slot, { use: DEFAULT_POLICIES[slot] }, place);
    const entry = config.scheduler.policies[slot];
    if (entry === undefined) continue;
    await problems.attempt(at, async () => {
      slots.provide(slot, await loadPolicy(resolver, slot, entry, place), CONFIGURATION);
    });
  }
  problems.throwIfAny();
  slots.setBuiltin(builtin as never);
}

/**
 * Loads the policies that are to be compared with those in charge.
 * @throws YardmasterError with every problem of all of them
 */
export async function loadShadows(
  resolver: PluginResolver,
  { config, origin }: LoadedConfig,
): Promise<ReadonlyMap<KernelSlotName, Named<KernelSlots[KernelSlotName]>>> {
  const shadows = new Map<KernelSlotName, Named<KernelSlots[KernelSlotName]>>();
  const problems = new ProblemList(origin);
  for (const slot of KERNEL_SLOT_NAMES) {
    const entry = config.scheduler.shadows[slot];
    if (entry === undefined) continue;
    const at = ['scheduler', 'shadows', slot];
    const place = { origin, optionsAt: [...at, 'options'] };
    await problems.attempt(at, async () => {
      shadows.set(slot, await loadPolicy(resolver, slot, entry, place));
    });
  }
  problems.throwIfAny();
  return shadows;
}

/**
 * Loads the policies that clients may name, so that what is wrong with one is found at the start.
 * @throws YardmasterError with every problem of all of them
 */
export async function checkClientPolicies(
  resolver: PluginResolver,
  { config, origin }: LoadedConfig,
): Promise<void> {
  const problems = new ProblemList(origin);
  for (const slot of SLOT_NAMES) {
    for (const [name, entry] of Object.entries(config.scheduler.clientPolicies[slot] ?? {})) {
      const at = ['scheduler', 'clientPolicies', slot, name];
      await problems.attempt(at, () =>
        loadPolicy(resolver, slot, entry, { origin, optionsAt: [...at, 'options'] }),
      );
    }
  }
  problems.throwIfAny();
}

/**
 * Loads every plugin of the configuration and checks its options; sets none up.
 * @throws YardmasterError with every problem of all of them
 */
export async function loadBlueprints(
  resolver: PluginResolver,
  loaded: LoadedConfig,
  builtins: Builtins,
): Promise<Blueprint[]> {
  const blueprints: Blueprint[] = [];
  const problems = new ProblemList(loaded.origin);
  const unique = new UniqueNames('plugins', loaded.origin);
  for (const { entry, onError, at, place: optionsPlace } of wantedPlugins(loaded, builtins)) {
    await problems.attempt(at, async () => {
      const resolved = await resolver.resolve(entry.use, 'plugin');
      const { options } = entry;
      const request = {
        onError,
        place: optionsPlace,
        options,
      };
      const blueprint = blueprintOf(resolved, request);
      unique.add(blueprint.name, blueprint.source, at);
      const names = blueprints.map(({ name }) => name);
      blueprints.push(blueprint);
      // In code the name of the plugin says enough.
      const place = loaded.origin.file === undefined ? undefined : at;
      await problems.attempt(place, () => checkRequired(blueprint, names));
      await blueprint.load(resolver);
    });
  }
  problems.throwIfAny();
  return blueprints;
}

function wantedPlugins({ config, origin }: LoadedConfig, builtins: Builtins): Wanted[] {
  const { plugins, activeMemoryManager, rebalance, workStealing, coordination } = config.scheduler;
  const wanted: Wanted[] = [];
  const addBuiltin = (use: string, section: string, options: UseEntry['options'] = {}): void => {
    if (!Object.hasOwn(builtins, use)) return;
    const at = ['scheduler', section];
    wanted.push({ entry: { use, options }, onError: 'log', at, place: { origin, optionsAt: at } });
  };
  const amm = optionsOf(AMM_OPTIONS, { ...activeMemoryManager, rebalance });
  addBuiltin(AMM, 'activeMemoryManager', amm);
  addBuiltin(WORK_STEALING, 'workStealing', optionsOf(WORK_STEALING_OPTIONS, workStealing));
  if (coordination.enabled) {
    addBuiltin(COORDINATION, 'coordination', optionsOf(COORDINATION_OPTIONS, coordination));
  }
  addBuiltin(REPORT, 'plugins');
  plugins.forEach((entry, index) => {
    const at = ['scheduler', 'plugins', index];
    const place = { origin, optionsAt: [...at, 'options'] };
    wanted.push({ entry, onError: entry.onError, at, place });
  });
  return wanted;
}

/**
 * Loads what the section `worker` names, and checks its options. Nothing of it is set up.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function checkWorkerExtensions(
  { config, origin, folder }: LoadedConfig,
  around: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const { worker } = config;
  const resolver = new PluginResolver({}, folder);
  const problems = new ProblemList(origin);
  for (const [field, kind] of [
    ['plugins', 'worker-plugin'],
    ['nannyPlugins', 'nanny-plugin'],
  ] as const) {
    const unique = new UniqueNames(`${kind.replace('-', ' ')}s`, origin);
    for (const [index, { use, options, onError }] of worker[field].entries()) {
      const at = ['worker', field, index];
      const place = { origin, optionsAt: [...at, 'options'] };
      const given = options === undefined ? {} : { options };
      await problems.attempt(at, async () => {
        const resolved = await resolver.resolve(use, kind);
        const { name, source } = blueprintOf(resolved, { kind, onError, place, ...given });
        unique.add(name, source, at);
      });
    }
  }
  for (const [field, role] of [
    ['preload', 'worker'],
    ['nannyPreload', 'nanny'],
  ] as const) {
    const place = { origin, at: ['worker', field] };
    await problems.attempt(undefined, () =>
      Preloads.load(worker[field], resolver, { role, ...around }, place),
    );
  }
  problems.throwIfAny();
}

type SlotPolicy = Named<KernelSlots[KernelSlotName]>;

/** Policies for slots whose recorded ones were given as objects in code: their definitions, or instances of them. */
export type GivenPolicies = Readonly<{
  [Slot in KernelSlotName]?: KernelSlots[Slot] | PolicyDefinition<Slot, never>;
}>;

/** A policy that a recording names. */
interface RecordedPolicy {
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
