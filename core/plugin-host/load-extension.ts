import { YardmasterError } from '../api/errors.ts';
import type {
  ExtensionKind,
  ExtensionLoader,
  LoadedExtension,
  UseEntry,
  WantedExtensions,
} from '../api/plugin.ts';
import { SLOT_NAMES, type SlotName } from '../api/policies.ts';
import { pathText } from '../config/check.ts';
import { show } from '../shared/words.ts';
import { checkOptions, type Place, ProblemList } from './extension-options.ts';
import { methodNamesOf, namesOf, ownHooksOf, ownNamesOf, type PluginKind } from './hooks-check.ts';
import { construct } from './injection.ts';
import type { PluginResolver } from './plugin-resolver.ts';

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
export function extensionLoader(
  resolver: PluginResolver,
  place: Place,
  lines: string[],
): ExtensionLoader {
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

interface KindText {
  readonly noun: string;
  readonly madeBy: string;
  /** Where a configuration names it. */
  readonly place: string;
}

const TEXTS: Readonly<Record<ExtensionKind, KindText>> = {
  plugin: {
    noun: 'a plugin',
    madeBy: 'definePlugin',
    place: 'scheduler.plugins',
  },
  'worker-plugin': {
    noun: 'a worker-plugin',
    madeBy: 'defineWorkerPlugin',
    place: 'worker.plugins',
  },
  'nanny-plugin': {
    noun: 'a nanny-plugin',
    madeBy: 'defineNannyPlugin',
    place: 'worker.nannyPlugins',
  },
  policy: {
    noun: 'a policy',
    madeBy: 'definePolicy',
    place: 'scheduler.policies.<slot>',
  },
  'amm-policy': {
    noun: 'a policy of the Active Memory Manager',
    madeBy: 'defineAmmPolicy',
    place: 'scheduler.activeMemoryManager.policies',
  },
  transport: {
    noun: 'a transport',
    madeBy: 'defineTransport',
    place: 'scheduler.transport',
  },
};

/** The slot of a policy by one of the methods that it has to have. */
const SLOT_OF_METHOD: Readonly<Record<string, SlotName>> = {
  score: 'workerSelection',
  select: 'workerSelection',
  isRootish: 'queuing',
  selectRootish: 'queuing',
  order: 'ordering',
  generations: 'fairness',
  mayTake: 'stealing',
  victims: 'stealing',
  levelOf: 'stealing',
  pays: 'stealing',
};

const POLICY_METHODS = Object.keys(SLOT_OF_METHOD);

/** `a plugin of workers` */
export function nounOf(kind: ExtensionKind): string {
  return TEXTS[kind].noun;
}

/**
 * Refuses what is clearly of another kind, and says where that belongs.
 * @throws YardmasterError `ERR_PLUGIN_LOAD`
 */
export function checkKind(exported: unknown, wanted: ExtensionKind, source: string): void {
  const advice = adviceAgainst(exported, Object.keys(TEXTS));
  if (advice !== undefined) {
    throw new YardmasterError('ERR_PLUGIN_LOAD', `${source} is no ${wanted}: ${advice}`, {
      source,
      wanted,
    });
  }
  const kind = kindOf(exported, wanted);
  if (kind === undefined || kind === wanted) return;
  const { noun, place } = TEXTS[kind];
  const slot = kind === 'policy' ? slotOf(exported as object) : undefined;
  const what = slot === undefined ? noun : `${noun} of the slot ${slot}`;
  const at = place.replace('<slot>', slot ?? '<slot>');
  throw new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is ${what}, and ${TEXTS[wanted].noun} is wanted here: name it under ${at} or use ${CALLS[kind]}, or make ${TEXTS[wanted].noun} with ${TEXTS[wanted].madeBy}`,
    { source, kind, wanted, slot },
  );
}

/** The slot that a policy says that it is for, else the one whose methods it has. */
function slotOf(policy: object): SlotName | undefined {
  const { slot } = policy as { slot?: unknown };
  const declared = SLOT_NAMES.find((name) => name === slot);
  if (declared !== undefined) return declared;
  const method = methodsOf(policy).find((name) => Object.hasOwn(SLOT_OF_METHOD, name));
  return method === undefined ? undefined : SLOT_OF_METHOD[method];
}

/** For what is of no kind at all. */
export function notOfKind(wanted: ExtensionKind, source: string): YardmasterError {
  const { madeBy } = TEXTS[wanted];
  return new YardmasterError(
    'ERR_PLUGIN_LOAD',
    `${source} is no ${wanted}: expected a definition made by ${madeBy}, a class or an instance`,
    { source, wanted },
  );
}

/** For the end of a message: what an extension is instead of what is wanted; '' when that is not clear. */
function insteadText(exported: unknown, wanted: ExtensionKind): string {
  const kind = kindOf(exported, wanted);
  if (kind === undefined || kind === wanted) return '';
  return `; it is ${TEXTS[kind].noun}, which belongs under ${TEXTS[kind].place}`;
}

/** What it says that it is, else what its methods say. Undefined: it may be what is wanted. */
function kindOf(exported: unknown, wanted: ExtensionKind): ExtensionKind | undefined {
  if ((typeof exported !== 'object' && typeof exported !== 'function') || exported === null) {
    return undefined;
  }
  const declared = declaredKind(exported);
  if (declared !== undefined) return declared;
  const methods = methodsOf(exported);
  const has = (names: readonly string[]): boolean => names.some((name) => methods.includes(name));
  if (fits(wanted, methods)) return undefined;
  if (methods.includes('run')) return 'amm-policy';
  if (methods.includes('listen') && methods.includes('connect')) return 'transport';
  if (has(POLICY_METHODS)) return 'policy';
  const plugins: readonly PluginKind[] = ['worker-plugin', 'nanny-plugin', 'plugin'];
  return plugins.find((kind) => has(ownHooksOf(kind)));
}

/** Whether any method is one that the wanted kind alone has. */
function fits(wanted: ExtensionKind, methods: readonly string[]): boolean {
  const own = {
    policy: POLICY_METHODS,
    'amm-policy': ['run'],
    transport: ['listen'],
  } as const;
  if (wanted === 'policy' || wanted === 'amm-policy' || wanted === 'transport') {
    return own[wanted].some((name) => methods.includes(name));
  }
  return ownNamesOf(wanted).some((name) => methods.includes(name));
}

/** Whether a class or an instance has anything that is ever called. */
export function hasAnyName(instance: object, kind: PluginKind): boolean {
  const methods = methodNamesOf(instance);
  return namesOf(kind).some((name) => methods.includes(name));
}

/** Definitions have a field `kind`; classes may have a static one. */
function declaredKind(exported: object): ExtensionKind | undefined {
  const own = (exported as { kind?: unknown }).kind;
  const ofClass = (exported.constructor as { kind?: unknown } | undefined)?.kind;
  const kind = [own, ofClass].find((value) => typeof value === 'string');
  return kind !== undefined && Object.hasOwn(TEXTS, kind) ? (kind as ExtensionKind) : undefined;
}

function methodsOf(exported: object): string[] {
  if (typeof exported !== 'function') return methodNamesOf(exported);
  const prototype: unknown = exported.prototype;
  return typeof prototype === 'object' && prototype !== null ? methodNamesOf(prototype) : [];
}

/**
 * What something is that is no extension of any kind, and what to do with it instead: the end of a
 * message that refuses it. Undefined: it may be an extension.
 */
function adviceAgainst(exported: unknown, kinds: readonly string[]): string | undefined {
  if (exported === undefined || exported === null) {
    return `it is ${String(exported)}; is its import right?`;
  }
  if (Array.isArray(exported)) return 'it is a list; give its entries one by one';
  if (exported instanceof Promise) return 'it is a promise: await it first';
  if (isExecutor(exported)) {
    return 'it is an executor, which a worker gets: startWorker(address, { executor })';
  }
  if (Object.prototype.toString.call(exported) === '[object Module]') return MODULE;
  return isPlain(exported) ? adviceAgainstPlain(exported, kinds) : undefined;
}

const MODULE = 'it is a module: give one of its exports, such as its default export';

function adviceAgainstPlain(
  fields: Readonly<Record<string, unknown>>,
  kinds: readonly string[],
): string | undefined {
  const { kind } = fields;
  if (typeof kind === 'string' && !kinds.includes(kind)) {
    return `its kind is "${kind}"; there are ${kinds.join(', ')}`;
  }
  if ('name' in fields) return undefined;
  if ('use' in fields) return 'it is an entry of a configuration: give what its "use" names';
  if ('default' in fields) return MODULE;
  if (isPlain(fields['scheduler']) || isPlain(fields['worker'])) {
    return 'it is a configuration, which a scheduler gets when it is made: createScheduler({ config })';
  }
  return undefined;
}

/** How a program gives an extension that it has in code. */
const CALLS: Readonly<Record<ExtensionKind, string>> = {
  plugin: 'scheduler.addPlugin(plugin)',
  'worker-plugin': 'startWorker(address, { plugins })',
  'nanny-plugin': 'startWorker(address, { nannyPlugins })',
  policy: 'scheduler.replacePolicy(slot, policy)',
  'amm-policy': 'scheduler.amm.addPolicy(policy)',
  transport: 'createScheduler({ transports })',
};

function isExecutor(exported: unknown): boolean {
  const prototype: unknown = typeof exported === 'function' ? exported.prototype : exported;
  if (typeof prototype !== 'object' || prototype === null) return false;
  const methods = methodNamesOf(prototype);
  const isOne = 'threadCount' in prototype || methods.includes('callActor');
  return isOne && methods.includes('run') && methods.includes('close');
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  );
}
