import type { Builtins, UseEntry } from '../../api/plugin.ts';
import {
  KERNEL_SLOT_NAMES,
  type KernelSlotName,
  type KernelSlots,
  type PolicySlots,
  SLOT_NAMES,
  type SlotName,
} from '../../api/policies.ts';
import type { Segment } from '../../config/errors.ts';
import type { LoadedConfig } from '../../config/load.ts';
import type { OnError } from '../../config/types.ts';
import type { Named } from '../../kernel/ports.ts';
import type { Place } from './extension-options.ts';
import { type Blueprint, blueprintOf, checkRequired } from './plugin-blueprint.ts';
import type { PluginResolver } from './plugin-resolver.ts';
import { loadPolicy } from './policy-loader.ts';
import type { PolicySlotTable } from '../policy-slots.ts';
import { ProblemList } from './problem-list.ts';
import { UniqueNames } from './unique-names.ts';

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
        ...(options === undefined ? {} : { options }),
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
  const { interval, ...amm } = activeMemoryManager;
  addBuiltin(AMM, 'activeMemoryManager', { ...amm, intervalMs: interval, rebalance });
  const { start, spare, interval: intervalMs } = workStealing;
  addBuiltin(WORK_STEALING, 'workStealing', { start, spare, intervalMs });
  if (coordination.enabled) {
    const { leaseTimeout: leaseTimeoutMs, memoryLimit: memoryLimitBytes } = coordination;
    addBuiltin(COORDINATION, 'coordination', { leaseTimeoutMs, memoryLimitBytes });
  }
  addBuiltin(REPORT, 'plugins');
  plugins.forEach((entry, index) => {
    const at = ['scheduler', 'plugins', index];
    const place = { origin, optionsAt: [...at, 'options'] };
    wanted.push({ entry, onError: entry.onError, at, place });
  });
  return wanted;
}
