import { YardmasterError } from '../api/errors.ts';
import type { PluginContext, PluginDefinition, PluginInstance } from '../api/plugin.ts';
import type { Provider } from '../api/token.ts';
import type { OnError } from '../config/types.ts';
import { isTrusted } from '../shared/read-only.ts';
import { show } from '../shared/words.ts';
import { checkDefinition, checkStatics } from './contracts.ts';
import { checkOptions, noOptions, type Place } from './extension-options.ts';
import { checkHookNames, type PluginKind } from './hooks-check.ts';
import { construct } from './injection.ts';
import { checkKind, extensionLoader, hasAnyName, notOfKind, nounOf } from './load-extension.ts';
import type { PluginResolver, Resolved } from './plugin-resolver.ts';

/** A plugin that is loaded and whose options are checked; nothing of it has run but a constructor. */
export interface Blueprint {
  readonly name: string;
  /** `./plugins/counter.js`, `built-in amm`. */
  readonly source: string;
  readonly onError: OnError;
  /** True for a plugin of this package, which sees the state itself; others get views that cannot change it. */
  readonly isTrusted: boolean;
  readonly requires: readonly string[];
  /** Collaborators of the scheduler that it replaces. */
  readonly provide: readonly Provider[];
  readonly place: Place;
  /** What its options name, for people: `policies[0]: EnsureBroadcast from ./policies.js {"key":"x"}`. */
  readonly extensions: readonly string[];
  /**
   * Loads what its options name; nothing of the plugin is set up. Called once, before `setup`.
   * @throws YardmasterError with every problem
   */
  load(resolver: PluginResolver): Promise<void>;
  setup(context: PluginContext): Promise<PluginInstance>;
}

/** How a plugin was asked for. */
interface PluginRequest {
  /** Default `plugin`. */
  readonly kind?: PluginKind;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly onError: OnError;
  readonly place: Place;
}

/**
 * Brings a definition, a class or an instance into one form.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`, `ERR_CONFIG`
 */
export function blueprintOf({ exported, source }: Resolved, request: PluginRequest): Blueprint {
  const { options, onError, place, kind = 'plugin' } = request;
  const common = { source, onError, place, isTrusted: isTrusted(exported) };
  checkKind(exported, kind, source);
  if (isDefinition(exported, kind)) {
    checkDefinition(kind, exported, source);
    return fromDefinition(exported, common, options);
  }
  if (typeof exported === 'function' && isClass(exported)) {
    const Class = exported as unknown as PluginClass;
    const shown = `${Class.name} from ${source}`;
    checkStatics(Class, shown);
    const checked = checkOptions(Class.optionsSchema, options, place, shown, 'class');
    const instance = construct(Class, checked, shown) as object;
    checkKind(instance, kind, shown);
    return fromInstance(instance, common, kind);
  }
  if (typeof exported === 'object' && exported !== null && !Array.isArray(exported)) {
    noOptions(options, place, source);
    return fromInstance(exported, common, kind);
  }
  throw notOfKind(kind, source);
}

/**
 * @param names - of the plugins that come before
 * @throws YardmasterError `ERR_PLUGIN_SETUP` when one that it requires is not among them
 */
export function checkRequired({ name, requires }: Blueprint, names: readonly string[]): void {
  const missing = requires.filter((required) => !names.includes(required));
  if (missing.length === 0) return;
  throw new YardmasterError(
    'ERR_PLUGIN_SETUP',
    `plugin "${name}" requires ${missing.map((required) => `"${required}"`).join(' and ')}; list it before "${name}"`,
    { plugin: name, missing },
  );
}

type Common = Pick<Blueprint, 'source' | 'onError' | 'place' | 'isTrusted'>;

interface PluginClass {
  readonly name: string;
  readonly optionsSchema?: object;
  new (options: never): object;
}

function fromDefinition(
  definition: PluginDefinition<never>,
  common: Common,
  options: Readonly<Record<string, unknown>> | undefined,
): Blueprint {
  const { name, optionsSchema, requires = [], provide = [] } = definition;
  const place = common.place;
  const checked = checkOptions(optionsSchema, options, place, `${name} from ${common.source}`);
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
      const loader = extensionLoader(resolver, place, extensions);
      if (definition.load === undefined) return;
      loaded = await resolver.inTime(
        Promise.resolve(definition.load(loader, checked as never)),
        `load() of plugin "${name}" (${common.source}) did not end`,
        'it probably awaits a promise that never settles',
      );
    },
    setup: async (context) => {
      const returned: unknown = await definition.setup(context, checked as never, loaded);
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
  if (!hasAnyName(instance, kind)) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${name} (${common.source}) has neither a hook nor a method setup, so nothing of it would ever be called; it is no use as ${nounOf(kind)}`,
      { plugin: name, source: common.source },
    );
  }
  return {
    ...common,
    name,
    requires: [],
    provide: [],
    extensions: [],
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

/** What `setup` returned, if it can have hooks. */
function checkedHooks(returned: unknown, plugin: string): PluginInstance {
  const isObject = typeof returned === 'object' && returned !== null && !Array.isArray(returned);
  if (isObject) return returned;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `its setup returned ${show(returned)}: it returns the hooks of the plugin as an object, or nothing`,
    { plugin },
  );
}

/** What says which contract it was written for is a definition, even without `definePlugin`. */
function isDefinition(value: unknown, wanted: PluginKind): value is PluginDefinition<never> {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, apiVersion, setup } = value as Record<string, unknown>;
  if (kind === undefined) return apiVersion !== undefined && typeof setup === 'function';
  return kind === wanted;
}

/** An arrow function has no prototype; `new` would fail on it with a worse message. */
function isClass(value: object): boolean {
  return typeof (value as { prototype?: unknown }).prototype === 'object';
}
