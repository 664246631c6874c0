import { YardmasterError } from '../api/errors.ts';
import type { Builtins, UseEntry } from '../api/plugin.ts';
import { type PolicySlots, SLOT_NAMES, type SlotName } from '../api/policies.ts';
import { type Problem, problemLine, type Segment } from '../config/errors.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { OnError } from '../config/types.ts';
import type { Named } from '../kernel/ports.ts';
import type { Place } from './extension-options.ts';
import { loadExtension } from './load-extension.ts';
import { type Blueprint, blueprintOf } from './plugin-blueprint.ts';
import type { PluginResolver } from './plugin-resolver.ts';
import { loadPolicy } from './policy-loader.ts';
import type { PolicySlotTable } from './policy-slots.ts';

/** What decides when a configuration names nothing, and when a policy fails. */
export const DEFAULT_POLICIES: Readonly<Record<SlotName, string>> = {
  workerSelection: 'earliest-start',
  queuing: 'root-ish',
  ordering: 'depth-first',
  fairness: 'fifo',
};

/** Built-in name of the plugin that the section `scheduler.activeMemoryManager` is for. */
const AMM = 'amm';
/** Built-in name of the plugin that the section `scheduler.workStealing` is for. */
const WORK_STEALING = 'work-stealing';

/** Built-in name of the plugin that the section `scheduler.coordination` is for. */
const COORDINATION = 'coordination';

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
  const errors: unknown[] = [];
  for (const slot of SLOT_NAMES) {
    const at = ['scheduler', 'policies', slot];
    const place = { origin, optionsAt: [...at, 'options'] };
    builtin[slot] = await loadPolicy(resolver, slot, { use: DEFAULT_POLICIES[slot] }, place);
    const entry = config.scheduler.policies[slot];
    if (entry === undefined) continue;
    try {
      slots.provide(slot, await loadPolicy(resolver, slot, entry, place), CONFIGURATION);
    } catch (error) {
      errors.push(placed(error, at, place));
    }
  }
  throwAll(errors);
  slots.setBuiltin(builtin as never);
}

/**
 * Loads the policies that are to be compared with those in charge.
 * @throws YardmasterError with every problem of all of them
 */
export async function loadShadows(
  resolver: PluginResolver,
  { config, origin }: LoadedConfig,
): Promise<ReadonlyMap<SlotName, Named<PolicySlots[SlotName]>>> {
  const shadows = new Map<SlotName, Named<PolicySlots[SlotName]>>();
  const errors: unknown[] = [];
  for (const slot of SLOT_NAMES) {
    const entry = config.scheduler.shadows[slot];
    if (entry === undefined) continue;
    const at = ['scheduler', 'shadows', slot];
    const place = { origin, optionsAt: [...at, 'options'] };
    try {
      shadows.set(slot, await loadPolicy(resolver, slot, entry, place));
    } catch (error) {
      errors.push(placed(error, at, place));
    }
  }
  throwAll(errors);
  return shadows;
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
  const errors: unknown[] = [];
  for (const { entry, onError, at, place } of wantedPlugins(loaded, builtins)) {
    try {
      const resolved = await resolver.resolve(entry.use, 'plugin');
      const { options } = entry;
      const request = { onError, place, ...(options === undefined ? {} : { options }) };
      const blueprint = blueprintOf(resolved, request);
      checkUnique(blueprint, blueprints);
      blueprints.push(blueprint);
    } catch (error) {
      errors.push(placed(error, at, place));
    }
  }
  errors.push(...(await ammPolicyErrors(resolver, loaded, builtins)));
  throwAll(errors);
  return blueprints;
}

/**
 * The manager loads its policies itself, when it is set up. What is wrong with them should be told
 * together with everything else, and before anything runs.
 */
async function ammPolicyErrors(
  resolver: PluginResolver,
  { config, origin }: LoadedConfig,
  builtins: Builtins,
): Promise<unknown[]> {
  if (!Object.hasOwn(builtins, AMM)) return [];
  const errors: unknown[] = [];
  for (const [index, entry] of config.scheduler.activeMemoryManager.policies.entries()) {
    const at = ['scheduler', 'activeMemoryManager', 'policies', index];
    const place = { origin, optionsAt: [...at, 'options'] };
    try {
      await loadExtension(resolver, entry, place);
    } catch (error) {
      errors.push(placed(error, at, place));
    }
  }
  return errors;
}

function wantedPlugins({ config, origin }: LoadedConfig, builtins: Builtins): Wanted[] {
  const { plugins, activeMemoryManager, workStealing, coordination } = config.scheduler;
  const wanted: Wanted[] = [];
  const addBuiltin = (use: string, section: string, options: UseEntry['options'] = {}): void => {
    if (!Object.hasOwn(builtins, use)) return;
    const at = ['scheduler', section];
    wanted.push({ entry: { use, options }, onError: 'log', at, place: { origin, optionsAt: at } });
  };
  const { interval, ...amm } = activeMemoryManager;
  addBuiltin(AMM, 'activeMemoryManager', { ...amm, intervalMs: interval });
  const { interval: intervalMs, horizon: horizonMs, ...stealing } = workStealing;
  addBuiltin(WORK_STEALING, 'workStealing', { ...stealing, intervalMs, horizonMs });
  if (coordination.enabled) {
    const { leaseTimeout: leaseTimeoutMs, memoryLimit: memoryLimitBytes } = coordination;
    addBuiltin(COORDINATION, 'coordination', { leaseTimeoutMs, memoryLimitBytes });
  }
  plugins.forEach((entry, index) => {
    const at = ['scheduler', 'plugins', index];
    const place = { origin, optionsAt: [...at, 'options'] };
    wanted.push({ entry, onError: entry.onError, at, place });
  });
  return wanted;
}

function checkUnique(blueprint: Blueprint, others: readonly Blueprint[]): void {
  const other = others.find(({ name }) => name === blueprint.name);
  if (other === undefined) return;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `there are two plugins "${blueprint.name}", from ${other.source} and from ${blueprint.source}; remove one, or give it another name`,
    { plugin: blueprint.name },
  );
}

/** Says where in the configuration something was named that could not be loaded. */
function placed(error: unknown, at: readonly Segment[], { origin }: Place): unknown {
  if (!YardmasterError.is(error) || error.code === 'ERR_CONFIG') return error;
  const problem: Problem = { at: [...at, 'use'], message: '' };
  const where = problemLine(problem, origin).trimEnd();
  return new YardmasterError(error.code, `${where}: ${error.message}`, error.data, {
    cause: error,
  });
}

/** One error as it is; several as one, with all of their lines. */
function throwAll(errors: readonly unknown[]): void {
  if (errors.length === 0) return;
  if (errors.length === 1) throw errors[0];
  const lines = errors.flatMap((error) => {
    const { message } = error as Error;
    // An ERR_CONFIG has a headline and indented lines.
    return YardmasterError.is(error, 'ERR_CONFIG')
      ? message.split('\n').slice(1)
      : [`  ${message}`];
  });
  throw new YardmasterError(
    'ERR_CONFIG',
    `the configuration has ${lines.length} problems:\n${lines.join('\n')}`,
    { problems: lines.map((line) => ({ line: line.trim() })) },
    { cause: errors[0] },
  );
}
