import { YardmasterError } from '../../api/errors.ts';
import {
  PLUGIN_API_VERSION,
  type PluginContext,
  type PluginDefinition,
  type PluginInstance,
} from '../../api/plugin.ts';
import type { Provider } from '../../api/token.ts';
import { nearest } from '../../shared/words.ts';
import type { OnError } from '../../config/types.ts';
import { construct } from '../injection/construct.ts';
import { checkKind, hasAnyName, notOfKind, nounOf } from './extension-kinds.ts';
import { checkOptions, noOptions, type Place } from './extension-options.ts';
import { checkHookNames } from '../hook-check.ts';
import type { PluginKind } from '../hook-names.ts';
import { extensionLoader } from './load-extension.ts';
import type { PluginResolver, Resolved } from './plugin-resolver.ts';

/** A plugin that is loaded and whose options are checked; nothing of it has run but a constructor. */
export interface Blueprint {
  readonly name: string;
  /** `./plugins/counter.js`, `built-in amm`. */
  readonly source: string;
  readonly onError: OnError;
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
  const common = { source, onError, place };
  checkKind(exported, kind, source);
  if (isDefinition(exported, kind)) return fromDefinition(exported, common, options);
  if (typeof exported === 'function' && isClass(exported)) {
    const Class = exported as unknown as PluginClass;
    const shown = `${Class.name} from ${source}`;
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

type Common = Pick<Blueprint, 'source' | 'onError' | 'place'>;

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
  const { name, apiVersion, optionsSchema, requires = [], provide = [] } = definition;
  if (!('name' in definition)) {
    const misspelt = nearest('name', Object.keys(definition));
    const found = misspelt === undefined ? '' : `, but "${misspelt}"`;
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${common.source} has no "name"${found}; a definition has a name, such as { name: 'counter', … }`,
      { source: common.source },
    );
  }
  if (typeof name !== 'string' || !/^[a-z][\w-]*$/i.test(name)) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `${common.source} has the name ${JSON.stringify(name)}; a name starts with a letter and has letters, digits, - and _`,
      { source: common.source },
    );
  }
  if (apiVersion !== PLUGIN_API_VERSION) {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `plugin "${name}" (${common.source}) is written for version ${String(apiVersion)} of the plugin contract, this is version ${PLUGIN_API_VERSION}; install a version of it that fits`,
      { plugin: name, theirs: apiVersion, ours: PLUGIN_API_VERSION },
    );
  }
  if (typeof definition.setup !== 'function') {
    throw new YardmasterError(
      'ERR_PLUGIN_LOAD',
      `plugin "${name}" (${common.source}) has no function setup: hooks are what its setup returns`,
      { plugin: name, source: common.source },
    );
  }
  const place = common.place;
  const checked = checkOptions(optionsSchema, options, place, `${name} from ${common.source}`);
  const extensions: string[] = [];
  let loaded: unknown;
  return {
    ...common,
    name,
    requires,
    provide,
    extensions,
    load: async (resolver) => {
      const loader = extensionLoader(resolver, place, extensions);
      loaded = await definition.load?.(loader, checked as never);
    },
    setup: async (context) => (await definition.setup(context, checked as never, loaded)) ?? {},
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
      if (typeof returned === 'object' && returned !== null && returned !== given) {
        throw new YardmasterError(
          'ERR_PLUGIN_LOAD',
          'its setup returned an object, whose hooks would never be called: wrap the definition in definePlugin({ … }), or make the hooks methods of the plugin itself',
          { plugin: name },
        );
      }
      return given;
    },
  };
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
