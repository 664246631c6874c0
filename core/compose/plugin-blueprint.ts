import { YardmasterError } from '../api/errors.ts';
import {
  PLUGIN_API_VERSION,
  type PluginContext,
  type PluginDefinition,
  type PluginInstance,
} from '../api/plugin.ts';
import type { OnError } from '../config/types.ts';
import { checkOptions, type Place } from './extension-options.ts';
import type { Resolved } from './plugin-resolver.ts';

/** A plugin that is loaded and whose options are checked; nothing of it has run but a constructor. */
export interface Blueprint {
  readonly name: string;
  /** `./plugins/counter.js`, `built-in amm`. */
  readonly source: string;
  readonly onError: OnError;
  readonly requires: readonly string[];
  readonly place: Place;
  setup(context: PluginContext): Promise<PluginInstance>;
}

/** What a plugin is for: the scheduler, a worker, a nanny. */
export type PluginKind = 'plugin' | 'worker-plugin' | 'nanny-plugin';

const DEFINED_BY: Readonly<Record<PluginKind, string>> = {
  plugin: 'definePlugin',
  'worker-plugin': 'defineWorkerPlugin',
  'nanny-plugin': 'defineNannyPlugin',
};

/** How a plugin was asked for. */
export interface PluginRequest {
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
    const checked = checkOptions(
      Class.optionsSchema,
      options,
      place,
      `${Class.name} from ${source}`,
    );
    return fromInstance(new Class(checked as never), common);
  }
  if (typeof exported === 'object' && exported !== null && !Array.isArray(exported)) {
    return fromInstance(exported, common);
  }
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is no ${kind}: expected a definition made by ${DEFINED_BY[kind]}, a class or an instance`,
    { source },
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
  const { name, apiVersion, optionsSchema, requires = [] } = definition;
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
  const place = common.place;
  const checked = checkOptions(optionsSchema, options, place, `${name} from ${common.source}`);
  return {
    ...common,
    name,
    requires,
    setup: async (context) => (await definition.setup(context, checked as never)) ?? {},
  };
}

function fromInstance(instance: object, common: Common): Blueprint {
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
  return {
    ...common,
    name,
    requires: [],
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

/** A plugin of the scheduler is none of a worker, and so on. */
function checkKind(value: unknown, wanted: PluginKind, source: string): void {
  const { kind } = (value ?? {}) as { readonly kind?: unknown };
  if (typeof kind !== 'string' || kind === wanted || !Object.hasOwn(DEFINED_BY, kind)) return;
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is a ${kind}, and a ${wanted} is wanted here: make it with ${DEFINED_BY[wanted]}, or name it elsewhere`,
    { source, kind, wanted },
  );
}

/** An arrow function has no prototype; `new` would fail on it with a worse message. */
function isClass(value: object): boolean {
  return typeof (value as { prototype?: unknown }).prototype === 'object';
}
