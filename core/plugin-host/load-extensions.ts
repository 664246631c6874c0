/** Loads what a configuration, or a call at run time, names: policies, plugins, transports, executors. Nothing is set up here. */
import type { Clock } from '../api/clock.ts';
import { isObject, isPlain, messageOf, named, YardmasterError } from '../api/errors.ts';
import { HOOK_NAMES } from '../api/hooks.ts';
import { checkVersion, type MadeDefinition } from '../api/definition.ts';
import type { Executor, ExecutorContext } from '../api/executor.ts';
import type { PreloadContext, PreloadModule } from '../api/local-plugins.ts';
import type {
  Builtins,
  ExtensionKind,
  ExtensionLoader,
  LoadedExtension,
  Logger,
  PluginContext,
  PluginDefinition,
  PluginInstance,
  UseEntry,
  WantedExtensions,
} from '../api/plugin.ts';
import {
  KERNEL_SLOT_NAMES,
  type KernelSlotName,
  type KernelSlots,
  type PolicyDefinition,
  type PolicySlots,
  SLOT_NAMES,
  type SlotName,
} from '../api/policies.ts';
import type { PolicyRoles, RoleName, Rule, RuleDefinition, RuleEntry } from '../api/rules.ts';
import type { Provider } from '../api/token.ts';
import type { ResultStore, StoreContext } from '../api/result-store.ts';
import type { Transport, TransportInput } from '../api/transport.ts';
import { type ConfigOrigin, IN_CODE } from '../config/problems.ts';
import type { LoadedConfig } from '../config/check.ts';
import { DEFAULT_POLICIES } from '../config/schema.ts';
import type { OnError } from '../config/types.ts';
import { withTimeout } from '../shared/timers.ts';
import { namedLogger } from '../host/log.ts';
import type { ModuleSource } from '../host/tokens.ts';
import type { HookCalls, KernelPorts, Named, NamedRule } from '../kernel/ports.ts';
import type { ModuleLimit } from '../shared/limits.ts';
import { isTrusted } from '../shared/read-only.ts';
import { pathText, type Segment } from '../shared/schema.ts';
import { show } from '../shared/words.ts';
import { isEqual } from '../util/values.ts';
import {
  checkDefinition,
  checkExecutor,
  checkHookNames,
  checkIsCalled,
  checkKind,
  checkPolicy,
  checkStatics,
  checkStore,
  checkTransport,
  insteadText,
  nameExecutor,
  notOfKind,
  type PluginKind,
} from './contracts.ts';
import {
  AT_RUN_TIME,
  checkOptions,
  noOptions,
  type Place,
  ProblemList,
  UniqueNames,
} from './extension-options.ts';
import { construct, created } from './injection.ts';
import { PluginResolver, type Resolved } from './plugin-resolver.ts';
import { type PolicySlotTable, shieldedPolicy } from './policy-slots.ts';

/** The owner of a slot that the configuration, or a call at run time, names a policy for. */
export const CONFIGURATION = 'the configuration';

type Options = Readonly<Record<string, unknown>>;

interface ExtensionClass {
  readonly name: string;
  readonly optionsSchema?: object;
  new (options: never): object;
}

/** Which kind of thing was exported: a definition, a class, or an instance. */
function formOf(
  { exported, source }: Resolved,
  kind: ExtensionKind,
): 'definition' | 'class' | 'instance' {
  checkKind(exported, kind, source);
  checkVersion(exported, source);
  if (isObject(exported) && isDefinition(exported, kind)) {
    checkDefinition(kind, exported, source);
    return 'definition';
  }
  if (isObject(exported)) return 'instance';
  // An arrow function has no prototype.
  if (typeof exported === 'function' && typeof exported.prototype === 'object') return 'class';
  throw notOfKind(kind, source);
}

/** An object that says which contract it was written for is a definition, even without `definePlugin`. */
function isDefinition(value: object, wanted: ExtensionKind): boolean {
  const { kind, apiVersion, setup } = value as Record<string, unknown>;
  return kind === undefined
    ? apiVersion !== undefined && typeof setup === 'function'
    : kind === wanted;
}

/** Makes an instance of a class with the options that its static schema has checked. */
function instanceOf(
  { exported, source }: Resolved,
  options: Options | undefined,
  place: Place,
): { readonly instance: object; readonly shown: string } {
  const Class = exported as ExtensionClass;
  const shown = `${Class.name} from ${source}`;
  checkStatics(Class, shown);
  const checked = checkOptions(Class.optionsSchema, options, place, shown, 'class');
  return { instance: construct(Class, checked, shown) as object, shown };
}

/**
 * Loads what an entry names, whatever it is, and checks its options against its `optionsSchema`.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function loadExtension(
  resolver: PluginResolver,
  entry: UseEntry,
  place: Place,
): Promise<LoadedExtension> {
  const { exported, source } = await resolver.resolve(entry.use, 'extension');
  checkVersion(exported, source);
  const { name, optionsSchema } = (exported ?? {}) as { name?: unknown; optionsSchema?: object };
  const shown = typeof name === 'string' && name !== '' ? `${name} from ${source}` : source;
  const owner = typeof exported === 'function' ? 'class' : 'definition';
  const options = checkOptions(optionsSchema, entry.options, place, shown, owner);
  return {
    exported,
    options,
    source: shown,
    create: () =>
      typeof exported === 'function' ? construct(exported as never, options, shown) : exported,
    insteadOf: (wanted) => insteadText(exported, wanted),
  };
}

/**
 * Loads what the options of one plugin name.
 * @param place - of these options
 * @param lines - gets a line for each extension, for people
 */
function extensionLoader(resolver: PluginResolver, place: Place, lines: string[]): ExtensionLoader {
  return {
    loadAll: async <T>({
      entries,
      at,
      known = [],
      ...wanted
    }: WantedExtensions<T>): Promise<T[]> => {
      const problems = new ProblemList(place.origin);
      const made: T[] = [];
      for (const [index, entry] of entries.entries()) {
        const inner = [...at, index];
        const optionsAt = [...place.optionsAt, ...inner];
        await problems.attempt(optionsAt, async () => {
          const inside = { ...place, optionsAt: [...optionsAt, 'options'] };
          const loaded = await loadExtension(resolver, entry, inside).catch((error: unknown) => {
            throw withKnownNames(error, entry.use, known);
          });
          const { source, options } = loaded;
          const shown = Object.keys(options).length === 0 ? '' : ` ${show(options)}`;
          lines.push(`${pathText(inner)}: ${source}${shown}`);
          made.push(wanted.make(loaded));
        });
      }
      problems.throwIfAny();
      return made;
    },
  };
}

/** A name of a class of Python, as `my_package.MyPolicy`. */
const PYTHON_CLASS = /^[a-z_]\w*(\.[a-z_]\w*)*\.(?<name>[A-Z]\w*)$/;

/** For those who bring a configuration of Dask. */
function withKnownNames(error: unknown, use: unknown, known: readonly string[]): unknown {
  const name = typeof use === 'string' ? PYTHON_CLASS.exec(use)?.groups?.['name'] : undefined;
  if (name === undefined || !YardmasterError.is(error, 'ERR_PLUGIN_LOAD')) return error;
  const instead = known.length === 0 ? '' : `use a built-in one (${known.join(', ')}), or `;
  const advice = `a class of Python cannot run here: ${instead}write it in JavaScript and name it as ./file.js#${name}`;
  const message = `${error.message}; ${advice}`;
  return new YardmasterError(error.code, message, error.data, { cause: error });
}

// Plugins.

/** A plugin that is loaded and whose options are checked; nothing of it has run but a constructor. */
export interface Blueprint {
  readonly name: string;
  /** `./plugins/counter.js`, `built-in amm`. */
  readonly source: string;
  readonly onError: OnError;
  /** True for a plugin of this package, which sees the state itself; others get views that cannot change it. */
  readonly isTrusted: boolean;
  readonly requires: readonly string[];
  /** Parts of its owner that it replaces. */
  readonly provide: readonly Provider[];
  readonly place: Place;
  /** The extensions that its options name, for people: `policies[0]: EnsureBroadcast from ./policies.js {"key":"x"}`. */
  readonly extensions: readonly string[];
  /**
   * Loads what its options name; nothing of the plugin is set up. Called once, before `setup`.
   * @throws YardmasterError with every problem
   */
  load(resolver: PluginResolver): Promise<void>;
  setup(context: PluginContext): Promise<PluginInstance>;
}

interface PluginRequest {
  /** Default `plugin`. */
  readonly kind?: PluginKind;
  readonly options?: Options | undefined;
  readonly onError: OnError;
  readonly place: Place;
}

/**
 * Brings a definition, a class or an instance into one form.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export function blueprintOf(resolved: Resolved, request: PluginRequest): Blueprint {
  const { exported, source } = resolved;
  const { options, onError, place, kind = 'plugin' } = request;
  const common: Common = { source, onError, place, isTrusted: isTrusted(exported) };
  const form = formOf(resolved, kind);
  if (form === 'definition') {
    return fromDefinition(exported as PluginDefinition, common, options);
  }
  if (form === 'instance') {
    noOptions(options, place, source);
    return fromInstance(exported as object, common, kind);
  }
  const { instance, shown } = instanceOf(resolved, options, place);
  checkKind(instance, kind, shown);
  return fromInstance(instance, common, kind);
}

/**
 * @param names - of the plugins that come before
 * @throws YardmasterError `ERR_PLUGIN_SETUP` when one that it requires is not among them
 */
export function checkRequired({ name, requires }: Blueprint, names: readonly string[]): void {
  const missing = requires.filter((required) => !names.includes(required));
  if (missing.length === 0) return;
  const what = `plugin "${name}" requires ${missing.map((required) => `"${required}"`).join(' and ')}`;
  const advice = missing.includes(name)
    ? 'that is itself: take it out'
    : `list it before "${name}"`;
  throw new YardmasterError('ERR_PLUGIN_SETUP', `${what}; ${advice}`, { plugin: name, missing });
}

type Common = Pick<Blueprint, 'source' | 'onError' | 'place' | 'isTrusted'>;

function fromDefinition(
  definition: PluginDefinition,
  common: Common,
  options: Options | undefined,
): Blueprint {
  const { name, optionsSchema, requires = [], provide = [] } = definition;
  const { place, source } = common;
  const checked = checkOptions(optionsSchema, options, place, `${name} from ${source}`);
  const isIdle = (checked as { readonly start?: unknown } | undefined)?.start === false;
  const extensions = isIdle ? [`start: false, so it waits for ${name}.start`] : [];
  let loaded: unknown;
  return {
    ...common,
    name,
    requires,
    provide,
    extensions,
    load: async (resolver) => {
      if (definition.load === undefined) return;
      const loader = extensionLoader(resolver, place, extensions);
      const load = `load() of plugin "${name}" (${source})`;
      loaded = await named(`${load} threw`, 'ERR_PLUGIN_LOAD', () =>
        resolver.inTime(
          Promise.resolve(definition.load?.(loader, checked as never)),
          `${load} did not end`,
          'it probably awaits a promise that never settles',
        ),
      );
    },
    setup: async (context) => {
      const returned: unknown = await definition.setup(context, checked as never, loaded as never);
      return returned === undefined ? {} : checkedHooks(returned, name);
    },
  };
}

function fromInstance(instance: object, common: Common, kind: PluginKind): Blueprint {
  const given = instance as PluginInstance & {
    readonly name?: unknown;
    setup?(context: PluginContext): void | Promise<void>;
  };
  const className = instance.constructor.name;
  const name = typeof given.name === 'string' && given.name !== '' ? given.name : className;
  if (name === '' || name === 'Object') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `a plugin that is given as a plain object needs a name: { name: 'counter', … }`,
      { source: common.source },
    );
  }
  checkHookNames(name, instance, kind, 'ERR_PLUGIN_LOAD');
  checkIsCalled(instance, kind, name, common.source);
  return {
    ...common,
    ...{ name, requires: [], provide: [], extensions: [] },
    load: () => Promise.resolve(),
    setup: async (context) => {
      const returned: unknown = await given.setup?.(context);
      if (returned === undefined || returned === given) return given;
      checkedHooks(returned, name);
      throw new YardmasterError(
        'ERR_PLUGIN_LOAD',
        'its setup returned an object, whose hooks would never be called: wrap the definition in definePlugin({ … }), or make the hooks methods of the plugin itself',
        { plugin: name },
      );
    },
  };
}

function checkedHooks(returned: unknown, plugin: string): PluginInstance {
  if (isObject(returned)) return returned;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `its setup returned ${show(returned)}: it returns the hooks of the plugin as an object, or nothing`,
    { plugin },
  );
}

/** One plugin that is to be loaded, and where it was asked for. */
interface Wanted {
  readonly entry: UseEntry;
  readonly onError: OnError;
  readonly at: readonly Segment[];
  readonly place: Place;
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
  for (const { entry, onError, at, place } of wantedPlugins(loaded, builtins)) {
    await problems.attempt(at, async () => {
      const resolved = await resolver.resolve(entry.use, 'plugin');
      const blueprint = blueprintOf(resolved, { onError, place, options: entry.options });
      unique.add(blueprint.name, blueprint.source, at);
      const names = blueprints.map(({ name }) => name);
      blueprints.push(blueprint);
      // In code the name of the plugin says enough.
      const requiredAt = loaded.origin.file === undefined ? undefined : at;
      await problems.attempt(requiredAt, () => checkRequired(blueprint, names));
      await blueprint.load(resolver);
    });
  }
  problems.throwIfAny();
  return blueprints;
}

function wantedPlugins({ config, origin, plugins }: LoadedConfig, builtins: Builtins): Wanted[] {
  const wanted: Wanted[] = [];
  for (const { use, section, options } of plugins) {
    if (!Object.hasOwn(builtins, use)) continue;
    const at = ['scheduler', section];
    wanted.push({ entry: { use, options }, onError: 'log', at, place: { origin, optionsAt: at } });
  }
  for (const [index, entry] of config.scheduler.plugins.entries()) {
    const at = ['scheduler', 'plugins', index];
    const place = { origin, optionsAt: [...at, 'options'] };
    wanted.push({ entry, onError: entry.onError, at, place });
  }
  return wanted;
}

/**
 * Loads what the section `worker` names, and checks its options. Nothing of it is set up; an executor is made and closed.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function checkWorkerExtensions(
  { config, origin }: LoadedConfig,
  builtins: Builtins,
  modules: ModuleSource,
  around: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const { worker } = config;
  const resolver = new PluginResolver({}, modules);
  const problems = new ProblemList(origin);
  const { executor, resultStore } = worker;
  const attempt = (at: readonly string[], load: (place: Place) => unknown): Promise<unknown> =>
    problems.attempt(at, () => load({ origin, optionsAt: [...at, 'options'] }));
  if (executor !== undefined) {
    const named = new PluginResolver(builtins, modules);
    await attempt(['worker', 'executor'], async (place) => {
      const make = await loadExecutor(executor, named, place);
      if (typeof executor.use === 'string' && !named.isBuiltin(executor.use, 'executor')) {
        const { threads: threadCount = 1, killGrace: killGraceMs } = worker;
        const run = (): never => {
          throw new YardmasterError('ERR_EXECUTOR', 'a configuration that is checked runs no task');
        };
        await make({ ...around, threadCount, killGraceMs, run, load: run }).close();
      }
    });
  }
  if (typeof resultStore === 'object' && 'use' in resultStore) {
    await attempt(['worker', 'resultStore'], (place) => loadStore(resultStore, resolver, place));
  }
  for (const [field, kind] of [
    ['plugins', 'worker-plugin'],
    ['nannyPlugins', 'nanny-plugin'],
  ] as const) {
    const unique = new UniqueNames(`${kind.replace('-', ' ')}s`, origin);
    for (const [index, { use, options, onError }] of worker[field].entries()) {
      const at = ['worker', field, index];
      const place = { origin, optionsAt: [...at, 'options'] };
      await problems.attempt(at, async () => {
        const resolved = await resolver.resolve(use, kind);
        const blueprint = blueprintOf(resolved, { kind, onError, place, options });
        unique.add(blueprint.name, blueprint.source, at);
        await blueprint.load(resolver);
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

// Transports, executors and stores.

/** An extension that an entry names, with its options checked. */
interface Loaded {
  /** For messages: `counting from ./counting.js`. */
  readonly shown: string;
  /** The subject of messages about what was made. */
  readonly what: string;
  /** Makes it; an instance that was given in code is taken as it is. */
  readonly make: (context: object) => unknown;
}

async function loadMade(
  kind: 'transport' | 'executor' | 'store',
  { use, options: given }: UseEntry,
  resolver: PluginResolver,
  place: Place,
  modules?: ModuleLimit,
): Promise<Loaded> {
  const resolved = await resolver.resolve(use, kind, kind, modules);
  const { exported, source } = resolved;
  const form = formOf(resolved, kind);
  if (form === 'class') throw notOfKind(kind, source);
  if (form === 'instance') {
    noOptions(given, place, source);
    return { shown: source, what: source, make: () => exported };
  }
  const definition = exported as MadeDefinition<string, object, unknown, object>;
  const shown = `${definition.name} from ${source}`;
  const options = checkOptions(definition.optionsSchema, given, place, shown);
  const make = (context: object): unknown => definition.create(context, options);
  return { shown, what: `what create of ${shown} returned`, make };
}

/**
 * Makes the transport that a configuration names.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export async function loadTransport(
  entry: UseEntry,
  resolver: PluginResolver,
  place: Place,
  clock: Clock,
): Promise<Transport> {
  const { shown, what, make } = await loadMade('transport', entry, resolver, place);
  const made = created(() => make({ clock }), shown);
  checkTransport(made, what);
  return made;
}

/**
 * Makes the transports that were given in code.
 * @returns them by scheme
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, also when two of them speak one scheme
 */
export async function loadTransports(
  given: readonly TransportInput[],
  resolver: PluginResolver,
  clock: Clock,
): Promise<Map<string, Transport>> {
  const found = new Map<string, Transport>();
  const places = new Map<Transport, string>();
  for (const [index, input] of given.entries()) {
    const entry = typeof input === 'object' && 'use' in input ? input : { use: input };
    const place = { origin: IN_CODE, optionsAt: ['transports', index, 'options'] };
    const transport = await loadTransport(entry, resolver, place, clock);
    const { scheme } = transport;
    const other = found.get(scheme);
    places.set(transport, `transports[${index}]`);
    if (other !== undefined && other !== transport) {
      const both = [places.get(other), places.get(transport)];
      throw new YardmasterError(
        'ERR_CONFIG',
        `${both.join(' and ')} both speak the scheme "${scheme}"; remove one of them`,
        { scheme, places: both },
      );
    }
    found.set(scheme, transport);
  }
  return found;
}

/**
 * Loads the executor that a configuration names.
 * @returns what makes it
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`; what it returns throws `ERR_EXECUTOR` as well
 */
export async function loadExecutor(
  entry: UseEntry,
  resolver: PluginResolver,
  place: Place,
): Promise<(context: ExecutorContext) => Executor> {
  const { shown, what, make } = await loadMade('executor', entry, resolver, place);
  return (context) => {
    const made = created(() => make(context), shown);
    checkExecutor(made, what);
    // One that was given in code as an object serves one worker, which closes it.
    if (!nameExecutor(made, shown)) {
      const message = `the executor ${shown} serves a worker already: give its definition (defineExecutor), with which each worker makes its own`;
      throw new YardmasterError('ERR_EXECUTOR', message, { executor: shown });
    }
    return made;
  };
}

/**
 * Loads a store of results.
 * @param modules - where its module may be. Default: everywhere
 * @returns what makes it
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_MODULE_REFUSED`; what it returns throws `ERR_RESULT_STORE`
 */
export async function loadStore(
  entry: UseEntry,
  resolver: PluginResolver,
  place: Place = { origin: IN_CODE, optionsAt: ['resultStore', 'options'] },
  modules?: ModuleLimit,
): Promise<(context: StoreContext) => Promise<ResultStore>> {
  const { what, make } = await loadMade('store', entry, resolver, place, modules);
  return async (context) => {
    const made: unknown = await make(context);
    checkStore(made, what);
    return made;
  };
}

// Policies.

/**
 * Makes what fills a slot, or a rule, out of a definition, a class (its options go to the constructor), or an
 * instance that has the methods of the slot.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`, `ERR_SLOT`
 */
export async function loadPolicy<Role extends RoleName>(
  resolver: PluginResolver,
  role: Role,
  entry: UseEntry,
  place: Place,
): Promise<Named<PolicyRoles[Role]>> {
  const resolved = await resolver.resolve(entry.use, role === 'rules' ? 'rule' : 'policy', role);
  const { name, policy } = makePolicy(role, resolved, entry.options, place, resolver.log);
  checkPolicy(role, policy, `${name} (${resolved.source})`);
  const shielded = isTrusted(resolved.exported)
    ? policy
    : shieldedPolicy(role, policy, name, resolver.hooks);
  const named = { name, policy: shielded as PolicyRoles[Role] };
  return isPlain(entry) ? { ...named, entry } : named;
}

async function loadRule(
  resolver: PluginResolver,
  entry: RuleEntry,
  place: Place,
): Promise<NamedRule> {
  return { ...(await loadPolicy(resolver, 'rules', entry, place)), weight: entry.weight };
}

function makePolicy(
  role: RoleName,
  resolved: Resolved,
  options: Options | undefined,
  place: Place,
  log: Logger | undefined,
): { readonly name: string; readonly policy: object } {
  const { exported, source } = resolved;
  const form = formOf(resolved, role === 'rules' ? 'rule' : 'policy');
  if (form === 'class') {
    const { instance } = instanceOf(resolved, options, place);
    return { name: (exported as ExtensionClass).name, policy: instance };
  }
  if (form === 'instance') {
    const policy = exported as { readonly name?: string };
    const { name = policy.constructor.name } = policy;
    const shown = name === 'Object' ? source : name;
    noOptions(options, place, shown);
    return { name: shown, policy };
  }
  const definition = exported as PolicyDefinition | RuleDefinition;
  const { name, optionsSchema } = definition;
  if (definition.kind === 'policy' && definition.slot !== role) {
    throw new YardmasterError(
      'ERR_SLOT',
      `${name} (${source}) is a policy for ${definition.slot} and cannot fill ${role}: name it under scheduler.policies.${definition.slot}, or define it for ${role}`,
      { slot: role, policy: name },
    );
  }
  const shown = `${name} from ${source}`;
  const checked = checkOptions(optionsSchema, options, place, shown);
  const context = log && { log: namedLogger(log, { policy: name }) };
  return { name, policy: created(() => definition.create(checked as never, context), shown) };
}

/**
 * Fills the slots: what is built in, and what the configuration names. Loads its rules.
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
  const rules: NamedRule[] = [];
  for (const [index, entry] of config.scheduler.policies.rules.entries()) {
    const at = ['scheduler', 'policies', 'rules', index];
    const place = { origin, optionsAt: [...at, 'options'] };
    await problems.attempt(at, async () => rules.push(await loadRule(resolver, entry, place)));
  }
  problems.throwIfAny();
  slots.setBuiltin(builtin as never);
  slots.provideRules(rules, CONFIGURATION);
}

/**
 * Loads the policies that are to be compared with those in charge, and those that clients may name, so that what is
 * wrong with one is found at the start.
 * @returns the former
 * @throws YardmasterError with every problem of all of them
 */
export async function loadOtherPolicies(
  resolver: PluginResolver,
  { config: { scheduler }, origin }: LoadedConfig,
): Promise<ReadonlyMap<KernelSlotName, Named<KernelSlots[KernelSlotName]>>> {
  const shadows = new Map<KernelSlotName, Named<KernelSlots[KernelSlotName]>>();
  const problems = new ProblemList(origin);
  const load = <Slot extends SlotName>(
    slot: Slot,
    entry: UseEntry,
    at: readonly Segment[],
  ): Promise<Named<PolicySlots[Slot]> | undefined> => {
    const place = { origin, optionsAt: [...at, 'options'] };
    return problems.attempt(at, () => loadPolicy(resolver, slot, entry, place));
  };
  for (const slot of KERNEL_SLOT_NAMES) {
    const entry = scheduler.shadows[slot];
    if (entry === undefined) continue;
    const shadow = await load(slot, entry, ['scheduler', 'shadows', slot]);
    if (shadow !== undefined) shadows.set(slot, shadow);
  }
  for (const slot of SLOT_NAMES) {
    for (const [name, entry] of Object.entries(scheduler.clientPolicies[slot] ?? {})) {
      await load(slot, entry, ['scheduler', 'clientPolicies', slot, name]);
    }
  }
  problems.throwIfAny();
  return shadows;
}

/** Policies for slots, and rules by name, whose recorded ones were given as objects in code: definitions, or instances. */
export type GivenPolicies = Readonly<{
  [Slot in KernelSlotName]?: KernelSlots[Slot] | PolicyDefinition<Slot>;
}> & { readonly rules?: Readonly<Record<string, Rule | RuleDefinition>> };

interface RecordedPolicy {
  readonly name: string;
  readonly entry?: UseEntry;
  /** Of a rule. */
  readonly weight?: number;
}

type LoadedRole = Named<PolicyRoles[RoleName]>;

/** Loads the policies that a recording names. There are no plugins, so there are no hooks. */
export class RecordedPolicies {
  private readonly resolver: PluginResolver;
  /** By slot, and rules by their place. */
  private readonly loaded = new Map<string, LoadedRole>();

  /**
   * @param modules - where the policies that are not built in are
   * @param allowsModules - false: of what the recording names, only built-in policies are loaded
   */
  constructor(
    builtins: Builtins,
    private readonly modules: ModuleSource,
    private readonly given: GivenPolicies = {},
    private readonly allowsModules = false,
  ) {
    this.resolver = new PluginResolver(builtins, modules);
  }

  /**
   * The ports of a kernel. A slot whose policy is the same as in the call before keeps it, and what it
   * remembers.
   * @throws YardmasterError `ERR_REPLAY` for a policy that has to be given; `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
   */
  async ports(recorded: Readonly<Record<string, RecordedPolicy>>): Promise<KernelPorts> {
    const policies: Partial<Record<KernelSlotName, LoadedRole>> = {};
    const fallbacks: Partial<Record<KernelSlotName, unknown>> = {};
    for (const slot of KERNEL_SLOT_NAMES) {
      policies[slot] = await this.load(slot, slot, recorded[slot], this.given[slot]);
      const builtin = { use: DEFAULT_POLICIES[slot] };
      const { policy } = await loadPolicy(this.resolver, slot, builtin, AT_RUN_TIME);
      fallbacks[slot] = policy;
    }
    const rules: NamedRule[] = [];
    for (const [key, rule] of Object.entries(recorded)) {
      if (rule.weight === undefined) continue;
      const loaded = await this.load(key, 'rules', rule, this.given.rules?.[rule.name]);
      rules.push({ name: rule.name, policy: loaded.policy as Rule, weight: rule.weight });
    }
    return {
      ...(policies as Pick<KernelPorts, KernelSlotName>),
      rules,
      fallbacks: fallbacks as unknown as KernelSlots,
      hooks: NO_HOOKS,
      onPolicyFailure: () => undefined,
    };
  }

  /** @param key - under which the recording names it */
  private async load(
    key: string,
    role: KernelSlotName | 'rules',
    recorded: RecordedPolicy | undefined,
    given: object | undefined,
  ): Promise<LoadedRole> {
    const slot = role === 'rules' ? `rules["${recorded?.name}"]` : role;
    if (recorded === undefined) throw missing(slot, 'no policy');
    const { name, entry } = recorded;
    const before = this.loaded.get(key);
    if (before?.name === name && isEqual(before.entry, entry)) return before;
    let policy: LoadedRole;
    if (given !== undefined) {
      const { policy: made } = await loadPolicy(this.resolver, role, { use: given }, AT_RUN_TIME);
      policy = { name, policy: made };
    } else if (entry === undefined) throw missing(slot, `"${name}", an object in code`);
    else if (!this.allowsModules && !this.resolver.isBuiltin(entry.use, role)) {
      throw refused(slot, show(entry.use), this.modules.folder);
    } else policy = await loadPolicy(this.resolver, role, entry, AT_RUN_TIME);
    this.loaded.set(key, policy);
    return policy;
  }
}

const NO_HOOKS = Object.fromEntries(HOOK_NAMES.map((name) => [name, []])) as unknown as HookCalls;

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

// Preloaded modules.

/** Time that a preloaded module has for `setup`, and for `close`. */
const PRELOAD_TIMEOUT_MS = 10_000;

interface Preload {
  readonly source: string;
  readonly module: PreloadModule;
  readonly options: unknown;
}

/** The place at which a configuration names them. */
interface PreloadPlace {
  readonly origin: ConfigOrigin;
  readonly at: readonly Segment[];
}

const IN_CODE_PLACE: PreloadPlace = { origin: IN_CODE, at: ['preload'] };

/** Modules that are loaded before anything starts. */
export class Preloads {
  private readonly begun: Preload[] = [];

  private constructor(
    private readonly loaded: readonly Preload[],
    private readonly context: PreloadContext,
  ) {}

  /**
   * Loads them; nothing of them runs but the modules themselves.
   * @throws YardmasterError `ERR_PLUGIN_LOAD` when one does not exist, or has nothing to call
   */
  static async load(
    entries: readonly UseEntry[],
    resolver: PluginResolver,
    context: PreloadContext,
    { origin, at }: PreloadPlace = IN_CODE_PLACE,
  ): Promise<Preloads> {
    const loaded: Preload[] = [];
    const problems = new ProblemList(origin);
    const unique = new UniqueNames('preloads', origin);
    for (const [index, { use, options = {} }] of entries.entries()) {
      await problems.attempt([...at, index], async () => {
        const { exported, source } = await resolver.resolveModule(use, 'preload module');
        const module = preloadModule(exported, source);
        // With other options it is another preload: nothing replaces anything.
        const duplicate = loaded.findIndex(
          (other) => other.source === source && isEqual(other.options, options),
        );
        unique.add(
          source,
          source,
          [...at, index],
          String(duplicate < 0 ? loaded.length : duplicate),
        );
        loaded.push({ source, module, options });
      });
    }
    problems.throwIfAny();
    return new Preloads(loaded, context);
  }

  /** One after the other. What one throws is logged, and the next one follows. */
  async setUp(): Promise<void> {
    for (const preload of this.loaded) {
      this.begun.push(preload);
      await this.attempt('setup', preload);
    }
  }

  /** In reverse order, each that was begun. Never rejects. */
  async close(): Promise<void> {
    for (const preload of this.begun.splice(0).reverse()) await this.attempt('close', preload);
  }

  private async attempt(phase: 'setup' | 'close', preload: Preload): Promise<void> {
    const { module, options, source } = preload;
    const { clock, log } = this.context;
    try {
      const running = Promise.resolve(module[phase]?.(this.context, options));
      await withTimeout(clock, running, PRELOAD_TIMEOUT_MS, () => {
        const message = `it took longer than ${PRELOAD_TIMEOUT_MS / 1000} s`;
        return new YardmasterError('ERR_TIMEOUT', message, { source, phase });
      });
    } catch (thrown) {
      const why = messageOf(thrown);
      log.error({ err: thrown, source, phase }, `${phase} of the preload ${source} failed: ${why}`);
    }
  }
}

function preloadModule(exported: unknown, source: string): PreloadModule {
  const found = (exported ?? {}) as Record<string, unknown>;
  if (typeof found['teardown'] === 'function') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `the preload ${source} exports a function teardown, which nothing calls; did you mean "close"?`,
      { source },
    );
  }
  const isUsable = ['setup', 'close'].some((name) => typeof found[name] === 'function');
  if (isUsable) return found;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `the preload ${source} exports neither a function setup nor a function close: export one of them`,
    { source },
  );
}
